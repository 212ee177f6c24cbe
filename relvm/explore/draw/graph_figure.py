"""Pictures of graphs with nested boxes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from relvm.explore.draw.box_layout import ROOT, Port, arrange_box, edges_in_boxes, first_difference, item_paths
from relvm.explore.draw.columns import choose_columns
from relvm.explore.draw.graph import COLORS, FONT, GAP, LETTER, LINE, PAD, Arrow, Graph, Item, all_items, text_size
from relvm.explore.draw.matplotlib_import import new_figure
from relvm.explore.draw.sugiyama import Edge, Layout, Point
from relvm.quoting import svg_id, svg_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from relvm.explore.draw.picture import Picture


_LEAST_WIDTH, _LEAST_HEIGHT = 3.2, 1.2  # of a figure, in inches


def draw_graph(graph: Graph, title: str) -> Picture:
    """Draw the graph in layers, with arrows pointing down except in cycles.  The size of the figure fits the graph.

    A long chain is drawn in several columns, which follow each other from left to right.

    The gid (SVG identifier) of a rectangle is the title of its item.  The gid of an arrow is `source -> target`.
    """
    layout = _GraphLayout(graph)
    layout.lay_out(graph.items)
    layout.shift(graph.items, (0.0, 0.0))
    paths = [layout.path(arrow) for arrow in graph.arrows]
    columns = choose_columns(layout.layouts[ROOT], paths)
    width = max(columns.width + 2 * PAD, LETTER * len(title) + 2 * PAD, _LEAST_WIDTH)
    height = max(columns.height + 2 * PAD + LINE, _LEAST_HEIGHT)
    left, top = (width - columns.width) / 2, PAD + LINE
    figure = new_figure(width, height)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    axes.text(PAD, PAD, svg_text(title), va="top", fontsize=FONT, family="DejaVu Sans Mono", fontweight="bold")
    for item in all_items(graph.items):
        x, y = columns.place(layout.middle[item.key])
        _draw_item(axes, item, (x + left, y + top), layout.size[item.key])
    titles = {item.key: item.title for item in all_items(graph.items)}
    for arrow, path in zip(graph.arrows, paths, strict=True):
        points = [(x + left, y + top) for x, y in columns.path(path)]
        _draw_arrow(axes, arrow, points, f"{titles[arrow.source]} -> {titles[arrow.target]}")
    return figure


class _GraphLayout:
    """The layout of a graph, computed box by box from the innermost boxes outwards.

    Positions are relative to the surrounding box until `shift` makes them absolute.
    """

    def __init__(self, graph: Graph) -> None:
        self.edges = edges_in_boxes(graph)
        self.paths = dict(item_paths(graph.items))
        self.middle: dict[Hashable, Point] = {}
        self.size: dict[Hashable, Point] = {}
        self.layouts: dict[Hashable, Layout] = {}
        self.corner: dict[Hashable, Point] = {}  # upper left corner of the contents of each box

    def lay_out(self, items: tuple[Item, ...], box: Hashable = ROOT) -> Point:
        """Lay out `items`, the contents of a box or of the graph.  Return their total width and height."""
        for item in items:
            self.size[item.key] = self.size_of(item)
        sizes = {item.key: self.size[item.key] for item in items}
        self.layouts[box] = layout = arrange_box(sizes, self.edges.get(box, {}))
        self.middle |= {item.key: layout.centers[item.key] for item in items}
        return layout.width, layout.height

    def size_of(self, item: Item) -> Point:
        width, height = text_size(item)
        if item.inside:
            inner = self.lay_out(item.inside, item.key)
            width, height = max(width, inner[0] + 2 * PAD), height + PAD + inner[1]
        return width, height

    def shift(self, items: tuple[Item, ...], corner: Point, box: Hashable = ROOT) -> None:
        """Convert the positions of the items in a box to positions in the figure.

        items: the items, whose positions are relative to the upper left corner of the box.
        corner: the position of this corner in the figure.
        box: the key of the box.
        """
        self.corner[box] = corner
        for item in items:
            x, y = self.middle[item.key]
            self.middle[item.key] = x, y = x + corner[0], y + corner[1]
            if item.inside:
                height = self.size[item.key][1]
                inner = x - self.layouts[item.key].width / 2, y - height / 2 + 2 * PAD + LINE * len(item.lines)
                self.shift(item.inside, inner, item.key)

    def path(self, arrow: Arrow) -> list[Point]:
        """Return the points of the line of an arrow, with its ends."""
        if arrow.source == arrow.target:
            (x, y), (width, height) = self.middle[arrow.source], self.size[arrow.source]
            right, out = x + width / 2, x + width / 2 + GAP[0] / 2
            return [(right, y + height / 4), (out, y + height / 4), (out, y - height / 4), (right, y - height / 4)]
        start, end = self.middle[arrow.source], self.middle[arrow.target]
        bends = self.route(arrow)
        first, last = (bends or [end])[0], (bends or [start])[-1]
        return [
            _arrow_end(start, self.size[arrow.source], first),
            *bends,
            _arrow_end(end, self.size[arrow.target], last),
        ]

    def route(self, arrow: Arrow) -> list[Point]:
        """Return the points at which the line of an arrow bends, between its source and its target.

        Bends are at the borders of boxes that the arrow enters or leaves, and at gaps between nodes of a layer.
        """
        source, target = self.paths[arrow.source], self.paths[arrow.target]
        common = first_difference(source, target)
        if common is None:
            return []
        points: list[Point] = []
        out, into = Port("out", arrow.source), Port("in", arrow.source)
        for box, item in reversed(list(zip(source[common:], source[common + 1 :], strict=False))):
            port = self.absolute(box, self.layouts[box].centers[out])
            points += [*self.bends(box, (item, out)), port, (port[0], self.middle[box][1] + self.size[box][1] / 2)]
        points += self.bends(source[common - 1], (source[common], target[common]))
        for box, item in zip(target[common:], target[common + 1 :], strict=False):
            port = self.absolute(box, self.layouts[box].centers[into])
            points += [(port[0], self.middle[box][1] - self.size[box][1] / 2), port, *self.bends(box, (into, item))]
        return points

    def bends(self, box: Hashable, edge: Edge) -> list[Point]:
        return [self.absolute(box, point) for point in self.layouts[box].bends[edge]]

    def absolute(self, box: Hashable, point: Point) -> Point:
        """Convert a position in the layout of a box to an absolute position."""
        return self.corner[box][0] + point[0], self.corner[box][1] + point[1]


def _draw_item(axes: Axes, item: Item, middle: Point, size: Point) -> None:
    from matplotlib.patches import Rectangle

    (x, y), (width, height) = middle, size
    left, top = x - width / 2, y - height / 2
    color = COLORS[item.kind]
    edge = "#888888" if item.inside else "#333333"
    axes.add_artist(
        Rectangle((left, top), width, height, facecolor=color, edgecolor=edge, lw=0.7, gid=svg_id(item.title))
    )
    style: dict[str, Any] = {"fontsize": FONT, "family": "DejaVu Sans Mono", "linespacing": 1.1, "clip_on": True}
    text = svg_text("\n".join(item.lines))
    if item.inside:
        behind = {"facecolor": color, "edgecolor": "none", "pad": 1}  # no arrow crosses the title
        axes.text(left + PAD, top + PAD, text, ha="left", va="top", bbox=behind, **style)
    else:
        axes.text(x, y, text, ha="center", va="center", **style)


def _draw_arrow(axes: Axes, arrow: Arrow, points: list[Point], name: str) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    color = "#cc0000" if arrow.marked else "#555555"
    style: dict[str, Any] = {
        "arrowstyle": "-|>",
        "mutation_scale": 7,
        "color": color,
        "lw": 0.8,
        "shrinkA": 0,
        "shrinkB": 0,
    }
    axes.add_artist(FancyArrowPatch(path=Path(points), gid=svg_id(name), zorder=2, **style))


def _arrow_end(middle: Point, size: Point, towards: Point) -> Point:
    """Return the end of an arrow at a node: the point on its upper or lower side that faces the point `towards`.

    middle, size: the center and the size of the node.
    """
    below = towards[1] > middle[1]
    y = middle[1] + (size[1] / 2 if below else -size[1] / 2)
    share = min(1.0, abs(y - middle[1]) / max(abs(towards[1] - middle[1]), 1e-9))
    reach = size[0] / 2 - PAD
    return middle[0] + max(-reach, min(reach, (towards[0] - middle[0]) * share)), y
