"""C statements that end a function with an error."""

from __future__ import annotations

from relvm.aot.config import CallKind
from relvm.codegen.c.expression import CExpression, call, cast, primary
from relvm.quoting import c_string


def failure(calls: CallKind, status: str, message: str, *numbers: CExpression) -> str:
    """Return a C statement that returns an error, which has a message in a hosted export.

    Parameters
    ----------
    calls
        The calling convention of kernels.  Only functions of a hosted export (PACKED) have a parameter for messages.
    status
        The name of the status, such as "SHAPE_ERROR".
    message
        The message, as a format for printf.
    numbers
        The numbers in the message: an int64 for each %lld, and a double for each %.17g.
    """
    if calls is not CallKind.PACKED:
        return f"return RVM_{status};"
    is_float = [text.startswith(".17g") for text in message.replace("%%", "").split("%")[1:]]
    arguments = (
        number if floating else cast("long long", number) for number, floating in zip(numbers, is_float, strict=True)
    )
    fail = call("rvm_api->fail", primary("result"), primary(f"RVM_{status}"), primary(c_string(message)), *arguments)
    return f"return {fail};"


def printf(text: str) -> str:
    """Return a printf format that prints `text`."""
    return text.replace("%", "%%")
