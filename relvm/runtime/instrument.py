"""Instruments: Python callbacks that a machine calls before and after each call."""

from __future__ import annotations

from enum import Enum
from typing import Any

from relvm._native import ffi, lib
from relvm.data_classes import dataclass
from relvm.errors import RelvmTypeError, RelvmUnsupportedError
from relvm.runtime.binding import Objects
from relvm.runtime.callbacks import calling_machine, handle_callback_error
from relvm.runtime.convert import to_python
from relvm.tables import KINDS, STATUS, TAGS, numbers

_CONTEXT = numbers(TAGS)["CONTEXT"]
_OK = numbers(STATUS)["OK"]


class _Answer(Enum):
    """The type of SKIP.  An instrument returns SKIP before a call to prevent the call."""

    SKIP = "skip"


SKIP = _Answer.SKIP


@dataclass(frozen=True)
class Opaque:
    """A placeholder for a machine value that cannot be converted to Python.

    tag: the kind of the value, such as "storage".
    """

    tag: str


def python_instrument() -> Any:
    """Return an instrument, the C callbacks that run before and after each call.

    These callbacks pass every call to `Objects.instrument`.
    """
    hooks = {"before": lib.relvm_py_before, "after": lib.relvm_py_after}
    return ffi.new("rvm_instrument *", {"kinds": (1 << len(KINDS)) - 1, **hooks})


@ffi.def_extern(onerror=handle_callback_error)
def relvm_py_before(host: Any, function: int, arguments: Any, count: int, skip: Any, result: Any) -> int:
    objects = calling_machine("the instrument")
    answer = objects.instrument(function, True, None, _arguments_to_python(objects, arguments, count))
    if answer is not None and answer is not SKIP:
        raise RelvmTypeError(f"instrument: expected None or vm.SKIP before a call, got {answer!r}")
    skip[0] = answer is SKIP
    return 0


@ffi.def_extern(onerror=handle_callback_error)
def relvm_py_after(host: Any, function: int, arguments: Any, count: int, status: int, value: Any, result: Any) -> int:
    if status != _OK:  # the callback has already stored the exception
        return 0
    objects = calling_machine("the instrument")
    words = ffi.cast("int64_t *", value)
    objects.instrument(
        function, False, _value_to_python(objects, words, 0), _arguments_to_python(objects, arguments, count)
    )
    return 0


def _arguments_to_python(objects: Objects, arguments: Any, count: int) -> list[Any]:
    """Return the arguments of a call as Python values, without the machine itself, which some builtins receive.

    count: the number of arguments.
    """
    words = ffi.cast("int64_t *", arguments)
    return [_value_to_python(objects, words, k) for k in range(count) if words[2 * k] != _CONTEXT]


def _value_to_python(objects: Objects, words: Any, k: int) -> Any:
    try:
        return to_python(objects, words, k)
    except RelvmUnsupportedError:
        return Opaque(TAGS[words[2 * k]].name.lower())
