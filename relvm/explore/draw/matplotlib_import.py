"""Import of matplotlib, an optional dependency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relvm.errors import RelvmUnsupportedError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """Return an empty matplotlib figure that is not attached to a window.  width, height: in inches.

    Raises
    ------
    RelvmUnsupportedError
        matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise RelvmUnsupportedError("drawing requires matplotlib: pip install 'relvm[explore]'") from None
    return Figure((width, height), layout="constrained")
