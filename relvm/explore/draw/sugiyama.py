"""Layered layout of directed graphs: nodes are placed in layers so that edges point down.

The method of Sugiyama, Tagawa and Toda ("Methods for Visual Understanding of Hierarchical System Structures", 1981):
edges that close cycles are reversed, and each node is placed in a layer below its predecessors.  The nodes of a layer
are ordered by the positions of their neighbors.  An edge that crosses a layer runs through a lane of this layer.  All
edges that leave the same node share the lane.

Layout libraries return only the positions of nodes, which is not enough for the HTML page of a graph.  In the page,
a node can be a box with an inner graph.  Edges enter the inner graph at nodes of its first layer and leave it at nodes
of its last layer, so these nodes must stay in their layers.  The page also needs the order of the nodes and lanes in
each layer, to move them apart when a box is opened.  This module therefore does not use a library.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import field

from relvm.data_classes import dataclass
from relvm.directed_graph import DirectedGraph

Point = tuple[float, float]
Edge = tuple[Hashable, Hashable]

SWEEPS = 6  # number of sweeps, alternately down and up, for ordering and for positioning
LANE_WEIGHT = 1e-4  # how much a lane moves the nodes beside it, compared to a node
LANE = 0.12  # width of a lane for edges that cross a layer


@dataclass(frozen=True)
class Layer:
    """One layer of a layout.

    Attributes
    ----------
    top, height
        The vertical extent of the layer.
    places
        The nodes and lanes of the layer from left to right.  Each is given as (key, x coordinate of the center, width).
        A lane is a gap between nodes through which edges cross the layer.
    """

    top: float
    height: float
    places: tuple[tuple[Hashable, float, float], ...]


@dataclass(frozen=True)
class Layout:
    """The positions of nodes and edges; y grows downwards.

    Attributes
    ----------
    centers
        Center of each node.
    bends
        For each edge, the points at which the edge enters and leaves each layer between its source and its target.
    width, height
        Size of the layout, whose upper left corner is at (0, 0).
    layers
        The layers from top to bottom.
    lanes
        For each edge, the lanes through which the edge crosses layers, from source to target.  A lane is a gap between
        the nodes of a layer.
    """

    centers: dict[Hashable, Point]
    bends: dict[Edge, list[Point]]
    width: float
    height: float
    layers: tuple[Layer, ...] = ()
    lanes: dict[Edge, list[Hashable]] = field(default_factory=dict)


def arrange(
    sizes: Mapping[Hashable, Point],
    edges: Iterable[Edge],
    gap: Point,
    first: Collection[Hashable] = (),
    last: Collection[Hashable] = (),
) -> Layout:
    """Compute the layout of a graph.

    Parameters
    ----------
    sizes
        Width and height of each node.
    edges
        Edges between different nodes.
    gap
        Space between the nodes of a layer, and between layers.
    first, last
        `first` contains the nodes of the first layer, and `last` the nodes of the last layer.  These two layers contain
        no other nodes.  No edge may lead to a node in `first` or start at a node in `last`.
    """
    edges = list(dict.fromkeys(edges))
    downwards = _reverse_back_edges(sizes, edges)
    depth = _layer_numbers(sizes, downwards, first, last)
    layers: list[list[Hashable]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node in sizes:
        layers[depth[node]].append(node)
    widths = {node: width for node, (width, _) in sizes.items()}
    neighbors = DirectedGraph(sizes)
    lanes: dict[Edge, list[tuple[str, Hashable, int]]] = {}
    for source, target in downwards:
        lanes[source, target] = lane = [("lane", source, n) for n in range(depth[source] + 1, depth[target])]
        for place in lane:
            if place not in widths:
                layers[place[-1]].append(place)
                widths[place] = LANE
        for above, below in itertools.pairwise([source, *lane, target]):
            neighbors.add_edge(above, below)
    _order_layers(layers, neighbors)
    x = _x_coordinates(layers, neighbors, widths, gap[0], set(sizes) - set(first) - set(last))
    heights = [max((sizes[node][1] for node in layer if node in sizes), default=0.0) for layer in layers]
    offsets = itertools.accumulate(heights, initial=0.0)
    tops = [height + i * gap[1] for i, height in zip(range(len(layers)), offsets, strict=False)]
    centers = {node: (x[node], tops[depth[node]] + heights[depth[node]] / 2) for node in sizes}
    bends = {}
    used: dict[Edge, list[Hashable]] = {}
    for source, target in edges:
        turned = (source, target) not in lanes
        lane = lanes[(target, source) if turned else (source, target)]
        points = [(x[place], tops[place[-1]] + part) for place in lane for part in (0, heights[place[-1]])]
        bends[source, target] = points[::-1] if turned else points
        used[source, target] = list(lane[::-1] if turned else lane)
    right = max((x[place] + widths[place] / 2 for place in x), default=0.0)
    rows = tuple(
        Layer(top, height, tuple((place, x[place], widths[place]) for place in layer))
        for top, height, layer in zip(tops, heights, layers, strict=True)
    )
    return Layout(centers, bends, right, sum(heights) + max(0, len(layers) - 1) * gap[1], rows, used)


def _reverse_back_edges(nodes: Iterable[Hashable], edges: Sequence[Edge]) -> list[Edge]:
    """Return the edges without cycles and duplicates: the back edges of a depth-first search are reversed."""
    after: dict[Hashable, list[Hashable]] = {node: [] for node in nodes}
    for source, target in edges:
        after[source].append(target)
    found: dict[Edge, None] = {}
    done: set[Hashable] = set()
    for start in after:
        path, open_ = ([], set()) if start in done else ([(start, iter(after[start]))], {start})
        while path:
            node, rest = path[-1]
            target = next(rest, None)
            if target is None:
                path.pop()
                open_.discard(node)
                done.add(node)
            elif target in open_:
                found[target, node] = None
            else:
                found[node, target] = None
                if target not in done:
                    path.append((target, iter(after[target])))
                    open_.add(target)
    return list(found)


def _layer_numbers(
    nodes: Iterable[Hashable], edges: Sequence[Edge], first: Collection[Hashable], last: Collection[Hashable]
) -> dict[Hashable, int]:
    """Assign each node to a layer.  Return the number of its layer, counted from 0 at the top.

    A node is in the layer below its lowest predecessor.  A node without predecessors is in the layer above its topmost
    successor.  A node without edges is in the layer of the next node that has edges.

    first, last: the nodes of the first layer and of the last layer, which contain no other nodes.
    """
    graph = DirectedGraph(nodes, edges)
    order = graph.topological_order()
    depth: dict[Hashable, int] = {}
    top = 1 if first else 0
    for node in order:
        depth[node] = max(
            (depth[before] + 1 for before in graph.predecessors[node]), default=0 if node in first else top
        )
    bottom = max((depth[node] for node in order if node not in last), default=-1) + 1
    depth |= dict.fromkeys(last, bottom)
    for node in order:
        if not graph.predecessors[node] and graph.successors[node] and node not in first:
            depth[node] = min(depth[after] for after in graph.successors[node]) - 1
    beside = None
    for node in reversed(list(nodes)):
        if graph.predecessors[node] or graph.successors[node]:
            beside = depth[node]
        elif beside is not None and node not in first and node not in last:
            depth[node] = min(max(beside, top), bottom - 1)
    return depth


def _order_layers(layers: list[list[Hashable]], graph: DirectedGraph) -> None:
    """Sort the nodes of each layer by the mean position of their neighbors in the layer above or below.

    This is the barycenter heuristic.  It reduces the number of edges that cross each other.
    """
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for number in range(1, len(layers)) if down else range(len(layers) - 2, -1, -1):
            neighbor_layer = layers[number - 1 if down else number + 1]
            place = {node: i / len(neighbor_layer) for i, node in enumerate(neighbor_layer)}
            own = {node: i / len(layers[number]) for i, node in enumerate(layers[number])}
            near = graph.predecessors if down else graph.successors
            layers[number].sort(key=lambda node: _mean([place[n] for n in near[node]], own[node]))


def _x_coordinates(
    layers: list[list[Hashable]],
    graph: DirectedGraph,
    widths: Mapping[Hashable, float],
    gap: float,
    inner: Collection[Hashable],
) -> dict[Hashable, float]:
    """Return the x coordinate of each node's center, as close as possible to the mean coordinate of its neighbors.

    A sweep down considers the neighbors in the layer above, and a sweep up those in the layer below.  The order of the
    nodes in a layer does not change, and there is a space of at least `gap` between them.

    widths: the width of each node.
    inner: the nodes without those of `first` and `last`.  The coordinate of such a node depends only on neighbors of
    this kind, if it has any, so that a chain of nodes is straight although other edges lead to it.
    """

    def neighbors(node: Hashable, down: bool) -> list[Hashable]:
        above, below = list(graph.predecessors[node]), list(graph.successors[node])
        found = (above or below) if down else (below or above)
        return ([each for each in found if each in inner] if node in inner else []) or found

    near = {down: {node: neighbors(node, down) for node in graph} for down in (True, False)}
    x: dict[Hashable, float] = {}
    for layer in layers:
        _place_layer(layer, dict.fromkeys(layer, 0.0), widths, gap, inner, x)
    for sweep in range(SWEEPS + 1):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            preferred = {n: _mean([x[m] for m in near[down][n]], x[n]) for n in layer}
            _place_layer(layer, preferred, widths, gap, inner, x)
    left = min((x[node] - widths[node] / 2 for node in x), default=0.0)
    return {node: middle - left for node, middle in x.items()}


def _place_layer(
    layer: list[Hashable],
    preferred: Mapping[Hashable, float],
    widths: Mapping[Hashable, float],
    gap: float,
    inner: Collection[Hashable],
    x: dict[Hashable, float],
) -> None:
    """Compute the x coordinates of a layer's nodes, and store them in `x`.

    The coordinates are as close as possible to the preferred ones.  Nodes that would be closer to each other than `gap`
    are placed side by side, around the mean of their preferred coordinates.  In this mean, lanes and ports, which are
    not in `inner`, have little weight, so that they move aside.
    """
    runs: list[tuple[float, float, float, list[Hashable]]] = []  # left, width, weight, nodes
    for node in layer:
        left, width, nodes = preferred[node] - widths[node] / 2, widths[node], [node]
        weight = 1.0 if node in inner else LANE_WEIGHT
        while runs and runs[-1][0] + runs[-1][1] + gap > left:
            before_left, before_width, before_weight, before = runs.pop()
            together = before_left * before_weight + (left - before_width - gap) * weight
            weight += before_weight
            left, width, nodes = together / weight, before_width + gap + width, before + nodes
        runs.append((left, width, weight, nodes))
    for left, _, _, nodes in runs:
        for node in nodes:
            x[node] = left + widths[node] / 2
            left += widths[node] + gap


def _mean(numbers: Sequence[float], default: float) -> float:
    return sum(numbers) / len(numbers) if numbers else default
