"""Pictures of graphs with nested boxes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from relvm.explore.draw.box_layout import ROOT, Port, arrange_box, edges_in_boxes, first_difference, paths_of
from relvm.explore.draw.graph import COLOURS, FONT, GAP, LETTER, LINE, PAD, Arrow, Graph, Item, all_items, text_size
from relvm.explore.draw.matplotlib_import import new_figure
from relvm.explore.draw.sugiyama import Edge, Layout, Point
from relvm.quoting import svg_id, svg_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_graph(graph: Graph, title: str) -> Figure:
    """Draw the graph in layers, with arrows pointing down except in cycles.  The size of the figure fits the graph.

    The gid (SVG identifier) of a rectangle is the title of its item.  The gid of an arrow is `source -> target`.
    """
    placing = _Placing(graph)
    width, height = placing.place(graph.items)
    placing.shift(graph.items, (PAD, PAD + LINE))
    width, height = max(width, LETTER * len(title)) + 2 * PAD, height + 2 * PAD + LINE
    figure = new_figure(width, height)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    axes.text(PAD, PAD, svg_text(title), va="top", fontsize=FONT, family="DejaVu Sans Mono", fontweight="bold")
    for item in all_items(graph.items):
        _draw_item(axes, item, placing.middle[item.key], placing.size[item.key])
    titles = {item.key: item.title for item in all_items(graph.items)}
    for arrow in graph.arrows:
        _draw_arrow(axes, arrow, placing, f"{titles[arrow.source]} -> {titles[arrow.target]}")
    return figure


class _Placing:
    """The layout of a graph, computed box by box from the innermost boxes outwards.

    Positions are relative to the surrounding box until `shift` makes them absolute.
    """

    def __init__(self, graph: Graph) -> None:
        self.edges = edges_in_boxes(graph)
        self.paths = dict(paths_of(graph.items))
        self.middle: dict[Hashable, Point] = {}
        self.size: dict[Hashable, Point] = {}
        self.layouts: dict[Hashable, Layout] = {}
        self.corner: dict[Hashable, Point] = {}  # upper left corner of the contents of each box

    def place(self, items: tuple[Item, ...], box: Hashable = ROOT) -> Point:
        """Lay out the items of a box, or of the whole graph, and return their total width and height."""
        for item in items:
            self.size[item.key] = self.size_of(item)
        sizes = {item.key: self.size[item.key] for item in items}
        self.layouts[box] = layout = arrange_box(sizes, self.edges.get(box, {}))
        self.middle |= {item.key: layout.centres[item.key] for item in items}
        return layout.width, layout.height

    def size_of(self, item: Item) -> Point:
        width, height = text_size(item)
        if item.inside:
            inner = self.place(item.inside, item.key)
            width, height = max(width, inner[0] + 2 * PAD), height + PAD + inner[1]
        return width, height

    def shift(self, items: tuple[Item, ...], corner: Point, box: Hashable = ROOT) -> None:
        """Move the items and their contents so that `corner` is their upper left corner."""
        self.corner[box] = corner
        for item in items:
            x, y = self.middle[item.key]
            self.middle[item.key] = x, y = x + corner[0], y + corner[1]
            if item.inside:
                height = self.size[item.key][1]
                inner = x - self.layouts[item.key].width / 2, y - height / 2 + 2 * PAD + LINE * len(item.lines)
                self.shift(item.inside, inner, item.key)

    def between(self, arrow: Arrow) -> list[Point]:
        """Return the points through which an arrow runs between its ends: ports of boxes, and lanes of layers."""
        source, target = self.paths[arrow.source], self.paths[arrow.target]
        common = first_difference(source, target)
        if common is None:
            return []
        points: list[Point] = []
        out, into = Port("out", arrow.source), Port("in", arrow.source)
        for box, item in reversed(list(zip(source[common:], source[common + 1 :], strict=False))):
            port = self.at(box, self.layouts[box].centres[out])
            points += [*self.bends(box, (item, out)), port, (port[0], self.middle[box][1] + self.size[box][1] / 2)]
        points += self.bends(source[common - 1], (source[common], target[common]))
        for box, item in zip(target[common:], target[common + 1 :], strict=False):
            port = self.at(box, self.layouts[box].centres[into])
            points += [(port[0], self.middle[box][1] - self.size[box][1] / 2), port, *self.bends(box, (into, item))]
        return points

    def bends(self, box: Hashable, edge: Edge) -> list[Point]:
        return [self.at(box, point) for point in self.layouts[box].bends[edge]]

    def at(self, box: Hashable, point: Point) -> Point:
        """Return the absolute position of a point in the layout of a box."""
        return self.corner[box][0] + point[0], self.corner[box][1] + point[1]


def _draw_item(axes: Axes, item: Item, middle: Point, size: Point) -> None:
    from matplotlib.patches import Rectangle

    (x, y), (width, height) = middle, size
    left, top = x - width / 2, y - height / 2
    colour = COLOURS[item.kind]
    edge = "#888888" if item.inside else "#333333"
    axes.add_artist(
        Rectangle((left, top), width, height, facecolor=colour, edgecolor=edge, lw=0.7, gid=svg_id(item.title))
    )
    style: dict[str, Any] = {"fontsize": FONT, "family": "DejaVu Sans Mono", "linespacing": 1.1, "clip_on": True}
    text = svg_text("\n".join(item.lines))
    if item.inside:
        axes.text(left + PAD, top + PAD, text, ha="left", va="top", **style)
    else:
        axes.text(x, y, text, ha="center", va="center", **style)


def _draw_arrow(axes: Axes, arrow: Arrow, placing: _Placing, name: str) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    colour = "#cc0000" if arrow.marked else "#555555"
    style: dict[str, Any] = {
        "arrowstyle": "-|>",
        "mutation_scale": 7,
        "color": colour,
        "lw": 0.8,
        "shrinkA": 0,
        "shrinkB": 0,
    }
    if arrow.source == arrow.target:
        (x, y), (width, height) = placing.middle[arrow.source], placing.size[arrow.source]
        right, out = x + width / 2, x + width / 2 + GAP[0] / 2
        path = [(right, y + height / 4), (out, y + height / 4), (out, y - height / 4), (right, y - height / 4)]
    else:
        start, end = placing.middle[arrow.source], placing.middle[arrow.target]
        bends = placing.between(arrow)
        first, last = (bends or [end])[0], (bends or [start])[-1]
        path = [
            _edge_of(start, placing.size[arrow.source], first),
            *bends,
            _edge_of(end, placing.size[arrow.target], last),
        ]
    axes.add_artist(FancyArrowPatch(path=Path(path), gid=svg_id(name), zorder=2, **style))


def _edge_of(middle: Point, size: Point, towards: Point) -> Point:
    """Return the point on the upper or lower side of a rectangle at which an arrow to the point `towards` starts.

    middle, size: the center and the size of the rectangle.
    """
    below = towards[1] > middle[1]
    y = middle[1] + (size[1] / 2 if below else -size[1] / 2)
    share = min(1.0, abs(y - middle[1]) / max(abs(towards[1] - middle[1]), 1e-9))
    reach = size[0] / 2 - PAD
    return middle[0] + max(-reach, min(reach, (towards[0] - middle[0]) * share)), y
