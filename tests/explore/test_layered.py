"""Tests of the layered layout of graphs."""

from __future__ import annotations

import itertools
import random

import pytest

from relvm.explore.draw.sugiyama import Layout, arrange

GAP = (0.2, 0.3)


def expect_apart(layout: Layout, sizes: dict) -> None:
    """Assert that no two nodes overlap, and that all are inside the layout."""
    for node, (x, y) in layout.centers.items():
        width, height = sizes[node]
        assert width / 2 - 1e-9 <= x <= layout.width - width / 2 + 1e-9
        assert height / 2 - 1e-9 <= y <= layout.height - height / 2 + 1e-9
    for a, b in itertools.combinations(sizes, 2):
        (ax, ay), (bx, by) = layout.centers[a], layout.centers[b]
        beside = abs(ax - bx) >= (sizes[a][0] + sizes[b][0]) / 2 + GAP[0] - 1e-9
        below = abs(ay - by) >= (sizes[a][1] + sizes[b][1]) / 2 + GAP[1] - 1e-9
        assert beside or below, (a, b)


@pytest.mark.parametrize("seed", range(20))
def test_edges_without_cycles_go_down_and_nothing_overlaps(seed: int) -> None:
    draw = random.Random(seed)
    sizes = {node: (draw.uniform(0.2, 3), draw.uniform(0.2, 2)) for node in range(draw.randint(1, 15))}
    pairs = [pair for pair in itertools.combinations(sizes, 2) if draw.random() < 0.3]
    layout = arrange(sizes, pairs, GAP)
    expect_apart(layout, sizes)
    for source, target in pairs:
        ys = [layout.centers[source][1], *(y for _, y in layout.bends[source, target]), layout.centers[target][1]]
        assert ys == sorted(ys) and ys[0] < ys[-1]


def test_an_edge_that_passes_a_layer_has_a_place_in_it() -> None:
    sizes = dict.fromkeys("abc", (1.0, 1.0))
    layout = arrange(sizes, [("a", "b"), ("b", "c"), ("a", "c")], GAP)
    (x0, y0), (x1, y1) = layout.bends["a", "c"]
    (bx, by) = layout.centers["b"]
    assert x0 == x1 and abs(x0 - bx) > 0.5  # beside b
    assert (y0, y1) == (by - 0.5, by + 0.5)
    assert layout.bends["a", "b"] == []


def test_edges_of_a_cycle_are_all_there() -> None:
    sizes = dict.fromkeys("abcd", (1.0, 1.0))
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("c", "b")]
    layout = arrange(sizes, edges, GAP)
    expect_apart(layout, sizes)
    assert set(layout.bends) == set(edges)
    back = [y for _, y in layout.bends["d", "b"]]
    assert len(back) == 2 and back == sorted(back, reverse=True)


def test_what_nothing_leads_to_is_right_above_what_it_leads_to() -> None:
    sizes = dict.fromkeys(("x", "f", "g", "w"), (1.0, 1.0))
    layout = arrange(sizes, [("x", "f"), ("f", "g"), ("w", "g")], GAP)
    assert layout.centers["w"][1] == layout.centers["f"][1]


def test_nothing_needs_no_room() -> None:
    assert arrange({}, [], GAP) == Layout({}, {}, 0.0, 0.0)


def test_a_long_chain_stays_narrow() -> None:
    """The edges from a node to the whole chain share one lane in each layer, and the chain does not drift sideways."""
    chain = [f"a{i}" for i in range(300)]
    sizes = dict.fromkeys(["x", *chain], (1.0, 0.5))
    edges = [*itertools.pairwise(chain), *zip(chain, chain[2:], strict=False)]
    edges += [("x", target) for target in chain[1::3]]
    assert arrange(sizes, edges, GAP).width < 4
