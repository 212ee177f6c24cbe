"""The loop nest of convolutions with few filters to a group, as depthwise ones: a block of the input, with zeros around
it, is copied to where each window position meets the elements of many places of the result in a row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

from relvm.ir.dtypes import I64
from relvm.ir.symbolic import AnyDim, known_size
from relvm.kernels.conv.sliding_window import Window, over_two_axes, valid_range
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.loop_ir import (
    Address,
    Buffer,
    KernelBuilder,
    Literal,
    Local,
    Scalar,
    Select,
    as_scalar,
    maximum,
    minimum,
)

_ROOM = 16384  # elements of a block of the input, which is to stay in the first or second cache
_WIDEST = 256  # places of a row of the result in a block
_LANES, _ROWS, _SLACK = (
    16,
    7,
    64,
)  # csrc/codegen/gemm_f32.h reads and writes so many at a time: in columns, rows of them, on a line


class _Shape:
    """The window over two spatial axes, and a block: for each channel of a group and each phase of the strides a plane.

    A plane has a row for each row of the result in the block and `reach[0]` more, each of the places of a row and
    `reach[1]` more; its rows follow each other.  phases: those that the window meets.   room: elements of a plane.
    """

    def __init__(self, window: Window, channels: int) -> None:
        window = over_two_axes(window)
        self.sizes = tuple(map(known_size, window.sizes))
        self.strides, self.dilations = window.strides, window.dilations
        self.pads = window.pads[:2]
        self.channels = channels
        self.taps = math.prod(self.sizes)
        self.reach = tuple(
            (size - 1) * d // s for size, d, s in zip(self.sizes, self.dilations, self.strides, strict=True)
        )
        self.phases = list(dict.fromkeys(self.tap(tap)[0] for tap in range(self.taps)))
        self.room = _ROOM // (channels * len(self.phases))

    def plane(self, channel: int, phase: tuple[int, int]) -> int:
        """Where in the block a plane begins."""
        return (channel * len(self.phases) + self.phases.index(phase)) * self.room

    @property
    def step(self) -> int:
        """Window positions below each other that meet rows which follow each other: every so manyth."""
        return self.strides[0] // math.gcd(self.strides[0], self.dilations[0])

    def columns(self, most: int) -> Iterator[tuple[int, int]]:
        """The window's positions in columns of at most so many, whose rows follow each other: the first of each, and
        how many they are."""
        together = most if self.step * self.dilations[0] == self.strides[0] else 1
        for column in range(self.sizes[1]):
            for first in range(self.step):
                rows = range(first, self.sizes[0], self.step)
                for start in range(0, len(rows), together):
                    yield rows[start] * self.sizes[1] + column, len(rows[start : start + together])

    def tap(self, tap: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """The phase that a window position meets, and how many rows and elements further."""
        steps = (tap // self.sizes[1] * self.dilations[0], tap % self.sizes[1] * self.dilations[1])
        (row, column), (row_phase, column_phase) = zip(*map(divmod, steps, self.strides), strict=True)
        return (row_phase, column_phase), (row, column)


def has_few_filters(x: Buffer, w: Buffer, window: Window) -> bool:
    """Whether `write_few_filters` is for a convolution of these tensors, given that its groups have few filters."""
    sizes = (*window.sizes, w.shape[1])
    known = all(isinstance(size, int) and size > 0 for size in sizes) and len(window.sizes) <= 2
    if not known or x.dtype.name != "f32":
        return False
    shape = _Shape(window, known_size(w.shape[1]))
    return shape.room // (_WIDEST + shape.reach[1]) > shape.reach[0]


def _is_whole(shape: _Shape, indices: tuple[AnyDim, ...]) -> bool:
    """Whether all places of the result are known to be in one block: its margins are zeros from the start then."""
    high, wide = indices if len(indices) == 2 else (1, *indices)
    if not isinstance(high, int) or not isinstance(wide, int) or wide > _WIDEST:
        return False
    return high + shape.reach[0] <= shape.room // (-(-wide // _LANES) * _LANES + shape.reach[1])


def write_few_filters(k: KernelBuilder, x: Buffer, w: Buffer, result: Epilogue, window: Window, filters: int) -> None:
    """Each filter of a group sees its channels.  filters: of a group."""
    shape = _Shape(window, known_size(w.shape[1]))
    wide = as_scalar(result.shape[-1], I64)
    high = as_scalar(result.shape[2], I64) if len(result.shape) == 4 else Literal(1, I64)
    groups = k.size(result.shape[1:2]) / filters
    across = k.let("across", maximum(minimum(wide, _WIDEST), 1))
    lanes = k.let("lanes", (across + (_LANES - 1)) / _LANES * _LANES)
    pitch = k.let("pitch", lanes + shape.reach[1])
    down = k.let("down", maximum(minimum(high, shape.room / pitch - shape.reach[0]), 1))
    every, is_whole = shape.channels * shape.taps, _is_whole(shape, result.shape[2:])
    with k.parallel(k.size(result.shape[:1]) * groups, wide * high * (every * filters)) as (first, last):
        room = _ROOM + _SLACK + (_ROWS - 1) * (_WIDEST + shape.reach[1])
        block = k.allocate("block", x.dtype, (room,))
        sums = k.allocate("sums", x.dtype, (shape.room + _SLACK + (_ROWS - 1) * _WIDEST,))
        with k.loop(room, simd=True) as i:
            k.store(block, (i,), 0)
        add_up = _sums_of(k, shape, pitch, lanes, w, block, sums, is_line=len(result.shape) < 4)
        with (
            k.loop(last, start=first, name="number") as number,
            k.loop((high + (down - 1)) / down, name="row") as row,
            k.loop((wide + (across - 1)) / across, name="column") as column,
        ):
            at = k.let("y", row * down), k.let("x", column * across)
            count = k.let("rows", minimum(high - at[0], down)), k.let("columns", minimum(wide - at[1], across))
            for plane in range(shape.channels):
                channel = k.let("channel", number * shape.channels + plane)
                _bring_planes(k, x, channel, block, plane, shape, pitch, at, count, is_whole)
            with k.loop(filters, name="f") as f:
                filter_ = k.let("filter", number % groups * filters + f)
                add_up(filter_ * every, *count)
                with k.loop(count[0], name="i") as i, k.loop(count[1], name="j", simd=True) as j:
                    place = (at[0] + i) * wide + at[1] + j
                    result.store(k, (number / groups, filter_, place), sums[i * lanes + j])


def _sums_of(
    k: KernelBuilder,
    shape: _Shape,
    pitch: Local,
    lanes: Local,
    w: Buffer,
    block: Buffer,
    sums: Buffer,
    *,
    is_line: bool,
) -> Callable[[Scalar, Local, Local], None]:
    """What adds up, given where a filter begins in w and how many rows and places there are, the sums of a block.

    Window positions below each other are taken together, so that they share what they read; on a line, all of them.
    """
    groups: dict[int, list[tuple[int, int]]] = {}  # how many positions -> of each column of them, plane and first
    for plane in range(shape.channels):
        for tap, below in shape.columns(1 if is_line else _ROWS):
            groups.setdefault(below, []).append((plane, tap))
    count = sum(map(len, groups.values()))
    offsets, firsts = k.allocate("offsets", I64, (count,)), k.allocate("firsts", I64, (count,))
    for number, (plane, tap) in enumerate(itertools.chain.from_iterable(groups.values())):
        phase, (row, column) = shape.tap(tap)
        k.store(offsets, (number,), pitch * row + (shape.plane(plane, phase) + column))
        k.store(firsts, (number,), plane * shape.taps + tap)
    zero = Literal(0, I64)

    def add_up(start: Scalar, rows: Local, indices: Local) -> None:
        weights = Address(w, k.let("weights", start))
        if is_line:
            to_offsets = Address(offsets, zero)
            k.invoke("rvm_taps_f32", indices, count, to_offsets, weights, Address(block, zero), Address(sums, zero), 0)
            return
        done = 0
        for below, members in groups.items():
            columns = len(members), Address(offsets, Literal(done, I64)), Address(firsts, Literal(done, I64))
            where = shape.step * shape.sizes[1], weights, Address(block, zero), pitch, Address(sums, zero), lanes
            k.invoke("rvm_columns_f32", below, rows, indices, *columns, *where, int(done > 0))
            done += len(members)

    return add_up


def _bring_planes(
    k: KernelBuilder,
    x: Buffer,
    channel: Scalar,
    block: Buffer,
    plane: int,
    shape: _Shape,
    pitch: Local,
    at: tuple[Local, Local],
    count: tuple[Local, Local],
    is_whole: bool,
) -> None:
    """Copies what places of the result from `at` on meet of a channel of x, zeros where they meet none, if they are not
    there.  A row of x goes to all of its phases at once."""
    dims = [as_scalar(dim, I64) for dim in x.shape[2:]]
    high, wide = dims if len(dims) == 2 else (Literal(1, I64), dims[0])
    columns = k.let("needed", count[1] + shape.reach[1])
    start = k.let("start", channel * k.size(x.shape[2:]))
    bounds = {}
    for phase in dict.fromkeys(column for _, column in shape.phases):
        offset = k.let("offset", at[1] * shape.strides[1] + (phase - shape.pads[1]))
        first, last = valid_range(wide, columns, shape.strides[1], offset)
        first = k.let("first", minimum(first, columns))
        bounds[phase] = offset, first, k.let("last", maximum(last, first))
    for row_phase in dict.fromkeys(row for row, _ in shape.phases):
        with k.loop(count[0] + shape.reach[0], name="n") as n:
            place = k.let("place", (at[0] + n) * shape.strides[0] + (row_phase - shape.pads[0]))
            inside = (place >= 0).logical_and(place < high)
            for phase, (offset, first, last) in bounds.items():
                if (row_phase, phase) not in shape.phases:
                    continue
                to = k.let("to", n * pitch + shape.plane(plane, (row_phase, phase)))
                low = k.let("low", Select(inside, first, columns))
                stop = k.let("stop", Select(inside, last, columns))
                source = k.let("source", start + place * wide + offset)
                if not is_whole:
                    with k.loop(low, name="i", simd=True) as i:
                        k.store(block, (to + i,), 0)
                    with k.loop(columns, start=stop, name="i", simd=True) as i:
                        k.store(block, (to + i,), 0)
                with k.loop(stop, start=low, name="i", simd=True) as i:
                    k.store(block, (to + i,), x.flat(source + i * shape.strides[1]))
