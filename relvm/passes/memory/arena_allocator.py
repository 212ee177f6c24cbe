"""Arena allocation: assigns offsets in one arena to blocks of known size and lifetime.

The functions are pure and work on numbers only.  Placing blocks in the smallest arena is NP-hard (dynamic storage
allocation).  First fit, tried with several orders of the blocks, comes within a few percent of the lower bound, which
is the largest number of bytes in use at the same time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence

from relvm.data_classes import value_record

ALIGNMENT = 64  # alignment in bytes of storages, and of the blocks in them: RVM_ALIGNMENT in csrc/core/base.h

_REPAIRS = 24  # maximum number of orders tried after the sorted orders
_PLACEMENTS = 50_000  # maximum number of blocks placed while these orders are tried
_NEIGHBORS = 2_000_000  # maximum comparisons with placed blocks in one order; remaining blocks go on top


@value_record
class Request:
    """A request for a block of memory.

    The block is in use at every point from `first` to `last`, both included.  Its size is `size_bytes`, and its offset
    must be a multiple of `alignment`.  The allocator ignores `name`.
    """

    name: str
    size_bytes: int
    first: int
    last: int
    alignment: int = ALIGNMENT

    def __post_init__(self) -> None:
        assert self.size_bytes >= 0 and self.first <= self.last and self.alignment > 0, self


@value_record
class Arena:
    """The offsets of blocks in one arena, in the order of `requests`.

    Attributes
    ----------
    requests
        The requests for the blocks.
    offsets
        The offset of the block of each request, in bytes.
    size_bytes
        The size of the arena.
    lower_bound_bytes
        The largest number of bytes in use at one point.  No arena can be smaller.
    """

    requests: tuple[Request, ...]
    offsets: tuple[int, ...]
    size_bytes: int
    lower_bound_bytes: int

    def blocks(self) -> list[tuple[int, Request]]:
        """Return the blocks in order of first use, each as its offset and its request."""
        placed = zip(self.offsets, self.requests, strict=True)
        return sorted(placed, key=lambda item: (item[1].first, item[1].last, item[0]))

    @property
    def ratio(self) -> float:
        """The ratio size_bytes / lower_bound_bytes, or 1.0 for an empty arena."""
        return self.size_bytes / self.lower_bound_bytes if self.lower_bound_bytes else 1.0


def align(size_bytes: int, alignment: int = ALIGNMENT) -> int:
    """Return `size_bytes` rounded up to a multiple of `alignment`."""
    return -(-size_bytes // alignment) * alignment


def plan_arena(requests: Sequence[Request]) -> Arena:
    """Place blocks in an arena so that no two blocks that are in use at the same point overlap.

    Blocks are placed one after the other, each at the lowest free offset, in order of decreasing size.  If the arena is
    larger than `lower_bound(requests)`, other orders are tried: by size times lifetime, by lifetime, and by first use.
    If it is still larger, the best order is modified a limited number of times: the block that ends at the highest
    offset is moved to the front, and all blocks are placed again.  The smallest arena found is returned.

    Parameters
    ----------
    requests
        The requested blocks.  The same sequence always gives the same result.
    """
    requests = tuple(requests)
    bound = lower_bound(requests)
    spans = _compress_lifetimes(requests)
    everything = range(len(requests))
    best: list[int] = []
    best_size = -1
    order: list[int] = []
    for key in _ORDERS:
        candidate = sorted(everything, key=lambda i: (key(requests[i]), i))
        offsets = _first_fit(requests, spans, candidate)
        size = _end_offset(requests, offsets)
        if best_size < 0 or size < best_size:
            best, best_size, order = offsets, size, candidate
        if best_size <= bound:
            break
    current = best
    for _ in range(min(_REPAIRS, _PLACEMENTS // max(1, len(requests)))):
        if best_size <= bound:
            break
        highest = max(everything, key=lambda i: (current[i] + requests[i].size_bytes, -i))
        order = [highest, *(i for i in order if i != highest)]
        current = _first_fit(requests, spans, order)
        size = _end_offset(requests, current)
        if size < best_size:
            best, best_size = current, size
    return Arena(requests, tuple(best), best_size, bound)


def lower_bound(requests: Sequence[Request]) -> int:
    """Return the largest number of bytes in use at one point.  No arena can be smaller."""
    changes: dict[int, int] = {}
    for request in requests:
        changes[request.first] = changes.get(request.first, 0) + request.size_bytes
        changes[request.last + 1] = changes.get(request.last + 1, 0) - request.size_bytes
    most = live = 0
    for point in sorted(changes):
        live += changes[point]
        most = max(most, live)
    return most


_ORDERS: tuple[Callable[[Request], tuple[int, ...]], ...] = (
    lambda r: (-r.size_bytes, r.first - r.last, r.first),
    lambda r: (-r.size_bytes * (r.last - r.first + 1),),
    lambda r: (r.first - r.last, -r.size_bytes),
    lambda r: (r.first, -r.size_bytes),
)


def _end_offset(requests: tuple[Request, ...], offsets: list[int]) -> int:
    return max((offset + r.size_bytes for r, offset in zip(requests, offsets, strict=True)), default=0)


def _compress_lifetimes(requests: tuple[Request, ...]) -> list[tuple[int, int]]:
    """Return the first and last point of each block's lifetime, with the points renumbered.

    Points at which no lifetime begins or ends are omitted.  The others are numbered from 0.
    """
    points = sorted({point for r in requests for point in (r.first, r.last)})
    rank = {point: i for i, point in enumerate(points)}
    return [(rank[r.first], rank[r.last]) for r in requests]


def _first_fit(requests: tuple[Request, ...], spans: list[tuple[int, int]], order: list[int]) -> list[int]:
    offsets = [0] * len(requests)
    placed = _Intervals(1 + max((last for _, last in spans), default=0))
    compared = top = 0
    for i in order:
        request, (first, last) = requests[i], spans[i]
        if compared > _NEIGHBORS:
            offsets[i] = align(top, request.alignment)
            top = offsets[i] + request.size_bytes
            continue
        neighbors = sorted(
            (offsets[j], offsets[j] + requests[j].size_bytes) for j in placed.find_overlapping(first, last)
        )
        compared += len(neighbors)
        free = 0  # the lowest offset above the occupied ranges seen so far
        for offset, end in neighbors:
            if align(free, request.alignment) + request.size_bytes <= offset:
                break
            free = max(free, end)
        offsets[i] = align(free, request.alignment)
        top = max(top, offsets[i] + request.size_bytes)
        placed.add(i, first, last)
    return offsets


class _Intervals:
    """A set of intervals over the points 0..count-1, with a fast search for those that overlap a given interval.

    Each interval is identified by an integer.

    A search takes logarithmic time plus the time to list the results.  A segment tree finds the intervals that contain
    the start of the given interval.  A sorted list finds those that start inside the given interval.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.tree: list[list[int]] = [[] for _ in range(2 * count)]
        self.starts: list[tuple[int, int]] = []

    def add(self, item: int, first: int, last: int) -> None:
        insort(self.starts, (first, item))
        low, high = first + self.count, last + self.count + 1
        while low < high:
            if low & 1:
                self.tree[low].append(item)
                low += 1
            if high & 1:
                high -= 1
                self.tree[high].append(item)
            low >>= 1
            high >>= 1

    def find_overlapping(self, first: int, last: int) -> Iterator[int]:
        """Yield the integer of each interval that overlaps the interval [first, last], without repetition."""
        node = first + self.count
        while node:
            yield from self.tree[node]
            node >>= 1
        after = bisect_left(self.starts, (first + 1,))
        for start, item in self.starts[after:]:
            if start > last:
                return
            yield item
