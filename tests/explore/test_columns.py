"""Tests of pictures of long graphs, which are drawn in several columns."""

from __future__ import annotations

import itertools

import pytest
from explore.drawn import arrows, rectangles
from matplotlib.patches import FancyArrowPatch

from relvm.explore import draw_dataflow
from relvm.explore.draw.graph import Arrow, Graph, Item
from relvm.explore.draw.graph_figure import draw_graph
from relvm.frontend.text import parse_module


def chain(length: int, *, skips: int = 0, back: bool = False) -> Graph:
    """Return a chain of nodes.

    skips: the number of edges from the start to the end of the chain.  back: whether an edge leads from the end to the
    start, which makes a cycle.
    """
    names = [f"n{number}" for number in range(length)]
    found = [Arrow(a, b) for a, b in itertools.pairwise(names)]
    found += [Arrow(names[number], names[-1 - number]) for number in range(skips)]
    if back:
        found.append(Arrow(names[-1], names[0], marked=True))
    return Graph(tuple(Item(name, name, "operator") for name in names), tuple(found))


def crossings(axes) -> list[tuple[str, str]]:
    """Return each arrow that runs through a node, and the title of the node."""
    places = rectangles(axes)
    found = []
    for arrow in (patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)):
        for (x0, y0), (x1, y1) in itertools.pairwise(arrow._path_original.vertices):
            for step in range(101):
                x, y = x0 + (x1 - x0) * step / 100, y0 + (y1 - y0) * step / 100
                found += [
                    (arrow.get_gid(), name)
                    for name, (left, right, top, bottom) in places.items()
                    if left + 0.01 < x < right - 0.01 and top + 0.01 < y < bottom - 0.01
                ]
    return found


@pytest.mark.parametrize("back", [False, True])
def test_a_long_chain_is_in_columns_that_lines_connect(back: bool) -> None:
    graph = chain(100, skips=2, back=back)
    figure = draw_graph(graph, "long")
    width, height = figure.get_size_inches()
    assert 0.7 < height / width < 2
    (axes,) = figure.axes
    places = rectangles(axes)
    assert all(
        0 <= left < right <= width and 0 <= top < bottom <= height for left, right, top, bottom in places.values()
    )
    # The order is that of a text in columns.
    columns: list[list[str]] = [[]]
    for above, below in itertools.pairwise(places):
        columns[-1].append(above)
        if places[below][2] <= places[above][2]:
            assert places[below][0] > max(places[name][1] for name in columns[-1])
            columns.append([])
    assert len(columns) >= 4 and min(map(len, columns)) > 5
    assert arrows(axes) == [f"{arrow.source} -> {arrow.target}" for arrow in graph.arrows]
    assert crossings(axes) == []


def test_short_graphs_and_graphs_of_many_parallel_lines_have_one_column() -> None:
    for graph in (chain(15), chain(100, skips=20)):
        places = rectangles(draw_graph(graph, "one").axes[0])
        tops = [top for _, _, top, _ in places.values()]
        assert tops == sorted(tops)


def test_open_boxes_stay_in_one_column() -> None:
    steps = "\n".join(f"  a{i + 1} = exp(matmul(a{i}, w))" for i in range(30))
    text = f"def main(a0: f32[n, 4], w: f32[4, 4]) -> f32[n, 4] {{\n{steps}\n  return a30\n}}"
    figure = draw_dataflow(parse_module(text), depth=1)
    width, height = figure.get_size_inches()
    assert 0.7 < height / width < 2
    places = rectangles(figure.axes[0])
    for number in range(1, 31):
        box = places[f"a{number} = matmul exp"]
        inner = places[f"a{number}_1 = exp"]
        assert box[0] < inner[0] and inner[1] < box[1] and box[2] < inner[2] and inner[3] < box[3]
