"""Helpers that read the contents of a figure."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle


def boxes(axes: Axes) -> list[tuple[str, float, float, float, float]]:
    """Return the boxes that draw_boxes has drawn: name, first and last point, lower and upper end."""
    drawn = [(collection.get_gid(), collection.get_paths()[0].get_extents()) for collection in axes.collections]
    return [(name, box.x0, box.x1, box.y0, box.y1) for name, box in drawn]


def rectangles(axes: Axes) -> dict[str, tuple[float, float, float, float]]:
    """Return the left, right, top and bottom of the items that draw_graph has drawn, by title.  Titles are distinct."""
    found = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    places = {
        patch.get_gid(): (
            patch.get_x(),
            patch.get_x() + patch.get_width(),
            patch.get_y(),
            patch.get_y() + patch.get_height(),
        )
        for patch in found
    }
    assert len(places) == len(found)
    return places


def arrows(axes: Axes) -> list[str]:
    """Return the arrows that draw_graph has drawn as `source -> target`, with the titles of the items."""
    return [patch.get_gid() for patch in axes.patches if isinstance(patch, FancyArrowPatch)]


def is_inside(inner: tuple[float, ...], outer: tuple[float, ...]) -> bool:
    """Return whether a rectangle is inside another."""
    return outer[0] < inner[0] and inner[1] < outer[1] and outer[2] < inner[2] and inner[3] < outer[3]
