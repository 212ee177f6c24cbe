"""Which functions an entry calls, and whether they end in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import networkx as nx

from relvm.aot.refusals import refuse
from relvm.ir.expr import Block, Call, Expr, Function, FunctionRef, If
from relvm.ir.node import walk


def reachable_functions(functions: Mapping[str, Function], entry: str) -> list[str]:
    """The entry and what it uses, callers before callees.  Only functions that use themselves may be in circles."""
    graph = _graph(functions, entry)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return list(nx.lexicographical_topological_sort(graph, key=list(functions).index))


def expect_bounded(functions: Mapping[str, Function], entry: str) -> None:
    """Raises RelvmUnsupportedError where a call needs a stack whose depth is not known: recursion, but for a function
    that ends with a call of itself."""
    graph = _graph(functions, entry)
    for group in nx.strongly_connected_components(graph):
        if len(group) > 1:
            ordered = sorted(group, key=list(functions).index)
            refuse(ordered[0], "its body", f"recursion without a bound: {', '.join(ordered)} call each other")
    for name in graph.nodes:
        if graph.has_edge(name, name):
            _expect_tail_calls(functions[name])


def _graph(functions: Mapping[str, Function], entry: str) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_node(entry)
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        for used in _used(functions[name].body):
            if used not in graph:
                waiting.append(used)
            graph.add_edge(name, used)
    return graph


def _used(expr: Expr) -> Iterator[str]:
    """The functions that an expression names."""
    return (part.name for part in walk(expr) if isinstance(part, FunctionRef))


def _expect_tail_calls(function: Function) -> None:
    tails = set(map(id, _tail_calls(function.body)))
    blocks = [function.body]
    while blocks:
        for binding in blocks.pop().bindings:
            value = binding.value
            if isinstance(value, If):
                blocks += [value.then, value.orelse]
            elif id(value) not in tails and function.name in _used(value):
                refuse(
                    function.name,
                    binding.var.name,
                    f"recursion without a bound: {function.name} uses itself other than by ending with a call of itself",
                )


def _tail_calls(block: Block) -> Iterator[Call]:
    """The calls whose result is the block's own."""
    if not block.bindings or block.bindings[-1].var is not block.result:
        return
    match block.bindings[-1].value:
        case Call() as call:
            yield call
        case If(_, then, orelse):
            yield from _tail_calls(then)
            yield from _tail_calls(orelse)
