"""Graphs with nested boxes of nodes: data structure and text form."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from relvm.data_classes import dataclass
from relvm.explore.draw.sugiyama import Point

if TYPE_CHECKING:
    from relvm.ir.expr import Binding, MatchCast, Var

FONT = 7  # points
LETTER = 0.63 * FONT / 72  # the width of a letter of DejaVu Sans Mono, rounded up for screens, in inches
LINE = 1.3 * FONT / 72
PAD = 0.08  # inches between the border of a node or box and its contents
SCALE = 120  # pixels per inch in an HTML page
GAP = (0.2, 0.25)  # inches between nodes of a layer, and between layers
_NAME_LETTERS = 28  # longer names are shortened to their end

# The kind of a node or box -> its color.
COLORS = {
    "end": "#e6e6e6",
    "plain": "#ffffff",
    "operator": "#d6e8fa",
    "call": "#fde3c4",
    "group": "#e4f4e0",
    "choice": "#fbdff0",
    "branch": "#fdf4fa",
    "cycle": "#fbd0d0",
    "scope": "#f6f7f9",
    "repeat": "#e7e3f6",
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
        A key of COLORS, which determines the color.
    detail
        Further lines of text, such as the type of the value.
    name
        The name of the value, or "" if it has none.
    inside
        The items inside the box.  Empty for a node.
    binding
        What the item shows: a binding, or the variable of a parameter.  None if it shows neither.
    function
        The function that the item calls, or "".
    is_bookkeeping
        Whether the item computes no tensor, but for example a size or a check.  A page hides such items at first.
    """

    key: Hashable
    label: str
    kind: str
    detail: str = ""
    name: str = ""
    inside: tuple[Item, ...] = ()
    binding: Binding | MatchCast | Var | None = None
    function: str = ""
    is_bookkeeping: bool = False

    @property
    def title(self) -> str:
        """The name and the label, such as "y = relu", or only one of them if the other is empty."""
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
    """A graph to draw.

    Attributes
    ----------
    items, arrows
        The items, and the arrows between them.
    sizes
        For each size that has a short name in the items, such as `d0`, the size.
    legend
        For each kind of item, what items of this kind are.
    """

    items: tuple[Item, ...]
    arrows: tuple[Arrow, ...]
    sizes: Mapping[str, str] = field(default_factory=dict, hash=False)
    legend: Mapping[str, str] = field(default_factory=dict, hash=False)


def collapse(graph: Graph, depth: int) -> Graph:
    """Return the graph with only `depth` levels of boxes open.

    A closed box becomes a node.  Arrows from or to items of the box become arrows from or to this node.  Arrows inside
    the box are removed.
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
    return replace(graph, items=items, arrows=tuple(moved))


def format_graph(graph: Graph) -> str:
    """Return the graph as text: one line for each item with its predecessors, and the items of a box indented below.

    The last lines are the sizes that have short names.
    """
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
    lines.extend(f"{name} = {size}\n" for name, size in graph.sizes.items())
    return "".join(lines)


def text_size(item: Item) -> Point:
    """Return the width and the height, in inches, of an item drawn as a node, without the items inside it."""
    letters = max(map(len, item.lines), default=0) + (2 if item.inside else 0)  # a page marks boxes before their text
    return LETTER * letters + 2 * PAD, LINE * len(item.lines) + 2 * PAD


def all_items(items: tuple[Item, ...]) -> Iterator[Item]:
    """Yield all items in preorder: each box is followed by the items inside it."""
    for item in items:
        yield item
        yield from all_items(item.inside)
