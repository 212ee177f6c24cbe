"""Callbacks from C to Python: their error handling, and the hooks that the machine calls."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from relvm._native import ffi, lib
from relvm.errors import RelvmUnsupportedError
from relvm.runtime.binding import Objects
from relvm.runtime.binding import active as active_objects
from relvm.runtime.convert import all_to_python
from relvm.runtime.status import STATUS_NUMBERS


def handle_callback_error(kind: type[BaseException], exception: BaseException, traceback: TracebackType) -> int:
    """Handle an exception that a callback raised: store it in the machine, and return an error status.

    The status ends the run in C.  cffi calls this function for each callback that is defined with
    ffi.def_extern(onerror=handle_callback_error).  Such a callback must have a parameter `result` for the error.
    """
    result = traceback.tb_frame.f_locals["result"]
    message = store_exception(active_objects(), exception.with_traceback(traceback))
    return lib.rvm_fail(result, STATUS_NUMBERS["CALLBACK_ERROR"], b"%s", ffi.new("char[]", message))


def store_exception(objects: Objects | None, exception: BaseException) -> bytes:
    """Store an exception, so that the current call of the machine raises it.  Return its message.

    objects: the Python side of the machine, or None if the machine was not called from Python.
    """
    if objects is not None:
        objects.exception = exception
    kind = type(exception).__name__
    try:
        return f"{kind}: {exception}".encode(errors="replace")
    except BaseException:  # __str__ of the exception fails, but the run must end
        return kind.encode(errors="replace")


def calling_machine(name: str) -> Any:
    """Return the Python side (an Objects) of the machine that called the callback `name`.

    Raise RelvmUnsupportedError if the machine was not called from Python.
    """
    objects = active_objects()
    if objects is None:
        raise no_python_caller_error(name)
    return objects


def no_python_caller_error(name: str) -> RelvmUnsupportedError:
    """Return the error for a machine that calls the Python function `name` without having been called from Python."""
    return RelvmUnsupportedError(
        f"{name}: a Python function can only be called by a machine that was called from Python"
    )


@ffi.def_extern(onerror=handle_callback_error)
def relvm_py_print(host: Any, arguments: Any, count: int, result: Any) -> int:
    objects = calling_machine("vm.builtin.print")
    outer, objects.converted_bytes = objects.converted_bytes, 0
    try:
        values = all_to_python(objects, ffi.cast("int64_t *", arguments), count)
    finally:
        objects.converted_bytes = outer
    objects.print(*values)
    return 0


@ffi.def_extern(onerror=handle_callback_error)
def relvm_py_poll(host: Any, result: Any) -> int:
    """Switch to native code if it is ready, and let Python handle signals.  Return 0, the status of success.

    A machine calls this callback regularly.  Ctrl-C raises KeyboardInterrupt during this call.
    """
    objects = active_objects()
    if objects is not None:
        objects.poll()
    return 0
