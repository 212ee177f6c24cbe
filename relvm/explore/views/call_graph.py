"""Call graphs of modules, as networkx graphs, charts and text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import networkx as nx

from relvm.explore.draw.graph import Arrow, Graph, Item
from relvm.explore.draw.graph_figure import draw_graph
from relvm.explore.selection import run_to_stage
from relvm.ir.expr import Function, FunctionRef, KernelCall, Module, PackedCall, PackedRef
from relvm.ir.node import walk
from relvm.ir.verifier import Stage
from relvm.quoting import terminal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    """
    built = run_to_stage(module, Stage.LOWERED, target, fused=fused)
    graph = nx.DiGraph()
    for function in built.functions:
        graph.add_node(("function", function.name), private=function.private)
    for function in built.functions:
        for used in _used_nodes(function):
            if used[0] != "kernel" or kernels:
                edge = ("function", function.name), used
                graph.add_edge(*edge, uses=graph.edges.get(edge, {"uses": 0})["uses"] + 1)
    part_of = {node: i for i, nodes in enumerate(nx.strongly_connected_components(graph)) for node in nodes}
    for caller, used, attributes in graph.edges(data=True):
        attributes["cycle"] = part_of[caller] == part_of[used]
    return graph


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
    graph = call_graph(module, kernels=kernels, target=target, fused=fused)
    items = tuple(_item(graph, node) for node in graph)
    arrows = tuple(Arrow(source, target, marked=cycle) for source, target, cycle in graph.edges(data="cycle"))
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
    graph = call_graph(module, kernels=kernels, target=target, fused=fused)
    lines = []
    for node, private in graph.nodes(data="private"):
        if node[0] == "function":
            said = [word for word, holds in (("private", private), ("recursive", _is_recursive(graph, node))) if holds]
            about = f" ({', '.join(said)})" if said else ""
            uses = graph.out_edges(node, data="uses")
            called = ", ".join(f"{_label(used)} x {count}" if count > 1 else _label(used) for _, used, count in uses)
            lines.append(f"{terminal(node[1])}{about}: {called or 'calls nothing'}\n")
    return "".join(lines)


def calls_with_kernels(module: Module, *, target: str, fused: bool) -> Graph:
    """Return the call graph of a module, in which each function is a box that contains the kernels that it calls.

    target: the form of kernels, "c", "bytecode" or "numpy".  For another value, raise RelvmArgumentError.
    fused: whether operators are fused into common kernels.
    """
    graph = call_graph(module, kernels=True, target=target, fused=fused)
    items = []
    for node in graph:
        if node[0] != "kernel":
            item = _item(graph, node)
            kernels = tuple(
                Item((node, used), terminal(used[1]), "group", "" if uses == 1 else f"{uses} calls")
                for _, used, uses in graph.out_edges(node, data="uses")
                if used[0] == "kernel"
            )
            count = f"{len(kernels)} kernel{'s' * (len(kernels) > 1)}" if kernels else ""
            detail = "\n".join(part for part in (item.detail, count) if part)
            items.append(replace(item, detail=detail, inside=kernels))
    edges = (edge for edge in graph.edges(data="cycle") if edge[1][0] != "kernel")
    arrows = (Arrow(source, target, marked=cycle) for source, target, cycle in edges)
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


def _is_recursive(graph: nx.DiGraph, node: tuple[str, str]) -> bool:
    return any(cycle for *_, cycle in graph.out_edges(node, data="cycle"))


def _label(node: tuple[str, str]) -> str:
    kind, name = node
    return terminal(name if kind == "function" else f"{kind} {name}")


def _item(graph: nx.DiGraph, node: tuple[str, str]) -> Item:
    if _is_recursive(graph, node):
        return Item(node, _label(node), "cycle", "recursive")
    kind = node[0] if node[0] != "function" else "private" if graph.nodes[node]["private"] else "public"
    return Item(node, _label(node), _KINDS[kind])
