"""Layout of the inside of each box, with the boxes in it closed.

The page of a graph opens and closes boxes without a new layout: an open box moves the layers below it down, and its
neighbors in the same layer apart.  An edge that enters or leaves a box passes through a port, a place in the first or
last layer of the box.  Edges of the same value share a port.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from relvm.explore.draw.graph import GAP, SCALE, Graph, Item, all_items, text_size
from relvm.explore.draw.sugiyama import LANE, Edge, Layout, arrange

ROOT = -1  # number of the box that contains the whole graph


def box_layouts(graph: Graph, numbers: Mapping[Hashable, int]) -> dict[int, dict[str, Any]]:
    """Return the layout of each box by its number, as JSON data in pixels.

    A layout has `rows`, the layers as [top, height, places].  A place is [id, x of the center, width].  `routes` maps
    "source target" to the ids of the lanes between them.  The id of an item is its number.  The ids of ports are "i"
    and "o", for in and out, and the number of the item from which the edge comes.

    Parameters
    ----------
    graph
        The graph.
    numbers
        A number for the key of each item.
    """
    edges = _edges_in_boxes(graph, numbers)
    boxes = [(ROOT, graph.items), *((numbers[each.key], each.inside) for each in all_items(graph.items) if each.inside)]
    return {number: _box(items, edges.get(number, {}), numbers) for number, items in boxes}


def _edges_in_boxes(graph: Graph, numbers: Mapping[Hashable, int]) -> dict[int, dict[Edge, None]]:
    """Return the edges inside each box, between its items and ports.  An arrow is an edge in each box on its way."""
    paths = dict(_paths(graph.items, (ROOT,), numbers))
    found: dict[int, dict[Edge, None]] = {}
    for arrow in graph.arrows:
        source, target = paths[arrow.source], paths[arrow.target]
        common = next((i for i, (a, b) in enumerate(zip(source, target, strict=False)) if a != b), None)
        if common is None:  # the page draws an arrow between an item and itself, or a box around it, without a layout
            continue
        value = source[-1]
        found.setdefault(source[common - 1], {})[str(source[common]), str(target[common])] = None
        for box, item in zip(source[common:], source[common + 1 :], strict=False):
            found.setdefault(box, {})[str(item), f"o{value}"] = None
        for box, item in zip(target[common:], target[common + 1 :], strict=False):
            found.setdefault(box, {})[f"i{value}", str(item)] = None
    return found


def _paths(
    items: tuple[Item, ...], above: tuple[int, ...], numbers: Mapping[Hashable, int]
) -> Iterator[tuple[Hashable, tuple[int, ...]]]:
    """Yield the key of each item, with the numbers of the boxes around it and its own."""
    for item in items:
        path = (*above, numbers[item.key])
        yield item.key, path
        yield from _paths(item.inside, path, numbers)


def _box(items: tuple[Item, ...], edges: dict[Edge, None], numbers: Mapping[Hashable, int]) -> dict[str, Any]:
    sizes: dict[Hashable, tuple[float, float]] = {str(numbers[item.key]): text_size(item) for item in items}
    ports = [end for edge in edges for end in edge if end not in sizes]
    sizes |= dict.fromkeys(ports, (LANE, 0.0))
    first, last = ({port for port in ports if str(port)[0] == side} for side in "io")
    return _plain(arrange(sizes, edges, GAP, first, last), sizes)


def _plain(layout: Layout, nodes: Mapping[Hashable, Any]) -> dict[str, Any]:
    """Return a layout as JSON data, with an id of "l" and a number for each lane."""
    lanes = [place for layer in layout.layers for place, _, _ in layer.places if place not in nodes]
    names = {lane: f"l{number}" for number, lane in enumerate(lanes)} | {node: node for node in nodes}
    rows = [
        [
            _pixels(layer.top),
            _pixels(layer.height),
            [[names[place], _pixels(x), _pixels(width)] for place, x, width in layer.places],
        ]
        for layer in layout.layers
    ]
    routes = {f"{a} {b}": [names[lane] for lane in lanes] for (a, b), lanes in layout.lanes.items() if lanes}
    return {"rows": rows, "routes": routes}


def _pixels(inches: float) -> float:
    return round(inches * SCALE, 1)
