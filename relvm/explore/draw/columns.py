"""Columns of a picture: a graph that is much higher than wide is cut between layers, and its parts are side by side.

The y coordinate of a point in the uncut graph determines its column.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect
from collections.abc import Sequence

from relvm.data_classes import dataclass
from relvm.explore.draw.sugiyama import LANE, Layout, Point

_LEAST_HEIGHT = 20.0  # inches; a lower graph has one column
_LEAST_RATIO = 3.0  # of height to width
_RATIO = 1.3  # of height to width that the columns aim at
_MAX_LINES = 6  # limit on the lines that lead from one column to the next
_GAP = 0.4  # inches between columns, without the lines between them


@dataclass(frozen=True)
class Columns:
    """The columns of a graph.  Lengths are in inches; y grows downwards.

    Attributes
    ----------
    width, height
        Size of all columns together.
    cuts
        The y coordinates of the cuts in the uncut graph, from top to bottom.
    lines
        For each cut, the x coordinates at which lines cross it, from right to left.  Arrows of the same value share a
        line.
    offsets
        For each column, the vector that is added to a position in the uncut graph.
    edges
        For each column, the x coordinate of its right edge and the y coordinate of its lower edge.
    """

    width: float
    height: float
    cuts: tuple[float, ...] = ()
    lines: tuple[tuple[float, ...], ...] = ()
    offsets: tuple[Point, ...] = ((0.0, 0.0),)
    edges: tuple[Point, ...] = ()

    def place(self, point: Point) -> Point:
        """Return the position of a point of the uncut graph."""
        dx, dy = self.offsets[bisect(self.cuts, point[1])]
        return point[0] + dx, point[1] + dy

    def path(self, points: Sequence[Point]) -> list[Point]:
        """Return the line through points of the uncut graph.  Between columns, it leads through the space beside them.

        Lines from one column to the next do not cross each other if they have the same order in both.
        """
        found = [self.place(points[0])]
        for start, end in itertools.pairwise(points):
            first, last = sorted((start, end), key=lambda point: point[1])  # from the upper to the lower point
            turns = [point for cut in self._cuts_between(first, last) for point in self._turn(cut, first, last)]
            found += [*(turns if first is start else turns[::-1]), self.place(end)]
        return found

    def _cuts_between(self, upper: Point, lower: Point) -> range:
        return range(bisect(self.cuts, upper[1]), bisect(self.cuts, lower[1]))

    def _turn(self, cut: int, upper: Point, lower: Point) -> list[Point]:
        """Return the corners of a line from the end of column `cut` to the start of the next column.

        upper, lower: the points of the uncut graph that the line connects.
        """
        lines = self.lines[cut]
        number = lines.index(upper[0])
        (right, bottom), top = self.edges[cut], self.offsets[cut + 1][1] + self.cuts[cut]
        x, y = right + LANE * (number + 1), bottom + LANE * (number + 1)
        below_title = top - LANE * (len(lines) - number)
        start, end = upper[0] + self.offsets[cut][0], lower[0] + self.offsets[cut + 1][0]
        return [(start, y), (x, y), (x, below_title), (end, below_title)]


def choose_columns(layout: Layout, paths: Sequence[Sequence[Point]]) -> Columns:
    """Return the columns of a graph: several if it is long and few lines cross the cuts, otherwise one.

    layout: the layout of the uncut graph.
    paths: the lines of its arrows.
    """
    one = Columns(layout.width, layout.height)
    if layout.height < max(_LEAST_HEIGHT, _LEAST_RATIO * layout.width):
        return one
    gaps = [
        (above.top + above.height + below.top) / 2
        for above, below in itertools.pairwise(layout.layers)
        if above.top + above.height < below.top
    ]
    crossing: list[set[float]] = [set() for _ in gaps]
    for path in paths:
        for start, end in itertools.pairwise(path):
            upper, lower = sorted((start, end), key=lambda point: point[1])
            for gap in range(bisect(gaps, upper[1]), bisect(gaps, lower[1])):
                crossing[gap].add(upper[0])
    count = math.ceil(math.sqrt(layout.height / (_RATIO * (layout.width + _GAP))))
    part = layout.height / count
    chosen = []
    for target in (part * number for number in range(1, count)):
        near = [gap for gap, y in enumerate(gaps) if abs(y - target) <= part / 4]
        if not near:
            return one
        chosen.append(min(near, key=lambda gap: (len(crossing[gap]), abs(gaps[gap] - target))))
    if any(len(crossing[gap]) > _MAX_LINES for gap in chosen):
        return one
    lines = tuple(tuple(sorted(crossing[gap], reverse=True)) for gap in chosen)
    return _arranged(layout, tuple(gaps[gap] for gap in chosen), lines)


def _arranged(layout: Layout, cuts: tuple[float, ...], lines: tuple[tuple[float, ...], ...]) -> Columns:
    above = LANE * (1 + max(map(len, lines)))  # space for the lines that enter a column
    offsets: list[Point] = []
    edges: list[Point] = []
    right = 0.0
    for number, (top, bottom) in enumerate(itertools.pairwise((-math.inf, *cuts, math.inf))):
        layers = [layer for layer in layout.layers if top < layer.top < bottom]
        places = [(x - width / 2, x + width / 2) for layer in layers for _, x, width in layer.places]
        start, end = min(left for left, _ in places), max(right for _, right in places)
        offsets.append((right - start, above - layers[0].top))
        edges.append((right + end - start, above + layers[-1].top + layers[-1].height - layers[0].top))
        right = edges[-1][0] + _GAP + (LANE * len(lines[number]) if number < len(lines) else 0.0)
    height = max(y for _, y in edges) + above
    return Columns(edges[-1][0], height, cuts, lines, tuple(offsets), tuple(edges))
