"""Where an export keeps its tensors, drawn: bytes of a pool against the statements of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relvm.aot.placement import FunctionPlacement, Placed
from relvm.aot.project import AotProgram
from relvm.errors import RelvmNameError, near_matches
from relvm.explore.extras import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABELLED = 0.03  # of a pool's bytes: what takes less has no name in the picture


def draw_placement(program: AotProgram, function: str | None = None) -> Figure:
    """A picture of a function's pools.

    Each tensor is a box: as high as it has bytes, from the first statement that names it to the last.  The line is how
    many bytes are alive at each statement, the dashed one the most that ever are, below which no placement can be.

    Parameters
    ----------
    program
        An export.
    function
        By default the entry, whose picture has those of the functions that it calls as boxes.

    Returns
    -------
    matplotlib.figure.Figure
        Which `savefig` writes, and Jupyter shows.

    Raises
    ------
    RelvmNameError
        There is no such function.
    RelvmUnsupportedError
        matplotlib is not installed.
    """
    names = list(program.placements)
    name = names[-1] if function is None else function
    if name not in program.placements:
        raise RelvmNameError(f"no function {name}{near_matches(name, names)}")
    found = program.placements[name]
    pools = [number for number, size in enumerate(found.size_bytes) if size] or [0]
    figure = new_figure(10, 1 + 4 * len(pools))
    for axes, number in zip(figure.subplots(len(pools), squeeze=False)[:, 0], pools, strict=True):
        title = f"{name}: {program.config.pools[number].name}, {found.size_bytes[number]:,} bytes"
        _draw_pool(axes, found, number, title)
    return figure


def _draw_pool(axes: Axes, found: FunctionPlacement, number: int, title: str) -> None:
    size, bound = found.size_bytes[number], found.lower_bound_bytes[number]
    blocks = [block for block in found.placed if block.slot.pool == number]
    for i, block in enumerate(blocks):
        span = [(block.first, block.last + 1 - block.first)]
        place = (block.slot.offset, block.size_bytes)
        box = axes.broken_barh(span, place, facecolor=f"C{i % 10}", edgecolor="white", alpha=0.6)
        box.set_gid(block.name)
        if block.size_bytes >= _LABELLED * size:
            middle = (block.first + block.last + 1) / 2, block.slot.offset + block.size_bytes / 2
            axes.text(*middle, block.name, ha="center", va="center", fontsize=7, clip_on=True)
    points = range(max((block.last for block in blocks), default=0) + 1)
    axes.step([*points, len(points)], [*_alive(blocks, points), 0], where="post", color="black", label="alive")
    axes.axhline(bound, color="black", linestyle="dashed", label=f"at least {bound:,}")
    axes.set(title=title, xlabel="statement", ylabel="bytes", xlim=(0, len(points)), ylim=(0, max(1, size) * 1.05))
    axes.legend(loc="upper right", fontsize=8)


def _alive(blocks: list[Placed], points: range) -> list[int]:
    """The bytes that are alive at each point."""
    changes = [0] * (len(points) + 1)
    for block in blocks:
        changes[block.first] += block.size_bytes
        changes[block.last + 1] -= block.size_bytes
    total, alive = 0, []
    for point in points:
        total += changes[point]
        alive.append(total)
    return alive
