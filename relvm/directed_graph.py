"""Directed graphs: topological order and strongly connected components."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

_Node = TypeVar("_Node")


class DirectedGraph(Generic[_Node]):
    """A directed graph without parallel edges.  Nodes and edges keep the order in which they were added.

    Attributes
    ----------
    successors, predecessors
        For each node, the nodes that its edges lead to, and the nodes whose edges lead to it.
    """

    def __init__(self, nodes: Iterable[_Node] = (), edges: Iterable[tuple[_Node, _Node]] = ()) -> None:
        self.successors: dict[_Node, dict[_Node, None]] = {}
        self.predecessors: dict[_Node, dict[_Node, None]] = {}
        for node in nodes:
            self.add_node(node)
        for source, target in edges:
            self.add_edge(source, target)

    def add_node(self, node: _Node) -> None:
        """Add a node, if the graph does not contain it."""
        self.successors.setdefault(node, {})
        self.predecessors.setdefault(node, {})

    def add_edge(self, source: _Node, target: _Node) -> None:
        """Add an edge, and its nodes if the graph does not contain them."""
        self.add_node(source)
        self.add_node(target)
        self.successors[source][target] = None
        self.predecessors[target][source] = None

    def __iter__(self) -> Iterator[_Node]:
        return iter(self.successors)

    def __contains__(self, node: object) -> bool:
        return node in self.successors

    def edges(self) -> Iterator[tuple[_Node, _Node]]:
        """Yield the edges, as pairs of source and target."""
        for source, targets in self.successors.items():
            yield from ((source, target) for target in targets)

    def topological_order(self, key: Callable[[_Node], Any] | None = None) -> list[_Node]:
        """Return the nodes in an order in which every edge leads to a later node.

        key: a function that returns a different number for each node.  If several nodes can be next, the one with the
        smallest number is chosen.  By default, the nodes are in the order of Kahn's algorithm ("Topological sorting of
        large networks", 1962).

        Raises
        ------
        ValueError
            The graph has a cycle.
        """
        waiting = {node: len(sources) for node, sources in self.predecessors.items()}
        rank = itertools.count()  # by default, the nodes that are ready first come first
        ready: list[tuple[Any, int, _Node]] = []

        def add(node: _Node) -> None:
            place = next(rank)
            heapq.heappush(ready, (key(node) if key else place, place, node))

        for node, count in waiting.items():
            if count == 0:
                add(node)
        order = []
        while ready:
            node = heapq.heappop(ready)[-1]
            order.append(node)
            for target in self.successors[node]:
                waiting[target] -= 1
                if waiting[target] == 0:
                    add(target)
        if len(order) < len(waiting):
            raise ValueError("the graph has a cycle, so its nodes have no topological order")
        return order

    def components(self) -> list[frozenset[_Node]]:
        """Return the strongly connected components: the largest sets of nodes that all reach each other.

        Every edge between two components leads to an earlier one.  This is Tarjan's algorithm ("Depth-first search and
        linear graph algorithms", 1972), without recursion.
        """
        number: dict[_Node, int] = {}
        lowest: dict[_Node, int] = {}  # the smallest number of an open node that the subtree of a node reaches
        open_nodes: dict[_Node, None] = {}  # the nodes that are in no component yet
        components = []
        for start in self.successors:
            path = [(start, iter((start,)))]  # the nodes on the way from the start, with the targets that are left
            while path:
                node, targets = path[-1]
                for target in targets:
                    if target not in number:
                        number[target] = lowest[target] = len(number)
                        open_nodes[target] = None
                        path.append((target, iter(self.successors[target])))
                        break
                    if target in open_nodes:
                        lowest[node] = min(lowest[node], number[target])
                else:
                    path.pop()
                    if path:
                        outer = path[-1][0]
                        lowest[outer] = min(lowest[outer], lowest[node])
                        if lowest[node] == number[node]:
                            components.append(_take_from(open_nodes, node))
        return components


def _take_from(nodes: dict[_Node, None], first: _Node) -> frozenset[_Node]:
    """Remove `first` and all later nodes from `nodes`, and return them."""
    taken: list[_Node] = []
    while not taken or taken[-1] != first:
        taken.append(nodes.popitem()[0])
    return frozenset(taken)
