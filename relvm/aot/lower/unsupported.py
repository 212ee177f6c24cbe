"""The error for constructs that ahead-of-time export does not support."""

from __future__ import annotations

from typing import NoReturn

from relvm.errors import RelvmUnsupportedError, located


def refuse(function: str, variable: str, what: str, origin: str) -> NoReturn:
    """Raise RelvmUnsupportedError for an unsupported construct.

    Parameters
    ----------
    function
        The name of the function that contains the construct.
    variable
        The name of the variable that is bound to the construct.  In ONNX models, it is the name of a value.
    what
        The unsupported construct, and the alternative if there is one.
    origin
        The source location of the construct, or a location near it.  Empty if it is unknown.
    """
    raise located(
        RelvmUnsupportedError(f"{function}: {variable}: ahead-of-time export does not support {what}"), origin
    )
