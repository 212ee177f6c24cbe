"""Topological orders and components are those of networkx."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relvm.directed_graph import DirectedGraph

EDGES = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=20)


@given(EDGES, st.permutations(range(9)))
def test_topological_orders(edges: list[tuple[int, int]], nodes: list[int]) -> None:
    edges = [(source, target) for source, target in edges if source < target]
    ours = DirectedGraph(nodes, edges)
    reference = nx.DiGraph()
    reference.add_nodes_from(nodes)
    reference.add_edges_from(edges)
    assert ours.topological_order() == list(nx.topological_sort(reference))
    assert ours.topological_order(key=lambda node: -node) == list(
        nx.lexicographical_topological_sort(reference, key=lambda node: -node)
    )
    assert set(ours.edges()) == set(reference.edges)


@given(EDGES)
def test_components(edges: list[tuple[int, int]]) -> None:
    graph = DirectedGraph(range(9), edges)
    reference = nx.DiGraph(edges)
    reference.add_nodes_from(range(9))
    found = graph.components()
    assert set(found) == {frozenset(each) for each in nx.strongly_connected_components(reference)}
    place = {node: number for number, nodes in enumerate(found) for node in nodes}
    assert all(place[source] >= place[target] for source, target in edges)


def test_a_cycle_has_no_order() -> None:
    with pytest.raises(ValueError, match="the graph has a cycle"):
        DirectedGraph(edges=[(1, 2), (2, 1), (2, 3)]).topological_order()


def test_long_paths_do_not_recurse() -> None:
    graph = DirectedGraph(edges=[(n, n + 1) for n in range(50_000)] + [(50_000, 0)])
    assert [len(each) for each in graph.components()] == [50_001]
