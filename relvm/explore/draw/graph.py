"""Graphs with nested boxes of nodes: data structure, drawing and text form."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from relvm.explore.draw.matplotlib_import import new_figure
from relvm.explore.draw.sugiyama import Point, arrange
from relvm.quoting import svg_id, svg_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from relvm.ir.expr import Binding, MatchCast, Var

_FONT = 7  # points
LETTER = 0.63 * _FONT / 72  # the width of a letter of DejaVu Sans Mono, rounded up for screens, in inches
LINE = 1.3 * _FONT / 72
PAD = 0.08  # inches, inside of a node and of a box
SCALE = 120  # pixels of a page per inch
GAP = (0.2, 0.3)  # inches, between nodes
_NAME_LETTERS = 28  # of a longer name, only the end is drawn

# The kind of a node or box -> its color.
COLOURS = {
    "end": "#eeeeee",
    "plain": "#ffffff",
    "operator": "#d6e8fa",
    "call": "#fde3c4",
    "group": "#e4f4e0",
    "choice": "#f3e6f8",
    "branch": "#fbf6fd",
    "cycle": "#fbd0d0",
    "scope": "#f4f4f6",
    "function": "#f7f3ea",
}


@dataclass(frozen=True)
class Item:
    """A node, or a box of items.

    Attributes
    ----------
    key
        Identifier that edges use, unique in the whole graph.
    label
        What the item computes, such as the name of an operator, or "" for a value.
    kind
        A key of COLOURS.
    detail
        Further lines, such as the type of the value.
    name
        The name of the value, or "" if it has none.
    inside
        The items of a box.
    binding
        What the item shows: a binding, or the variable of a parameter.  None if it shows neither.
    function
        The function that the item calls, or "".
    """

    key: Hashable
    label: str
    kind: str
    detail: str = ""
    name: str = ""
    inside: tuple[Item, ...] = ()
    binding: Binding | MatchCast | Var | None = None
    function: str = ""

    @property
    def title(self) -> str:
        """The name and the label, as in the text form of a module."""
        return " = ".join(part for part in (self.name, self.label) if part)

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the item in a picture: the label, the details and the shortened name."""
        name = self.name if len(self.name) <= _NAME_LETTERS else f"...{self.name[3 - _NAME_LETTERS :]}"
        parts = (self.label, self.detail, name) if self.label else (name, self.detail)
        return tuple(line for part in parts if part for line in part.split("\n"))


@dataclass(frozen=True)
class Arrow:
    """An edge between two items, given by their keys.  marked: whether it is drawn in red."""

    source: Hashable
    target: Hashable
    marked: bool = False


@dataclass(frozen=True)
class Graph:
    """A graph to draw: items, and arrows between them."""

    items: tuple[Item, ...]
    arrows: tuple[Arrow, ...]


def collapsed(graph: Graph, depth: int) -> Graph:
    """Return the graph with `depth` levels of boxes open.

    A deeper box becomes a node.  Arrows from or to items of the box connect this node instead.  Arrows inside the box
    are removed.
    """
    seen_as: dict[Hashable, Hashable] = {}

    def visit(item: Item, left: int, shown: Hashable | None) -> Item:
        seen_as[item.key] = item.key if shown is None else shown
        within = item.key if shown is None and left == 0 else shown
        inside = tuple(visit(each, left - 1, within) for each in item.inside)
        return replace(item, inside=() if within is not None else inside)

    items = tuple(visit(item, depth, None) for item in graph.items)
    moved: dict[Arrow, None] = {}
    for arrow in graph.arrows:
        ends = seen_as[arrow.source], seen_as[arrow.target]
        if ends[0] != ends[1] or ends == (arrow.source, arrow.target):
            moved[replace(arrow, source=ends[0], target=ends[1])] = None
    return Graph(items, tuple(moved))


def format_graph(graph: Graph) -> str:
    """Return the graph as text: one line for each item with its predecessors, and the items of a box indented below."""
    names = {item.key: item.name or item.label for item in all_items(graph.items)}
    sources: dict[Hashable, list[str]] = {}
    for arrow in graph.arrows:
        sources.setdefault(arrow.target, []).append(names[arrow.source])
    lines = []

    def write(item: Item, indent: str) -> None:
        came = f"  <- {', '.join(sources[item.key])}" if item.key in sources else ""
        text = f"{item.title}: {item.detail}" if item.detail else item.title
        lines.append(f"{indent}{text.replace(chr(10), ': ')}{came}\n")
        for each in item.inside:
            write(each, indent + "  ")

    for item in graph.items:
        write(item, "")
    return "".join(lines)


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
    axes.text(PAD, PAD, svg_text(title), va="top", fontsize=_FONT, family="DejaVu Sans Mono", fontweight="bold")
    for item in all_items(graph.items):
        _draw_item(axes, item, placing.middle[item.key], placing.size[item.key])
    titles = {item.key: item.title for item in all_items(graph.items)}
    for arrow in graph.arrows:
        _draw_arrow(axes, arrow, placing, f"{titles[arrow.source]} -> {titles[arrow.target]}")
    return figure


def text_size(item: Item) -> Point:
    """Return the width and the height of an item without the items inside it."""
    letters = max(map(len, item.lines), default=0) + (2 if item.inside else 0)  # a page marks boxes before their text
    return LETTER * letters + 2 * PAD, LINE * len(item.lines) + 2 * PAD


def all_items(items: tuple[Item, ...]) -> Iterator[Item]:
    """Yield all items in preorder: each box is followed by the items inside it."""
    for item in items:
        yield item
        yield from all_items(item.inside)


class _Placing:
    """The layout of a graph, computed box by box from the innermost boxes outwards.

    Positions are relative to the surrounding box until `shift` makes them absolute.
    """

    def __init__(self, graph: Graph) -> None:
        self.arrows = graph.arrows
        self.middle: dict[Hashable, Point] = {}
        self.size: dict[Hashable, Point] = {}
        self.bends: dict[Arrow, list[Point]] = {}
        self.bends_of: dict[Hashable, list[Arrow]] = {}  # the arrows whose bends move with a box

    def place(self, items: tuple[Item, ...], box: Hashable | None = None) -> Point:
        """Lay out the items of a box, or of the whole graph, and return their total width and height."""
        for item in items:
            self.size[item.key] = self.size_of(item)
        owner = {each.key: item.key for item in items for each in all_items((item,))}
        own = {}
        for arrow in self.arrows:
            ends = owner.get(arrow.source), owner.get(arrow.target)
            if None not in ends and ends[0] != ends[1]:
                own[arrow] = ends
        layout = arrange({item.key: self.size[item.key] for item in items}, own.values(), GAP)
        self.middle |= layout.centres
        self.bends |= {arrow: layout.bends[ends] for arrow, ends in own.items()}
        self.bends_of[box] = list(own)
        return layout.width, layout.height

    def size_of(self, item: Item) -> Point:
        width, height = text_size(item)
        if item.inside:
            inner = self.place(item.inside, item.key)
            width, height = max(width, inner[0] + 2 * PAD), height + PAD + inner[1]
        return width, height

    def shift(self, items: tuple[Item, ...], corner: Point, box: Hashable | None = None) -> None:
        """Move the items and their contents so that `corner` is their upper left corner."""
        for arrow in self.bends_of[box]:
            self.bends[arrow] = [(x + corner[0], y + corner[1]) for x, y in self.bends[arrow]]
        for item in items:
            x, y = self.middle[item.key]
            self.middle[item.key] = x, y = x + corner[0], y + corner[1]
            if item.inside:
                width, height = self.size[item.key]
                above = LINE * len(item.lines) + PAD
                inner = x - width / 2 + PAD, y - height / 2 + PAD + above
                self.shift(item.inside, inner, item.key)


def _draw_item(axes: Axes, item: Item, middle: Point, size: Point) -> None:
    from matplotlib.patches import Rectangle

    (x, y), (width, height) = middle, size
    left, top = x - width / 2, y - height / 2
    colour = COLOURS[item.kind]
    edge = "#888888" if item.inside else "#333333"
    axes.add_artist(
        Rectangle((left, top), width, height, facecolor=colour, edgecolor=edge, lw=0.7, gid=svg_id(item.title))
    )
    style: dict[str, Any] = {"fontsize": _FONT, "family": "DejaVu Sans Mono", "linespacing": 1.1, "clip_on": True}
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
        bends = placing.bends.get(arrow, [])
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
