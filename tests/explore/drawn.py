"""What tests read out of a figure."""

from __future__ import annotations

from matplotlib.axes import Axes


def boxes(axes: Axes) -> list[tuple[str, float, float, float, float]]:
    """The bars of draw_boxes: name, first, last, lowest, highest."""
    drawn = [(collection.get_gid(), collection.get_paths()[0].get_extents()) for collection in axes.collections]
    return [(name, box.x0, box.x1, box.y0, box.y1) for name, box in drawn]
