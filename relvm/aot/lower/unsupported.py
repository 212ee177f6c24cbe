"""The error for constructs that ahead-of-time export does not support."""

from __future__ import annotations

from typing import NoReturn

from relvm.errors import RelvmUnsupportedError, located


def refuse(function: str, place: str, what: str, origin: str) -> NoReturn:
    """Raise RelvmUnsupportedError.

    Parameters
    ----------
    function, place
        Name of the function, and of the variable bound to the construct.  For ONNX models it is the name of a value.
    what
        The unsupported construct, and the alternative if there is one.
    origin
        Source location of the construct or near it, or empty if it is unknown.
    """
    raise located(RelvmUnsupportedError(f"{function}: {place}: ahead-of-time export does not support {what}"), origin)
