"""What has no form without a machine is refused, by what it is and where it stands."""

from __future__ import annotations

from typing import NoReturn

from relvm.errors import RelvmUnsupportedError, located


def refuse(function: str, place: str, what: str, origin: str) -> NoReturn:
    """Raises RelvmUnsupportedError.

    Parameters
    ----------
    function, place
        The function, and in it the variable that is bound to what is refused; an ONNX model's are named as its values.
    what
        The construct, and what would do instead where something would.
    origin
        Where in the source that is, or near it; empty where it is not known.
    """
    raise located(RelvmUnsupportedError(f"{function}: {place}: ahead of time there is no {what}"), origin)
