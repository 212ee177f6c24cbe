"""Call graphs of modules, as networkx graphs, charts and text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import TYPE_CHECKING

from relvm.data_classes import dataclass
from relvm.directed_graph import DirectedGraph
from relvm.errors import RelvmUnsupportedError
from relvm.explore.draw.graph import Arrow, Graph, Item
from relvm.explore.draw.graph_figure import draw_graph
from relvm.explore.selection import run_to_stage
from relvm.ir.expr import Function, FunctionRef, KernelCall, Module, PackedCall, PackedRef
from relvm.ir.node import walk
from relvm.ir.verifier import Stage
from relvm.quoting import terminal

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.figure import Figure

_Node = tuple[str, str]  # kind and name

_KINDS = {"public": "operator", "private": "plain", "packed": "call", "kernel": "group"}
_LEGEND = {
    "operator": "public function",
    "plain": "private function",
    "cycle": "recursive function",
    "call": "function of the host",
    "group": "kernel",
}


def call_graph(module: Module, *, kernels: bool = False, target: str = "c", fused: bool = True) -> nx.DiGraph:
    """Return the call graph of a module after inlining and lambda lifting.

    Parameters
    ----------
    module
        The module from a front end.
    kernels
        Whether to include kernels.
    target
        The form of kernels: "c", "bytecode" or "numpy".
    fused
        Whether operators are fused into common kernels.

    Returns
    -------
    networkx.DiGraph
        The nodes are (kind, name) with the kinds "function", "packed" and "kernel".  Nodes of functions have the
        attribute `private`.  Edges lead from a function to the functions that it calls or uses as values.  The edge
        attribute `uses` is the number of uses.  The edge attribute `cycle` is true if the edge is part of a recursion.

    Raises
    ------
    RelvmArgumentError
        The target is unknown.
    RelvmUnsupportedError
        networkx is not installed.
    """
    try:
        import networkx as nx
    except ImportError:
        raise RelvmUnsupportedError("call_graph requires networkx: pip install 'relvm[explore]'") from None
    calls = _calls(module, kernels=kernels, target=target, fused=fused)
    graph = nx.DiGraph()
    for node in calls.graph:
        graph.add_node(node, **({"private": calls.is_private[node]} if node[0] == "function" else {}))
    for edge in calls.graph.edges():
        graph.add_edge(*edge, uses=calls.uses[edge], cycle=calls.is_cycle(*edge))
    return graph


@dataclass(frozen=True)
class _Calls:
    """A call graph.

    graph: its nodes are functions, kernels and packed functions.  An edge leads from a function to what it uses.
    uses: the number of uses of each edge.   is_private: for each function, whether it is private.
    """

    graph: DirectedGraph[_Node] = field(default_factory=DirectedGraph)
    uses: dict[tuple[_Node, _Node], int] = field(default_factory=dict)
    is_private: dict[_Node, bool] = field(default_factory=dict)
    component: dict[_Node, int] = field(default_factory=dict)

    def is_cycle(self, caller: _Node, used: _Node) -> bool:
        """Return whether an edge is part of a recursion."""
        return self.component[caller] == self.component[used]

    def is_recursive(self, node: _Node) -> bool:
        """Return whether a function can call itself."""
        return any(self.is_cycle(node, used) for used in self.graph.successors[node])


def _calls(module: Module, *, kernels: bool, target: str, fused: bool) -> _Calls:
    """Return the call graph of a module.  The arguments are those of `call_graph`."""
    built = run_to_stage(module, Stage.LOWERED, target, fused=fused)
    calls = _Calls()
    for function in built.functions:
        calls.graph.add_node(("function", function.name))
        calls.is_private["function", function.name] = function.private
    for function in built.functions:
        for used in _used_nodes(function):
            if used[0] != "kernel" or kernels:
                edge = ("function", function.name), used
                calls.graph.add_edge(*edge)
                calls.uses[edge] = calls.uses.get(edge, 0) + 1
    calls.component.update((node, i) for i, nodes in enumerate(calls.graph.components()) for node in nodes)
    return calls


def draw_calls(module: Module, *, kernels: bool = False, target: str = "c", fused: bool = True) -> Figure:
    """Draw the call graph with callers above callees and recursion in red.

    Public functions are blue, private ones white, packed functions orange, and kernels green.

    Parameters
    ----------
    module
        The module from a front end.
    kernels
        Whether to include kernels.
    target
        The form of kernels: "c", "bytecode" or "numpy".
    fused
        Whether operators are fused into common kernels.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, for `savefig` or for display in Jupyter.

    Raises
    ------
    RelvmArgumentError
        The target is unknown.
    RelvmUnsupportedError
        matplotlib is not installed.
    """
    calls = _calls(module, kernels=kernels, target=target, fused=fused)
    items = tuple(_item(calls, node) for node in calls.graph)
    arrows = tuple(Arrow(*edge, marked=calls.is_cycle(*edge)) for edge in calls.graph.edges())
    return draw_graph(Graph(items, arrows), "calls")


def format_calls(module: Module, *, kernels: bool = False, target: str = "c", fused: bool = True) -> str:
    """Return the call graph as text, with one line for each function.

    A line lists the functions that the function calls or uses as values, as in "f: g, h x 3" if f uses h three times.

    A function is marked `recursive` if it can call itself, directly or through other functions.

    Parameters
    ----------
    module
        The module from a front end.
    kernels
        Whether to include kernels.
    target
        The form of kernels: "c", "bytecode" or "numpy".
    fused
        Whether operators are fused into common kernels.

    Raises
    ------
    RelvmArgumentError
        The target is unknown.
    """
    calls = _calls(module, kernels=kernels, target=target, fused=fused)
    lines = []
    for node in calls.graph:
        if node[0] == "function":
            facts = (("private", calls.is_private[node]), ("recursive", calls.is_recursive(node)))
            said = [word for word, holds in facts if holds]
            about = f" ({', '.join(said)})" if said else ""
            uses = ((used, calls.uses[node, used]) for used in calls.graph.successors[node])
            called = ", ".join(f"{_label(used)} x {count}" if count > 1 else _label(used) for used, count in uses)
            lines.append(f"{terminal(node[1])}{about}: {called or 'calls nothing'}\n")
    return "".join(lines)


def calls_with_kernels(module: Module, *, target: str, fused: bool) -> Graph:
    """Return the call graph of a module, in which each function is a box that contains the kernels that it calls.

    target: the form of kernels, "c", "bytecode" or "numpy".  For another value, raise RelvmArgumentError.
    fused: whether operators are fused into common kernels.
    """
    calls = _calls(module, kernels=True, target=target, fused=fused)
    items = []
    for node in calls.graph:
        if node[0] != "kernel":
            item = _item(calls, node)
            used_kernels = (used for used in calls.graph.successors[node] if used[0] == "kernel")
            kernels = tuple(
                Item((node, used), terminal(used[1]), "group", "" if uses == 1 else f"{uses} calls")
                for used, uses in ((used, calls.uses[node, used]) for used in used_kernels)
            )
            count = f"{len(kernels)} kernel{'s' * (len(kernels) > 1)}" if kernels else ""
            detail = "\n".join(part for part in (item.detail, count) if part)
            items.append(replace(item, detail=detail, inside=kernels))
    edges = (edge for edge in calls.graph.edges() if edge[1][0] != "kernel")
    arrows = (Arrow(*edge, marked=calls.is_cycle(*edge)) for edge in edges)
    return Graph(tuple(items), tuple(arrows), legend=_LEGEND)


def _used_nodes(function: Function) -> Iterator[tuple[str, str]]:
    """Yield a pair (kind, name) for each use of a function or kernel in a function.

    The kind is "function", "packed" or "kernel".   function: a function at stage LOWERED.
    """
    for part in walk(function.body):
        match part:
            case FunctionRef(name):
                yield "function", name
            case PackedCall(name) | PackedRef(name):
                yield "packed", name
            case KernelCall(name):
                yield "kernel", name


def _label(node: tuple[str, str]) -> str:
    kind, name = node
    return terminal(name if kind == "function" else f"{kind} {name}")


def _item(calls: _Calls, node: _Node) -> Item:
    if calls.is_recursive(node):
        return Item(node, _label(node), "cycle", "recursive")
    kind = node[0] if node[0] != "function" else "private" if calls.is_private[node] else "public"
    return Item(node, _label(node), _KINDS[kind])
