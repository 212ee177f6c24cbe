"""Import of matplotlib, an optional dependency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relvm.errors import RelvmUnsupportedError

if TYPE_CHECKING:
    from relvm.explore.draw.picture import Picture


def new_figure(width: float, height: float) -> Picture:
    """Return an empty matplotlib figure, which Jupyter shows as an image.  width, height: in inches.

    Raises
    ------
    RelvmUnsupportedError
        matplotlib is not installed.
    """
    try:
        from relvm.explore.draw.picture import Picture
    except ImportError:
        raise RelvmUnsupportedError("drawing requires matplotlib: pip install 'relvm[explore]'") from None
    return Picture((width, height), layout="constrained")
