"""Conversion of status codes of the C runtime to exceptions."""

from __future__ import annotations

from typing import Any

from relvm import errors
from relvm._native import ffi, lib
from relvm.errors import RelvmError, RelvmTypeError
from relvm.quoting import terminal_message
from relvm.tables import STATUS, TAGS, numbers

STATUS_NUMBERS = numbers(STATUS)
_ERROR = numbers(TAGS)["ERROR"]
_CLASSES = tuple(getattr(errors, row.python_class, RelvmError) for row in STATUS)


def failure(status: int, value: Any, where: str = "") -> RelvmError:
    """Return the exception for a failed call, with the stack trace of the machine as a note.

    csrc/tables/status.def defines the class of the exception for each status.

    Parameters
    ----------
    status
        The status that the call returned.
    value
        An `rvm_value *` with the error of the call.  The error is released.
    where
        Where the call was made.  Unless empty, it is placed before the message.
    """
    exception, trace = read_failure(status, value)
    if where:
        exception.args = (f"{where}: {exception}",)
    if trace:
        exception.add_note(terminal_message(trace))
    return exception


def read_failure(status: int, value: Any) -> tuple[RelvmError, str]:
    """Return the exception for a failed call, and the stack trace of the machine as text.

    value: an `rvm_value *` with the error of the call, which is released.
    """
    message, trace = STATUS[status].meaning, ""
    if value.tag == _ERROR:
        error = getattr(value, "as").error
        message = _text(error.message)
        trace = _text(error.trace) if error.trace else ""
    lib.rvm_value_release(value)
    return _CLASSES[status](message), trace


def borrowed_failure(value: Any) -> RelvmError:
    """Return the exception for an error that the machine is still propagating.  The error is not released.

    value: an `rvm_value *` with tag ERROR.
    """
    error = getattr(value, "as").error
    return _CLASSES[error.status](_text(error.message))


def uncopyable(what: Any, instead: str = "pickle its executable and create a machine from it") -> RelvmTypeError:
    """Return the error for copying or pickling `what`, a part of a machine.

    instead: the end of the message, which says what the caller should do instead.
    """
    return RelvmTypeError(f"a {type(what).__name__} cannot be copied or pickled; {instead}")


def _text(string: Any) -> str:
    return ffi.string(string).decode(errors="replace")
