"""Topological sort of a model's nodes, and the dependences of outputs on nodes.

ONNX requires every node to follow the nodes that compute its inputs (onnx/docs/IR.md).  ONNX Runtime accepts any order,
and its float16 converter writes models in other orders.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from relvm.frontend.onnx.model_checker import DEEPEST, map_graphs, node_graphs
from relvm.frontend.onnx_messages import Message


def sort_nodes(model: Any) -> Any:
    """Return `model`, a ModelProto, with the nodes of each graph in topological order.

    A node also depends on the values that its subgraphs use.  The sort is stable, and a model that is already sorted is
    returned unchanged.  Nodes in a cycle, and nodes that depend on a cycle, come last.
    """
    if all(_is_sorted(nodes, defined) for nodes, defined in _node_lists(model)):
        return model
    functions = (each.replace(node=_sorted(each.node, set(each.input), 0)) for each in model.functions)
    return model.replace(graph=_with_sorted_nodes(model.graph, 0), functions=tuple(functions))


def _with_sorted_nodes(graph: Message, depth: int) -> Message:
    """Return a copy of a graph with sorted nodes, also in its subgraphs.   depth: the number of graphs around it."""
    return graph.replace(node=_sorted(graph.node, _inputs_and_initializers(graph), depth))


def _sorted(nodes: Sequence[Message], defined: set[str], depth: int) -> tuple[Message, ...]:
    if depth < DEEPEST:
        nodes = [map_graphs(node, lambda graph: _with_sorted_nodes(graph, depth + 1)) for node in nodes]
    return tuple(nodes[at] for at in _topological_order(nodes, defined))


def needed_nodes(graph: Any, outputs: Collection[str]) -> list[Any]:
    """Return those nodes of a sorted graph on which the outputs with the given names depend, in order."""
    needed, nodes = set(outputs), []
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            needed |= _used_values(node, 0)
            nodes.append(node)
    return nodes[::-1]


def find_output_sets(graph: Any, outputs: Sequence[str]) -> list[tuple[int, ...]]:
    """For each node of a sorted graph, find the set of outputs that depend on it.  Return the distinct sets.

    A set is a tuple of indices in `outputs`, in increasing order.  If there is only one output, return no sets.

    outputs: the names of the outputs to consider.
    """
    users: defaultdict[str, frozenset[int]] = defaultdict(frozenset)
    users.update((name, frozenset({at})) for at, name in enumerate(outputs))
    found = set()
    for node in reversed(graph.node) if len(outputs) > 1 else ():
        if contributes := frozenset().union(*(users[name] for name in node.output if name)):
            found.add(contributes)
            for name in _used_values(node, 0):
                users[name] |= contributes
    return sorted(map(tuple, map(sorted, found)))


def _node_lists(model: Any) -> Iterator[tuple[Any, set[str]]]:
    """For each graph and function, yield its list of nodes and the names of its inputs and initializers.

    A subgraph comes before the graph that contains it.
    """
    yield from _lists_of_graph(model.graph, 0)
    for function in model.functions:
        yield from _lists_inside(function.node, 0)
        yield function.node, set(function.input)


def _lists_of_graph(graph: Any, depth: int) -> Iterator[tuple[Any, set[str]]]:
    yield from _lists_inside(graph.node, depth)
    yield graph.node, _inputs_and_initializers(graph)


def _lists_inside(nodes: Any, depth: int) -> Iterator[tuple[Any, set[str]]]:
    for node in nodes if depth < DEEPEST else ():
        for graph in node_graphs(node):
            yield from _lists_of_graph(graph, depth + 1)


def _inputs_and_initializers(graph: Any) -> set[str]:
    sparse = (each.values for each in graph.sparse_initializer)
    return {each.name for each in (*graph.input, *graph.initializer, *sparse)}


def _is_sorted(nodes: Any, defined: set[str]) -> bool:
    """Return whether every node comes after the nodes that compute its inputs.

    defined: the names of the inputs and initializers of the graph.
    """
    producers = _producers(nodes, defined)
    return all(
        producers[name] < at for at, node in enumerate(nodes) for name in _used_values(node, 0) if name in producers
    )


def _producers(nodes: Any, defined: set[str]) -> dict[str, int]:
    """Return a dict from the name of each computed value to the index of the node that computes it.

    defined: the names of the inputs and initializers of the graph.
    """
    return {name: at for at, node in enumerate(nodes) for name in node.output if name and name not in defined}


def _topological_order(nodes: Any, defined: set[str]) -> list[int]:
    """Return the indices of the nodes in topological order.

    If several nodes can come next, the node with the smallest index comes next.  Nodes in a cycle, and nodes that
    depend on a cycle, come last.

    defined: the names of the inputs and initializers of the graph.
    """
    producers = _producers(nodes, defined)
    waits = [{producers[name] for name in _used_values(node, 0) if name in producers} for node in nodes]
    users: list[list[int]] = [[] for _ in nodes]
    for at, needed in enumerate(waits):
        for producer in needed:
            users[producer].append(at)
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


def _used_values(node: Any, depth: int) -> set[str]:
    """Return the names of the values that a node uses, including values of this graph that its subgraphs use.

    depth: the number of nodes around this one, to limit the recursion.
    """
    used = {name for name in node.input if name}
    for graph in node_graphs(node) if depth < DEEPEST else ():
        inside = {info.name for info in graph.output}.union(*(_used_values(inner, depth + 1) for inner in graph.node))
        used |= inside - _inputs_and_initializers(graph) - {name for inner in graph.node for name in inner.output}
    return used
