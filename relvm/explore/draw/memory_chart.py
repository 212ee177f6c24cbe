"""Chart of memory over time: bytes against points of a program, with a box for each block of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from relvm.quoting import svg_id, svg_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABEL_FRACTION = 0.03  # boxes smaller than this fraction of all bytes have no label
_LETTERS = 140  # number of characters that fit in the width of a chart


class Box(NamedTuple):
    """A block of memory: `size_bytes` bytes at `offset`, in use at every point from `first` to `last` inclusive."""

    name: str
    offset: int
    size_bytes: int
    first: int
    last: int


def draw_boxes(axes: Axes, boxes: Sequence[Box], size_bytes: int, bound_bytes: int) -> None:
    """Draw boxes, a line for the bytes in use at each point, and a dashed line at `bound_bytes`.

    bound_bytes: the maximum of the bytes in use, which is a lower bound of the memory that the boxes need.
    size_bytes: the end of the vertical axis.
    """
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import EngFormatter

    points = range(max((box.last for box in boxes), default=0) + 1)
    for i, box in enumerate(boxes):
        span, place = [(box.first, box.last + 1 - box.first)], (box.offset, box.size_bytes)
        drawn = axes.broken_barh(span, place, facecolor=f"C{i % 10}", edgecolor="white", alpha=0.6)
        drawn.set_gid(svg_id(box.name))
        label = _truncate_to_box(box.name, (box.last + 1 - box.first) / len(points))
        if label and box.size_bytes >= _LABEL_FRACTION * size_bytes:
            middle = (box.first + box.last + 1) / 2, box.offset + box.size_bytes / 2
            text = axes.text(*middle, svg_text(label), ha="center", va="center", fontsize=7, clip_on=True, zorder=5)
            text.set_path_effects([withStroke(linewidth=2, foreground="white", alpha=0.8)])
    axes.step([*points, len(points)], [*bytes_in_use(boxes, points), 0], where="post", color="black", label="alive")
    axes.axhline(bound_bytes, color="black", linestyle="dashed", label=f"lower bound: {bound_bytes:,} bytes")
    axes.set(xlabel="statement", ylabel="memory", xlim=(0, len(points)), ylim=(0, max(1, size_bytes) * 1.05))
    locator: Any = axes.xaxis.get_major_locator()
    locator.set_params(integer=True)
    axes.yaxis.set_major_formatter(EngFormatter(unit="B"))
    draw_legend(axes)


def draw_legend(axes: Axes) -> None:
    """Draw the legend below the chart, so that it does not cover the chart."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, fontsize=8, frameon=False)


def _truncate_to_box(name: str, share: float) -> str:
    """Shorten a name so that it fits in a box.  share: the width of the box as a fraction of the chart's width."""
    letters = int(_LETTERS * share)
    return name if len(name) <= letters else f"{name[: letters - 1]}…" if letters >= 3 else ""


def bytes_in_use(boxes: Sequence[Box], points: range) -> list[int]:
    """Return, for each point in time, the total size of the boxes that are in use at that point.

    points: the points in time, a range that starts at 0.
    """
    changes = [0] * (len(points) + 1)
    for box in boxes:
        changes[box.first] += box.size_bytes
        changes[box.last + 1] -= box.size_bytes
    total, bytes_at = 0, []
    for point in points:
        total += changes[point]
        bytes_at.append(total)
    return bytes_at
