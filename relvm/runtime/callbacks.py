"""What C calls back: how a Python function that it runs fails, and the machine's own hooks."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from relvm._native import ffi, lib
from relvm.errors import RelvmUnsupportedError
from relvm.quoting import terminal_lines
from relvm.runtime.binding import Objects
from relvm.runtime.binding import active as active_objects
from relvm.runtime.convert import take_all
from relvm.runtime.status import STATUS_NUMBERS


def carry(kind: type[BaseException], exception: BaseException, traceback: TracebackType) -> int:
    """Ends a callback that raised: the exception waits in the machine, and C gets an error to unwind with.

    For ffi.def_extern(onerror=carry), of functions whose parameter for the error is called `result`.
    """
    result = traceback.tb_frame.f_locals["result"]
    message = store_exception(active_objects(), exception.with_traceback(traceback))
    return lib.rvm_fail(result, STATUS_NUMBERS["CALLBACK_ERROR"], b"%s", ffi.new("char[]", message))


def store_exception(objects: Objects | None, exception: BaseException) -> bytes:
    """The message of an exception that from now on waits in the machine for its caller."""
    if objects is not None:
        objects.exception = exception
    kind = type(exception).__name__
    try:
        return f"{kind}: {exception}".encode(errors="replace")
    except BaseException:  # its own __str__ fails: whatever happens here, the run must not go on as if all were well
        return kind.encode(errors="replace")


def active(name: str) -> Any:
    """The objects of the machine that calls back.  Raises RelvmUnsupportedError: none that Python has called."""
    objects = active_objects()
    if objects is None:
        raise hostless(name)
    return objects


def hostless(name: str) -> RelvmUnsupportedError:
    """That a machine which was not called from Python calls `name`."""
    return RelvmUnsupportedError(f"{name}: a Python function needs a machine that was called from Python")


_MAX_PRINTED, _MAX_NESTED = 10_000, 50  # items of a value that is printed, and lists inside each other


def print_values(*values: Any) -> None:
    """Python's print, but texts are a program's own, and are made safe for a terminal."""
    print(*(terminal_lines(value) if isinstance(value, str) else _printed(value) for value in values))


def _printed(value: Any) -> str:
    """As `str`, but of tuples and lists the first items: one that has another twice, and so on, has no end of them."""
    left = _MAX_PRINTED

    def text(value: Any, depth: int) -> str:
        nonlocal left
        if type(value) not in (tuple, list):
            return repr(value)
        items = []
        for item in value:
            if left == 0 or depth == _MAX_NESTED:
                items.append("...")
                break
            left -= 1
            items.append(text(item, depth + 1))
        inside = ", ".join(items)
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(items) == 1 else f"({inside})"

    return text(value, 0) if type(value) in (tuple, list) else str(value)


@ffi.def_extern(onerror=carry)
def relvm_py_print(host: Any, arguments: Any, count: int, result: Any) -> int:
    objects = active("vm.builtin.print")
    outer, objects.taken = objects.taken, 0
    try:
        values = take_all(objects, ffi.cast("int64_t *", arguments), count)
    finally:
        objects.taken = outer
    objects.print(*values)
    return 0


@ffi.def_extern(onerror=carry)
def relvm_py_poll(host: Any, result: Any) -> int:
    """Lets Python handle signals, which may raise KeyboardInterrupt here, and the machine do what it waits to do."""
    objects = active_objects()
    if objects is not None:
        objects.poll()
    return 0
