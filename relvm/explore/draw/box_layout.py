"""Layout of the contents of each box in a graph.

An arrow that enters or leaves a box passes through a port, a place in the first or last layer of the box.  Arrows from
the same item share a port.

The HTML page of a graph opens and closes boxes without computing a new layout.  Each box is laid out as if all boxes
inside it were closed.  When a box is opened, the page moves the layers below it down and its neighbors sideways.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from relvm.explore.draw.graph import GAP, SCALE, Graph, Item, all_items, text_size
from relvm.explore.draw.sugiyama import LANE, Edge, Layout, Point, arrange

ROOT = -1  # key and number of the box that contains the whole graph


class Port(NamedTuple):
    """A point on the border of a box at which arrows enter or leave the box.

    All arrows that start at the same item of the graph share one port for entering the box, and one for leaving it.

    Attributes
    ----------
    side
        "in" if the arrows enter the box, "out" if they leave it.
    value
        The key of the item at which the arrows start.
    """

    side: str
    value: Hashable


def edges_in_boxes(graph: Graph) -> dict[Hashable, dict[Edge, None]]:
    """Divide the arrows of a graph into edges, each of which lies in one box.  Return the edges by the key of the box.

    An arrow between items of different boxes becomes one edge in each box that it passes through.  An end of an edge
    is an item in the box or a port.  A port is the point on the border at which the arrow enters or leaves the box.
    """
    paths = dict(item_paths(graph.items))
    found: dict[Hashable, dict[Edge, None]] = {}
    for arrow in graph.arrows:
        source, target = paths[arrow.source], paths[arrow.target]
        common = first_difference(source, target)
        if common is None:  # an arrow between an item and itself, or a box around it, needs no layout
            continue
        found.setdefault(source[common - 1], {})[source[common], target[common]] = None
        for box, item in zip(source[common:], source[common + 1 :], strict=False):
            found.setdefault(box, {})[item, Port("out", arrow.source)] = None
        for box, item in zip(target[common:], target[common + 1 :], strict=False):
            found.setdefault(box, {})[Port("in", arrow.source), item] = None
    return found


def item_paths(
    items: tuple[Item, ...], outer_boxes: tuple[Hashable, ...] = (ROOT,)
) -> Iterator[tuple[Hashable, tuple[Hashable, ...]]]:
    """Yield the key and the path of each item, also inside boxes.

    A path consists of the keys of the boxes around the item, outermost first, and the key of the item itself.

    outer_boxes: the keys of the boxes around `items`.
    """
    for item in items:
        path = (*outer_boxes, item.key)
        yield item.key, path
        yield from item_paths(item.inside, path)


def first_difference(first: Sequence[Hashable], second: Sequence[Hashable]) -> int | None:
    """Return the first position at which two paths differ, or None if one is a prefix of the other."""
    return next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)


def arrange_box(sizes: Mapping[Hashable, Point], edges: Mapping[Edge, None]) -> Layout:
    """Compute the layout of the items inside a box of a graph.

    Parameters
    ----------
    sizes
        The width and height of each item in the box, by the key of the item.
    edges
        The edges inside the box.  An end of an edge is the key of an item, or a `Port`: the point at which the edge
        enters or leaves the box.
    """
    ports = _ports(sizes, edges)
    first, last = ([port for port in ports if port.side == side] for side in ("in", "out"))
    return arrange({**sizes, **dict.fromkeys(ports, (LANE, 0.0))}, edges, GAP, first, last)


def _ports(items: Mapping[Hashable, Point], edges: Mapping[Edge, None]) -> list[Port]:
    ends = dict.fromkeys(end for edge in edges for end in edge if end not in items)
    return [end for end in ends if isinstance(end, Port)]


def box_layouts(
    graph: Graph, numbers: Mapping[Hashable, int], known: dict[Hashable, Layout]
) -> dict[int, dict[str, Any]]:
    """Return the layout of each box by the number of the box, as JSON data for the page's scripts.

    A box is arranged in horizontal layers.  A layer contains places of three kinds.  The first kind is an item of the
    graph.  The second is a port: a point on the border of the box, at which edges enter or leave the box.  The third is
    a lane: a gap through which an edge between other layers crosses this layer.

    A layout is a dict with two keys.  `rows` is a list of the layers.  Each layer is a list [top, height, places], and
    each place is a list [id, x of the center, width].  Lengths are in pixels.  `routes` maps an edge to the ids of the
    lanes that it runs through.  An edge is the text "source target", with the ids of the places that it connects.  An
    edge without lanes is left out.

    The id of an item is its number.  The id of a port is "i" (in) or "o" (out), followed by the number of the item at
    which the edges of the port start.

    Parameters
    ----------
    graph
        The graph.
    numbers
        A number for each item, by the key of the item.
    known
        Layouts of boxes.  This function adds those that it computes, so that boxes with the same structure, which are
        frequent, are laid out once.
    """
    edges = edges_in_boxes(graph)
    boxes = [(ROOT, graph.items), *((each.key, each.inside) for each in all_items(graph.items) if each.inside)]
    found = {}
    for key, items in boxes:
        sizes: dict[Hashable, Point] = {item.key: text_size(item) for item in items}
        inner = edges.get(key, {})
        ports = _ports(sizes, inner)
        # The layout of a box in which the items and ports are numbered by their order.
        order = {place: number for number, place in enumerate([*sizes, *ports])}
        structure = (
            tuple(sizes.values()),
            tuple(port.side for port in ports),
            tuple((order[source], order[target]) for source, target in inner),
        )
        if structure not in known:
            renamed = {
                place: Port(place.side, number) if isinstance(place, Port) else number
                for place, number in order.items()
            }
            known[structure] = arrange_box(
                {renamed[item]: size for item, size in sizes.items()},
                {(renamed[source], renamed[target]): None for source, target in inner},
            )
        ids = [str(numbers[item]) for item in sizes] + [f"{port.side[0]}{numbers[port.value]}" for port in ports]
        found[ROOT if key == ROOT else numbers[key]] = _layout_as_json(known[structure], ids)
    return found


def _layout_as_json(layout: Layout, ids: Sequence[str]) -> dict[str, Any]:
    """Convert a layout to the JSON data that `box_layouts` describes.

    The id of a lane, which is a gap through which edges cross a layer, is "l" and a number.

    layout: a layout.  Each of its places is a number, a Port whose value is a number, or a lane.
    ids: for each number, the id of the place.
    """
    names: dict[Hashable, str] = {}
    for place in (place for layer in layout.layers for place, _, _ in layer.places):
        match place:
            case int():
                names[place] = ids[place]
            case Port(value=int() as number):
                names[place] = ids[number]
            case _:
                names[place] = f"l{len(names)}"
    rows = [
        [
            _pixels(layer.top),
            _pixels(layer.height),
            [[names[place], _pixels(x), _pixels(width)] for place, x, width in layer.places],
        ]
        for layer in layout.layers
    ]
    routes = {
        f"{names[a]} {names[b]}": [names[lane] for lane in lanes] for (a, b), lanes in layout.lanes.items() if lanes
    }
    return {"rows": rows, "routes": routes}


def _pixels(inches: float) -> float:
    return round(inches * SCALE, 1)
