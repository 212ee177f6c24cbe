"""Interactive graphs: HTML pages on which a click opens or closes a box."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relvm.display import Displayed
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


@dataclass(frozen=True, repr=False)
class GraphPage(Displayed):
    """An interactive graph with boxes that open and close with a click.  str() returns the graph as text.

    Attributes
    ----------
    title
        Title of the page.
    graph
        The graph to show.
    depth
        Number of levels of boxes that are open at first.
    """

    title: str
    graph: Graph
    depth: int

    def figure(self, depth: int | None = None) -> Figure:
        """Draw the graph with `depth` levels of boxes open.  The default is the page's initial number of levels.

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
        """Return the HTML page, which needs no network."""
        numbers: dict[Hashable, int] = {}
        items = [_plain(item, numbers) for item in self.graph.items]
        arrows = [[numbers[arrow.source], numbers[arrow.target], arrow.marked] for arrow in self.graph.arrows]
        data = {"items": items, "arrows": arrows, "depth": self.depth, "colours": COLOURS, "measures": _MEASURES}
        return filled("graph", ("layered.js", "graph.js"), self.title, data)

    def save(self, path: str | Path) -> None:
        """Write the page to the HTML file `path`."""
        with complete_file(path) as partial:
            partial.write_text(self.page(), encoding="utf-8")

    def __str__(self) -> str:
        return format_graph(self.graph)

    def _repr_html_(self) -> str:
        return framed(self.page())


def browse_dataflow(
    module: Module, function: str | None = None, *, depth: int = 0, target: str = "c", fused: bool = True
) -> GraphPage:
    """Return the graph of `draw_dataflow` as an interactive page, with boxes for kernels, ifs and branches.

    Parameters
    ----------
    module, function, target, fused
        As for `draw_dataflow`.
    depth
        Number of levels of boxes that are open at first.

    Raises
    ------
    RelvmNameError, RelvmArgumentError
        As for `draw_dataflow`.

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
    """Return the call graph as an interactive page.  A function is a box with the kernels that it calls.

    Parameters
    ----------
    module, target, fused
        As for `call_graph`.
    depth
        1 if the boxes are open at first, 0 if they are closed.

    Raises
    ------
    RelvmArgumentError
        The target is unknown, or `depth` is negative.
    """
    return GraphPage("calls", nested_calls(module, target=target, fused=fused), _expect_depth(depth))


def _expect_depth(depth: int) -> int:
    if depth < 0:
        raise RelvmArgumentError(f"depth={depth}: expected an integer of at least 0")
    return depth


def _plain(item: Item, numbers: dict[Hashable, int]) -> dict[str, Any]:
    """Return an item as JSON data, in which its key is replaced by a number.  numbers: the numbers of keys so far."""
    key = numbers.setdefault(item.key, len(numbers))
    inside = [_plain(each, numbers) for each in item.inside]
    return {"key": key, "text": item.text, "kind": item.kind, "inside": inside}
