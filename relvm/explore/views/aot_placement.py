"""Chart of the memory of an ahead-of-time export: the bytes of a pool against the statements of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relvm.aot.project.build import AotProgram
from relvm.errors import RelvmNameError, expect_type, known_names
from relvm.explore.draw.matplotlib_import import new_figure
from relvm.explore.draw.memory_chart import Box, draw_boxes
from relvm.quoting import svg_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_placement(program: AotProgram, function: str | None = None) -> Figure:
    """Draw the memory pools of a function.

    Each memory pool that the function uses has its own chart.  The horizontal axis has the statements of the function,
    and the vertical axis the bytes of the pool.  Each tensor is a box, and so is the scratch memory of each
    kernel.  The height of a box is its size in bytes.  A box extends from the first statement that uses its memory to
    the last.  The solid line is the total size of the boxes in use at each statement.  The dashed line is the maximum
    of this total.  No placement of the boxes can need fewer bytes.

    Parameters
    ----------
    program
        The export.
    function
        Name of the function.  The default is the entry point.  If the function calls other functions, the memory of
        each called function is also a box.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, for `savefig` or for display in Jupyter.

    Raises
    ------
    RelvmTypeError
        `program` is not an AotProgram.
    RelvmNameError
        The function does not exist.
    RelvmUnsupportedError
        matplotlib is not installed.
    """
    expect_type("program", program, AotProgram, "an AotProgram")
    names = list(program.placements)
    name = names[-1] if function is None else function
    if name not in program.placements:
        raise RelvmNameError(f"no function {name}{known_names(name, names)}")
    found = program.placements[name]
    pools = [number for number, size in enumerate(found.size_bytes) if size] or [0]
    figure = new_figure(10, 1 + 4 * len(pools))
    for axes, number in zip(figure.subplots(len(pools), squeeze=False)[:, 0], pools, strict=True):
        size = found.size_bytes[number]
        arena = found.arenas[number]
        boxes = [Box(each.name, offset, each.size_bytes, each.first, each.last) for offset, each in arena.blocks()]
        draw_boxes(axes, boxes, size, arena.lower_bound_bytes)
        axes.set_title(svg_text(f"{name}: {program.config.pools[number].name}, {size:,} bytes"))
    return figure
