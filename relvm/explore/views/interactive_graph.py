"""Interactive graphs: HTML pages with zoom, search, and boxes that open and close."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relvm.data_classes import dataclass
from relvm.display import Displayed
from relvm.errors import RelvmArgumentError, RelvmUnsupportedError, expect_type
from relvm.explore.draw.box_layout import box_layouts
from relvm.explore.draw.graph import (
    LINE,
    PAD,
    SCALE,
    Arrow,
    Graph,
    Item,
    all_items,
    collapse,
    format_graph,
    text_size,
)
from relvm.explore.draw.graph_figure import draw_graph
from relvm.explore.draw.html_page import as_iframe, fill_template
from relvm.explore.draw.sugiyama import Layout
from relvm.explore.selection import choose_function, run_to_stage
from relvm.explore.views.bookkeeping import bookkeeping_keys, hide_bookkeeping
from relvm.explore.views.call_graph import calls_with_kernels
from relvm.explore.views.dataflow import LEGEND, function_graph, truncate
from relvm.explore.views.name_scopes import group_by_scope
from relvm.explore.views.node_details import NodeDetails
from relvm.explore.views.repeated_blocks import fold_repeats
from relvm.explore.views.size_names import SizeNames
from relvm.ir.expr import Binding, KernelCall, Module, PackedCall, Var
from relvm.ir.node import walk
from relvm.ir.verifier import Stage
from relvm.passes.pass_manager import Pass, run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.quoting import terminal
from relvm.runtime.file_io import complete_file
from relvm.vm import Profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_PICTURED = 100  # maximum number of items of a graph that is also a picture, for notebooks that are not trusted
_SCRIPTS = ("settings.js", "graph.js", "search_bar.js", "graph_panel.js", "graph_keys.js")


@dataclass(frozen=True, repr=False)
class GraphPage(Displayed):
    """An interactive graph with boxes that open and close.  str() returns the graph as text.

    Attributes
    ----------
    title
        Title of the page.
    graph
        The graph to show.
    depth
        Number of levels of boxes that are open at first.
    profile
        The profile whose times color the nodes, or None.
    kernels
        For each variable that a kernel or packed function computes, the name of that function.
    stage
        Name of the compilation stage that the graph shows, or "".
    """

    title: str
    graph: Graph
    depth: int
    profile: Profile | None = None
    kernels: Mapping[Var, str] = field(default_factory=dict, hash=False)
    stage: str = ""

    def figure(self, depth: int | None = None) -> Figure:
        """Draw the graph without bookkeeping, as a figure in which `depth` levels of boxes are open.

        The default is the number of levels that are open when the page is first shown (the attribute `depth`).

        Raises
        ------
        RelvmArgumentError
            `depth` is negative.
        RelvmUnsupportedError
            matplotlib is not installed.
        """
        levels = self.depth if depth is None else _expect_depth(depth)
        return draw_graph(self._shown(levels), self.title)

    def _shown(self, depth: int) -> Graph:
        """Return the graph without bookkeeping, in which `depth` levels of boxes are open."""
        return collapse(hide_bookkeeping(self.graph), depth)

    def page(self) -> str:
        """Return the HTML page, which needs no network."""
        return self._page(in_stages=False)

    def embedded_page(self) -> str:
        """Return the HTML page for embedding in the page of an Exploration.  Its nodes link to lines of that page."""
        return self._page(in_stages=True)

    def _page(self, *, in_stages: bool) -> str:
        numbers = {item.key: number for number, item in enumerate(all_items(self.graph.items))}
        details = NodeDetails(numbers, self.kernels)
        hidden = bookkeeping_keys(self.graph)
        views = [hide_bookkeeping(self.graph), self.graph] if hidden else [self.graph]
        layouts: dict[Hashable, Layout] = {}
        data = {
            "items": _items_as_json(self.graph.items, numbers, details, {}),
            "hidden": [numbers[key] for key in hidden],
            "views": [_view_as_json(view, numbers, layouts) for view in views],
            "sizes": self.graph.sizes,
            "legend": self.graph.legend,
            "depth": self.depth,
            "measures": {"line": LINE * SCALE, "pad": PAD * SCALE},
            "stage": self.stage if in_stages else "",
            "origins": details.origins,
            "constants": details.constants,
            "profile": _profile_data(self.profile),
        }
        return fill_template("graph", _SCRIPTS, self.title, data)

    def save(self, path: str | Path) -> None:
        """Write the page to the HTML file `path`."""
        with complete_file(path) as partial:
            partial.write_text(self.page(), encoding="utf-8")

    def __str__(self) -> str:
        return format_graph(self.graph)

    def picture(self) -> bytes | None:
        """Return the picture of `figure` in the format PNG.

        Return None if matplotlib is not installed, or the picture would be too large for a notebook.
        """
        shown = self._shown(self.depth)
        if len(list(all_items(shown.items))) > _MAX_PICTURED:
            return None
        try:
            figure = draw_graph(shown, self.title)
        except RelvmUnsupportedError:
            return None
        return figure.png()

    def _repr_html_(self) -> str:
        return as_iframe(self.page(), repr(self), self.picture())


def browse_dataflow(
    module: Module,
    function: str | None = None,
    *,
    depth: int = 0,
    scopes: bool = True,
    profile: Profile | None = None,
    target: str = "c",
    fused: bool = True,
) -> GraphPage:
    """Return the graph of `draw_dataflow` as an interactive page, with boxes for kernels, ifs, branches and scopes.

    Parameters
    ----------
    module
        The module from a front end.
    target
        The form of kernels: "c", "bytecode" or "numpy".
    fused
        Whether operators are fused into common kernels.
    function
        Name of the function.  By default the page shows all functions.  If there are several, each is a box.
    depth
        Number of levels of boxes that are open at first.  Further boxes of scopes and repeated blocks are open if the
        whole graph can then be read on the screen.
    scopes
        Whether to group the nodes of an ONNX model into boxes by their hierarchical names.  For example,
        /encoder/layer.0/MatMul is in the box layer.0 inside the box encoder.
    profile
        The result of `VirtualMachine.profile` for the module, built for the same target.  The nodes are colored by
        their times in the profile.

    Raises
    ------
    RelvmTypeError
        An argument has the wrong type.
    RelvmNameError
        The function does not exist.
    RelvmArgumentError
        `depth` is negative, the target is unknown, or the profile belongs to another module.

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
    expect_type("scopes", scopes, bool, "True or False")
    built = run_to_stage(module, Stage.ANF, target, fused=fused)
    steps = build_pipeline(target, fused=fused)
    lowering = [step for step in steps if step.name == "lower_to_kernels"]
    stage = last_pass(steps, Stage.ANF)
    depth = _expect_depth(depth)
    lowered = run_passes(built, lowering)
    return dataflow_page(built, lowered, function, stage=stage, depth=depth, scopes=scopes, profile=profile)


def last_pass(steps: Sequence[Pass], stage: Stage) -> str:
    """Return the name of the last pass in `steps` whose result is at `stage` or an earlier stage."""
    return [step.name for step in steps if step.to <= stage][-1]


def dataflow_page(
    built: Module,
    lowered: Module,
    function: str | None = None,
    *,
    stage: str,
    depth: int = 0,
    scopes: bool = True,
    profile: Profile | None = None,
) -> GraphPage:
    """Return the same page as `browse_dataflow`, but from modules on which the passes have already run.

    A caller who has compiled the module need not run the passes again.

    Parameters
    ----------
    built
        The module at stage ANF.
    lowered
        The module after the pass lower_to_kernels.
    stage
        Name of the pass whose result `built` is.
    function
        Name of the function, or None for all functions.
    depth
        Number of levels of boxes that are open at first.
    scopes
        Whether to group the nodes of an ONNX model into boxes by their hierarchical names.
    profile
        The profile whose times color the nodes, or None.
    """
    name = None if function is None else choose_function(built, function)
    chosen = [each for each in built.functions if name in (None, each.name)]
    kernels = _kernel_names(lowered)
    if profile is not None:
        _expect_profile(profile, set(kernels.values()))
    items: list[Item] = []
    arrows: list[Arrow] = []
    sizes = SizeNames(chosen)
    for each in chosen:
        graph = function_graph(each, sizes)
        inside = group_by_scope(graph.items, each.name) if scopes else graph.items
        arrows += graph.arrows
        box = Item(("function", each.name), f"function {terminal(each.name)}", "function", inside=inside)
        items += inside if len(chosen) == 1 else [replace(box, detail=truncate(sizes.format(each.type)))]
    title = chosen[0].name if len(chosen) == 1 else "dataflow"
    graph = fold_repeats(Graph(tuple(items), tuple(arrows), sizes.sizes, LEGEND))
    return GraphPage(title, graph, depth, profile, kernels, stage)


def browse_calls(module: Module, *, depth: int = 0, target: str = "c", fused: bool = True) -> GraphPage:
    """Return the call graph as an interactive page.  Each function is a box that contains the kernels that the function
    calls.  The boxes can be opened and closed.

    Parameters
    ----------
    module
        The module from a front end.
    target
        The form of kernels: "c", "bytecode" or "numpy".
    fused
        Whether operators are fused into common kernels.
    depth
        Whether the boxes are open when the page is first shown: 1 for open, 0 for closed.

    Raises
    ------
    RelvmArgumentError
        The target is unknown, or `depth` is negative.
    """
    return GraphPage("calls", calls_with_kernels(module, target=target, fused=fused), _expect_depth(depth))


def _expect_depth(depth: int) -> int:
    if depth < 0:
        raise RelvmArgumentError(f"depth={depth}: expected an integer of at least 0")
    return depth


def _expect_profile(profile: Profile, names: set[str]) -> None:
    expect_type("profile", profile, Profile, "a Profile")
    kernels = [row.name for row in profile.rows if row.kind == "kernel"]
    unknown = [name for name in kernels if name not in names]
    if unknown:
        raise RelvmArgumentError(
            f"profile: the module has no kernel {unknown[0]}; profile a machine that is built from this module for the"
            " same target"
        )


def _kernel_names(lowered: Module) -> dict[Var, str]:
    """Return the names of the kernels and packed functions in a module, by the variable that they compute.

    lowered: a module at stage LOWERED.
    """
    found: dict[Var, str] = {}
    for function in lowered.functions:
        for part in walk(function.body):
            match part:
                case Binding(var, KernelCall(name) | PackedCall(name)):
                    found[var] = name
    return found


def _view_as_json(graph: Graph, numbers: Mapping[Hashable, int], layouts: dict[Hashable, Layout]) -> dict[str, Any]:
    """Return the arrows of a graph and the layout of its boxes as JSON data.

    numbers: the number of each item.
    layouts: the known layouts of boxes, to which this function adds those that it computes.
    """
    arrows = [[numbers[each.source], numbers[each.target], each.marked] for each in graph.arrows]
    return {"arrows": arrows, "boxes": box_layouts(graph, numbers, layouts)}


def _items_as_json(
    items: tuple[Item, ...], numbers: Mapping[Hashable, int], details: NodeDetails, used: dict[str, int]
) -> list[dict[str, Any]]:
    """Return items as JSON data for the page's scripts, in which items have numbers instead of keys.

    numbers: the number of each item, by the key of the item.
    details: the source of further details of the items.
    used: the number of items so far, by name.  This function updates the dict, and uses it to make links unique: the
    link to the second item of a name is `name~2`.
    """
    found = []
    for item in items:
        width, height = text_size(item)
        name = item.name or item.label
        used[name] = used.get(name, 0) + 1
        data = {
            "key": numbers[item.key],
            "link": name if used[name] == 1 else f"{name}~{used[name]}",
            "label": item.label,
            "name": item.name,
            "lines": item.lines,
            "kind": item.kind,
            "size": [round(width * SCALE, 1), round(height * SCALE, 1)],
            **details.details_of(item),
        }
        if item.function:
            data["function"] = numbers.get(("function", item.function))
        if item.inside:
            data["inside"] = _items_as_json(item.inside, numbers, details, used)
        found.append(data)
    return found


def _profile_data(profile: Profile | None) -> dict[str, Any] | None:
    if profile is None:
        return None
    rows = {
        row.name: {
            "kind": row.kind,
            "count": row.count,
            "seconds": row.seconds,
            "share": row.share,
            "bytes": row.bytes,
            "operations": row.operations,
        }
        for row in profile.rows
        if row.kind in ("kernel", "packed")
    }
    return {"function": profile.function, "seconds": profile.seconds, "rows": rows}
