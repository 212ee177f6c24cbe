"""What pictures are made with, which is installed where they are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relvm.errors import RelvmUnsupportedError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that many inches, which belongs to no window.  Raises RelvmUnsupportedError: no matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise RelvmUnsupportedError("pictures need matplotlib: pip install 'relvm[explore]'") from None
    return Figure((width, height), layout="constrained")
