"""Graphs to look through: pages on which a click opens or closes a box."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relvm.errors import RelvmArgumentError
from relvm.explore.draw.graph import COLOURS, GAP, LETTER, LINE, PAD, Graph, Item, collapsed, draw_graph, format_graph
from relvm.explore.draw.html_page import filled, framed
from relvm.explore.draw.sugiyama import LANE, SWEEPS
from relvm.explore.views.call_graph import nested_calls
from relvm.explore.views.dataflow import dataflow_graph
from relvm.ir.expr import Module
from relvm.runtime.file_io import complete_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MEASURES = {"letter": LETTER, "line": LINE, "pad": PAD, "gap": GAP, "lane": LANE, "sweeps": SWEEPS}


@dataclass(frozen=True)
class GraphPage:
    """A graph whose boxes open and close by a click.  In Jupyter it is shown as that; str() of it is text.

    Attributes
    ----------
    title
        Of the page.
    graph
        What is on it.
    depth
        How many levels of boxes are open at first.
    """

    title: str
    graph: Graph
    depth: int

    def figure(self, depth: int | None = None) -> Figure:
        """A picture with so many levels of boxes open; by default as many as the page has at first.

        Raises
        ------
        RelvmArgumentError
            `depth` is negative.
        RelvmUnsupportedError
            matplotlib is not installed.
        """
        levels = self.depth if depth is None else _expect_depth(depth)
        return draw_graph(collapsed(self.graph, levels), self.title)

    def page(self) -> str:
        """The HTML, which needs no network."""
        numbers: dict[Hashable, int] = {}
        items = [_plain(item, numbers) for item in self.graph.items]
        arrows = [[numbers[arrow.source], numbers[arrow.target], arrow.marked] for arrow in self.graph.arrows]
        data = {"items": items, "arrows": arrows, "depth": self.depth, "colours": COLOURS, "measures": _MEASURES}
        return filled("graph", ("layered.js", "graph.js"), self.title, data)

    def save(self, path: str | Path) -> None:
        """Write the page to `path`, an HTML file."""
        with complete_file(path) as partial:
            partial.write_text(self.page(), encoding="utf-8")

    def __str__(self) -> str:
        return format_graph(self.graph)

    def _repr_html_(self) -> str:
        return framed(self.page())


def browse_dataflow(
    module: Module, function: str | None = None, *, depth: int = 0, target: str = "c", fused: bool = True
) -> GraphPage:
    """What `draw_dataflow` draws, as a page: its boxes (kernels, ifs, branches) open and close by a click.

    Parameters
    ----------
    module, function, target, fused
        As `draw_dataflow` takes them.
    depth
        How many levels of boxes are open at first.

    Raises
    ------
    RelvmNameError, RelvmArgumentError
        As `draw_dataflow` does.

    Examples
    --------
    >>> from relvm.explore import browse_dataflow
    >>> from relvm.frontend.text import parse_module
    >>> page = browse_dataflow(parse_module("def main(x: f32[n]) -> f32[n] { return relu(exp(x)) }"))
    >>> print(page, end="")
    x: f32[n]
    result = exp relu: f32[n]
      value = exp: f32[n]  <- x
      result_1 = relu: f32[n]  <- value
    return result  <- result
    """
    graph, name = dataflow_graph(module, function, target, fused)
    return GraphPage(name, graph, _expect_depth(depth))


def browse_calls(module: Module, *, depth: int = 0, target: str = "c", fused: bool = True) -> GraphPage:
    """The call graph as a page: a function is a box of the kernels that it calls, which opens and closes by a click.

    Parameters
    ----------
    module, target, fused
        As `call_graph` takes them.
    depth
        1: the boxes are open at first.

    Raises
    ------
    RelvmArgumentError
        There is no such target; `depth` is negative.
    """
    return GraphPage("calls", nested_calls(module, target=target, fused=fused), _expect_depth(depth))


def _expect_depth(depth: int) -> int:
    if depth < 0:
        raise RelvmArgumentError(f"depth={depth}: expected 0 or more")
    return depth


def _plain(item: Item, numbers: dict[Hashable, int]) -> dict[str, Any]:
    """An item as JSON has it, its key being a number."""
    key = numbers.setdefault(item.key, len(numbers))
    inside = [_plain(each, numbers) for each in item.inside]
    return {"key": key, "text": item.text, "kind": item.kind, "inside": inside}
