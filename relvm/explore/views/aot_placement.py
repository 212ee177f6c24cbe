"""Chart of an export's memory: the bytes of a pool against the statements of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relvm.aot.lower.place_storage import FunctionPlacement
from relvm.aot.project.build import AotProgram
from relvm.errors import RelvmNameError, expect_type, near_matches
from relvm.explore.draw.matplotlib_import import new_figure
from relvm.explore.draw.memory_chart import Box, draw_boxes
from relvm.quoting import svg_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    expect_type("program", program, AotProgram, "an AotProgram")
    names = list(program.placements)
    name = names[-1] if function is None else function
    if name not in program.placements:
        raise RelvmNameError(f"no function {name}{near_matches(name, names)}")
    found = program.placements[name]
    pools = [number for number, size in enumerate(found.size_bytes) if size] or [0]
    figure = new_figure(10, 1 + 4 * len(pools))
    for axes, number in zip(figure.subplots(len(pools), squeeze=False)[:, 0], pools, strict=True):
        size = found.size_bytes[number]
        draw_boxes(axes, _boxes(found, number), size, found.lower_bound_bytes[number])
        axes.set_title(svg_text(f"{name}: {program.config.pools[number].name}, {size:,} bytes"))
    return figure


def _boxes(found: FunctionPlacement, pool: int) -> list[Box]:
    blocks = (block for block in found.placed if block.slot.pool == pool)
    return [Box(block.name, block.slot.offset, block.size_bytes, block.first, block.last) for block in blocks]
