"""Topological sort of a model's nodes, and the nodes that outputs need.

ONNX requires every node to follow the nodes that compute its inputs (onnx/docs/IR.md).  ONNX Runtime accepts any order,
and its float16 converter writes models in other orders.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from relvm.frontend.onnx.model_checker import DEEPEST, graphs_of


def in_order(model: Any) -> Any:
    """Return a ModelProto with its nodes in topological order.  Values that subgraphs use count as inputs of a node.

    The sort is stable.  A model that is already sorted is returned unchanged.  Nodes in a cycle, and nodes that depend
    on a cycle, come last.
    """
    if all(_is_sorted(nodes, given) for nodes, given in _lists(model)):
        return model
    ordered = type(model)()
    ordered.CopyFrom(model)
    for nodes, given in _lists(ordered):
        kept = [nodes[at] for at in _order(nodes, given)]
        del nodes[:]
        nodes.extend(kept)
    return ordered


def needed_nodes(graph: Any, outputs: Collection[str]) -> list[Any]:
    """Return the nodes of a sorted graph that compute some of its outputs, in order."""
    needed, nodes = set(outputs), []
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            needed |= _used(node, 0)
            nodes.append(node)
    return nodes[::-1]


def users_of_nodes(graph: Any, outputs: Sequence[str]) -> list[tuple[int, ...]]:
    """Find the set of outputs to which each node of a sorted graph contributes, and return the distinct sets.

    A set is a tuple of indices in `outputs`, in increasing order.  If there is only one output, no sets are returned.

    outputs: the names of outputs.
    """
    users: defaultdict[str, frozenset[int]] = defaultdict(frozenset)
    users.update((name, frozenset({at})) for at, name in enumerate(outputs))
    found = set()
    for node in reversed(graph.node) if len(outputs) > 1 else ():
        if contributes := frozenset().union(*(users[name] for name in node.output if name)):
            found.add(contributes)
            for name in _used(node, 0):
                users[name] |= contributes
    return sorted(map(tuple, map(sorted, found)))


def _lists(model: Any) -> Iterator[tuple[Any, set[str]]]:
    """Yield the nodes of each graph and function, with the names of its inputs and initializers.

    Inner graphs come before the graphs that contain them.
    """
    yield from _lists_of_graph(model.graph, 0)
    for function in model.functions:
        yield from _lists_inside(function.node, 0)
        yield function.node, set(function.input)


def _lists_of_graph(graph: Any, depth: int) -> Iterator[tuple[Any, set[str]]]:
    yield from _lists_inside(graph.node, depth)
    yield graph.node, _given(graph)


def _lists_inside(nodes: Any, depth: int) -> Iterator[tuple[Any, set[str]]]:
    for node in nodes if depth < DEEPEST else ():
        for graph in graphs_of(node):
            yield from _lists_of_graph(graph, depth + 1)


def _given(graph: Any) -> set[str]:
    sparse = (each.values for each in graph.sparse_initializer)
    return {each.name for each in (*graph.input, *graph.initializer, *sparse)}


def _is_sorted(nodes: Any, given: set[str]) -> bool:
    """Return whether every node follows the nodes that compute its inputs.  nodes, given: as for `_order`."""
    makers = _makers(nodes, given)
    return all(makers[name] < at for at, node in enumerate(nodes) for name in _used(node, 0) if name in makers)


def _makers(nodes: Any, given: set[str]) -> dict[str, int]:
    """Return the index of the node that computes each value, by the name of the value.

    given: the names of the inputs and initializers.
    """
    return {name: at for at, node in enumerate(nodes) for name in node.output if name and name not in given}


def _order(nodes: Any, given: set[str]) -> list[int]:
    """Return the indices of the nodes in topological order.

    Among the nodes whose inputs are computed, the one with the smallest index comes next.  Nodes in a cycle, and nodes
    that depend on a cycle, come last.

    given: the names of the inputs and initializers of the graph.
    """
    makers = _makers(nodes, given)
    waits = [{makers[name] for name in _used(node, 0) if name in makers} for node in nodes]
    users: list[list[int]] = [[] for _ in nodes]
    for at, needed in enumerate(waits):
        for maker in needed:
            users[maker].append(at)
    left = [len(needed) for needed in waits]
    ready, order = [at for at, count in enumerate(left) if count == 0], []
    while ready:
        at = heapq.heappop(ready)
        order.append(at)
        for user in users[at]:
            left[user] -= 1
            if left[user] == 0:
                heapq.heappush(ready, user)
    return order + [at for at, count in enumerate(left) if count > 0]


def _used(node: Any, depth: int) -> set[str]:
    """Return the names of the values that a node uses, including outer values that its subgraphs use."""
    used = {name for name in node.input if name}
    for graph in graphs_of(node) if depth < DEEPEST else ():
        inside = {info.name for info in graph.output}.union(*(_used(inner, depth + 1) for inner in graph.node))
        used |= inside - _given(graph) - {name for inner in graph.node for name in inner.output}
    return used
