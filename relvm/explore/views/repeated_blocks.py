"""Folding of repeated blocks in graphs, such as the layers of a transformer.

The items of a graph are in topological order.  A repeated block is a part of this order that follows itself several
times (a tandem repeat): the items have the same operators, and the edges inside each copy are the same.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from relvm.data_classes import dataclass
from relvm.errors import counted
from relvm.explore.draw.graph import Graph, Item, all_items
from relvm.explore.views.bookkeeping import hide_bookkeeping
from relvm.ir.expr import Binding, OpCall
from relvm.kernels.lowering_rules import Contraction, CustomKernel

_MAX_NODES = 150  # the contents of a box are folded if they have more operators and kernels
_MAX_ITEMS = 6  # and if there are more items and boxes side by side
_MIN_SAVED = 12  # the number of operators and kernels in all copies but the first must be at least this
_BOXES = ("scope", "repeat", "function")  # the kinds of boxes that only group items
_MAX_OPERATORS = 3  # the number of operators that the text of a block lists


def fold_repeats(graph: Graph) -> Graph:
    """Put a box around each copy of a repeated block, and a box around all its copies.

    Only the contents of the graph, or of a scope or function, with more than 150 operators and kernels are folded.
    A bookkeeping item is placed in the box of the item that follows it.
    """
    return replace(graph, items=_Folder(graph).fold(graph.items))


@dataclass(frozen=True)
class _Run:
    """Copies of a block that follow each other: `count` copies of `length` items, from the item `start` on."""

    start: int
    length: int
    count: int

    @property
    def saved(self) -> int:
        """The number of items that are not shown if only one copy is shown."""
        return self.length * (self.count - 1)


class _Folder:
    def __init__(self, graph: Graph) -> None:
        shown = hide_bookkeeping(graph)
        self.shown = {item.key for item in all_items(shown.items)}
        self.sources: dict[Hashable, list[Hashable]] = {}
        for arrow in shown.arrows:
            self.sources.setdefault(arrow.target, []).append(arrow.source)
        self.signatures: dict[object, int] = {}  # the structure of an item -> its number
        self.block_numbers = itertools.count()

    def fold(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        items = tuple(replace(item, inside=self.fold(item.inside)) if item.kind in _BOXES else item for item in items)
        shown = [number for number, item in enumerate(items) if item.key in self.shown]
        if len(shown) <= _MAX_ITEMS or sum(self.node_count(items[number]) for number in shown) <= _MAX_NODES:
            return items
        level = _Level(self, [items[number] for number in shown])
        # Hidden items belong to the next shown item, and the last ones to none.
        starts = [0, *(number + 1 for number in shown)]
        folded: list[Item] = []
        at = 0
        for run in level.runs(0, len(shown)):
            folded += items[starts[at] : starts[run.start]]
            copies = [
                items[starts[first] : starts[first + run.length]]
                for first in range(run.start, run.start + run.length * run.count, run.length)
            ]
            folded.append(self.repeat(copies))
            at = run.start + run.length * run.count
        return (*folded, *items[starts[at] :])

    def node_count(self, item: Item) -> int:
        """Return the number of operators and kernels shown in an item."""
        if item.kind not in _BOXES:
            return int(item.key in self.shown)
        return sum(map(self.node_count, item.inside))

    def repeat(self, copies: Sequence[tuple[Item, ...]]) -> Item:
        """Return the box of all copies of a block."""
        shown = [[item for item in copy if item.key in self.shown] for copy in copies]
        if len(shown[0]) == 1 and shown[0][0].kind not in _BOXES:  # a single operator needs no box
            first = shown[0][0]
            return Item(
                ("repeat", first.key),
                f"{len(copies)} \u00d7 {first.label}",
                "repeat",
                inside=tuple(itertools.chain(*copies)),
            )
        blocks = [self.block(copy) for copy in copies]
        first, last = blocks[0], blocks[-1]
        label = first.label if first.label == last.label else f"{first.label} \u2026 {last.label}"
        detail = f"{len(blocks)} \u00d7 {first.detail}"
        return Item(("repeat", first.key), label, "repeat", detail, inside=tuple(blocks))

    def block(self, items: tuple[Item, ...]) -> Item:
        """Return the box of one copy of a block, or the box that the copy consists of."""
        number = next(self.block_numbers)
        shown = [item for item in items if item.key in self.shown]
        if len(items) == 1 and items[0].kind == "scope":
            box = items[0]
            return replace(box, detail="\n".join((box.detail, *self.operators(box.inside))))
        scopes = [item.label for item in shown if item.kind == "scope"]
        label = scopes[0] if len(scopes) == 1 else f"block {number}"
        values = sum(not item.inside for item in all_items(items) if item.key in self.shown)
        detail = "\n".join((counted(values, "value"), *self.operators(items)))
        return Item(("block", shown[0].key), label, "scope", detail, inside=self.fold(items))

    def operators(self, items: tuple[Item, ...]) -> tuple[str, ...]:
        """Return a line with the operators that do most of the work, such as `6 matmul, attention`, or no line."""
        calls: Counter[str] = Counter()
        is_heavy: dict[str, bool] = {}
        for item in all_items(items):
            if item.key in self.shown and isinstance(item.binding, Binding) and isinstance(item.binding.value, OpCall):
                op = item.binding.value.op
                calls[op.name] += 1
                is_heavy[op.name] = isinstance(op.lower, Contraction | CustomKernel)
        chosen = sorted(calls, key=lambda name: (not is_heavy[name], -calls[name]))[:_MAX_OPERATORS]
        text = ", ".join(f"{calls[name]} {name}" if calls[name] > 1 else name for name in chosen)
        return (text,) if text else ()

    def signature(self, item: Item) -> int:
        """Return a number that two items share if they, and the shown items inside them, have the same operators."""
        if item.kind in ("scope", "repeat"):
            own: object = item.kind
        elif item.kind == "end":
            own = item.key
        else:
            own = item.kind, item.label
        inside = tuple(self.signature(each) for each in item.inside if each.key in self.shown)
        return self.signatures.setdefault((own, inside), len(self.signatures))


class _Level:
    """The shown items of one box.

    Attributes
    ----------
    items
        The items, in topological order.
    signatures
        For each item, the number of its signature.
    node_counts
        For each item, the number of operators and kernels in it.
    inputs
        For each item, the positions of the items from which edges lead to it, or -1 for an item outside this box.
    """

    def __init__(self, folder: _Folder, items: Sequence[Item]) -> None:
        self.items = items
        self.signatures = np.array([folder.signature(item) for item in items])
        self.node_counts = [folder.node_count(item) for item in items]
        position = {inner.key: number for number, item in enumerate(items) for inner in all_items((item,))}
        self.inputs = [
            tuple(
                sorted(
                    {
                        position.get(source, -1)
                        for inner in all_items((item,))
                        for source in folder.sources.get(inner.key, ())
                    }
                    - {number}
                )
            )
            for number, item in enumerate(items)
        ]

    def runs(self, start: int, end: int) -> Iterator[_Run]:
        """Yield the repeated blocks among the items from `start` up to `end`, in order: first the best, then others
        before and after it."""
        *_, best = (None, *self._candidates(start, end))
        if best is None:
            return
        yield from self.runs(start, best.start)
        yield best
        yield from self.runs(best.start + best.length * best.count, end)

    def _candidates(self, start: int, end: int) -> Iterator[_Run]:
        """Yield repeated blocks, each of which saves more than those before it."""
        signatures = self.signatures[start:end]
        most = 0
        for length in range(1, (end - start) // 2 + 1):
            equal = np.concatenate(([False], signatures[:-length] == signatures[length:], [False]))
            edges = np.flatnonzero(equal[1:] != equal[:-1])
            for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
                if last - first < length or last - first <= most:
                    continue
                run = self._placed(start + first, start + last + length, length)
                if run is not None and run.saved > most:
                    most = run.saved
                    yield run

    def _placed(self, start: int, end: int, length: int) -> _Run | None:
        """Choose where the copies begin in a periodic part of the items, and return the run of isomorphic copies.

        The copies begin where the fewest values lead from one copy to the next.  Return None if the run is too small.

        start, end: the bounds of the periodic part.   length: the number of items of a period, which is that of a copy.
        """
        offsets = range(min(length, end - start - 2 * length + 1))
        offset = min(offsets, key=lambda each: self._crossing(start + each + length, length))
        return self._isomorphic(start + offset, (end - start - offset) // length, length)

    def _crossing(self, boundary: int, length: int) -> int:
        """Return how many values of the copy before `boundary` are used in the copy behind it."""
        return len(
            {
                source
                for number in range(boundary, boundary + length)
                for source in self.inputs[number]
                if boundary - length <= source < boundary
            }
        )

    def _isomorphic(self, start: int, count: int, length: int) -> _Run | None:
        """Return the longest run of copies whose inner edges are the same, or None if it is too small.

        There are `count` copies of `length` items each, from item `start` on.
        """
        copies = [self._edges(start + number * length, length) for number in range(count)]
        runs = [list(group) for _, group in itertools.groupby(range(count), key=copies.__getitem__)]
        longest = max(runs, key=len)
        run = _Run(start + longest[0] * length, length, len(longest))
        return run if sum(self.node_counts[run.start + length : run.start + length * run.count]) >= _MIN_SAVED else None

    def _edges(self, start: int, length: int) -> tuple[tuple[int, ...], ...]:
        """Return, for each item of a copy, the positions of its inputs in the copy.  -1 stands for other inputs."""
        return tuple(
            tuple(source - start if source >= start else -1 for source in self.inputs[number])
            for number in range(start, start + length)
        )
