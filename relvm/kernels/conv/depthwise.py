"""Loop nests of convolutions with few filters per group, and of depthwise convolutions of small planes.

The first kernel processes the output in blocks.  For each block, it copies the input elements that the block needs to a
buffer, and adds the padding.  The buffer is arranged for contiguous loads: a window position reads adjacent elements of
the buffer for adjacent output positions in a row, even if the stride is not 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from relvm.ir.dtypes import I32, I64
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, as_scalar, maximum, minimum
from relvm.ir.symbolic import AnyDim, known_size
from relvm.kernels.conv.depthwise_rows import can_write_depthwise_rows
from relvm.kernels.conv.sliding_window import Window, over_two_axes, valid_range
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.plain_loops import RowsOfColumn
from relvm.tables import kernel_constant

_MAX_BLOCK_SIZE = 16384  # maximum number of elements of an input block, so that it fits the L1 or L2 cache
_FAST_BLOCK_SIZE = 4096  # number of elements of an input block that fits the L1 cache, together with its results
_MAX_COLUMNS = 256  # maximum number of output positions of a row in a block
_LANES, _ROWS = kernel_constant("TILE_STEP"), kernel_constant("COLUMN_ROWS")
_SLACK = kernel_constant("TAP_STEP")
_MAX_TAPS = kernel_constant("PLANE_TAPS")
_SUMS = 4096  # maximum number of sums that are computed together, for one or more whole planes


class _BlockLayout:
    """The layout of an input block, for a window over two spatial axes.

    The phase of a window position consists of its row offset and its column offset, modulo the strides.  Window
    positions of the same phase read the same input elements, but for different output positions.  For example, with
    stride 2 and dilation 1, window columns 0 and 2 have the same phase.  All window positions of a phase share one
    plane, which contains the input elements that they read.  A block has one plane for each phase of each channel of
    the group.

    A plane has one row for each output row, plus `reach[0]` rows at the end.  A row has one element for each output
    position, plus `reach[1]` elements at the end.  The window at the last output position reads these additional rows
    and elements.

    reach: the number of additional rows of a plane, and the number of additional elements of a row.
    phases: the phases of all window positions.
    max_plane_size: the maximum number of elements in a plane.
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
        self.phases = list(dict.fromkeys(self.locate_tap(tap)[0] for tap in range(self.taps)))
        self.max_plane_size = _MAX_BLOCK_SIZE // (channels * len(self.phases))

    def rows_of_block(self, pitch: int) -> int:
        """Return the maximum number of output rows of a block, if the rows of a plane are `pitch` elements apart."""
        planes = self.channels * len(self.phases)
        fast = max(_FAST_BLOCK_SIZE // planes // pitch - self.reach[0], _ROWS)
        return max(min(self.max_plane_size // pitch - self.reach[0], fast), 1)

    def plane_position(self, channel: int, phase: tuple[int, int]) -> int:
        """Return the position in the block at which the plane for `channel` and `phase` starts.

        A plane contains the elements that the window positions of one phase (offset modulo the strides) read, in one
        channel.
        """
        return (channel * len(self.phases) + self.phases.index(phase)) * self.max_plane_size

    @property
    def step(self) -> int:
        """The distance between the nearest rows of the window that read the same plane.

        A plane contains the elements that the window positions of one phase (offset modulo the strides) read, in one
        channel.  Two positions in the same column of the window read the same plane if their distance is a multiple of
        this number.
        """
        return self.strides[0] // math.gcd(self.strides[0], self.dilations[0])

    def tap_groups(self, max_size: int) -> Iterator[tuple[int, int]]:
        """Divide the window positions into groups that are processed together.

        Yield each group as a pair: the row-major index of its first window position, and the number of its positions.
        The positions of a group are in one column of the window, and read adjacent rows of a plane, so that they can
        share loads.

        max_size: the maximum number of positions in a group.
        """
        group_size = max_size if self.step * self.dilations[0] == self.strides[0] else 1
        for column in range(self.sizes[1]):
            for first in range(self.step):
                rows = range(first, self.sizes[0], self.step)
                for start in range(0, len(rows), group_size):
                    yield rows[start] * self.sizes[1] + column, len(rows[start : start + group_size])

    def locate_tap(self, tap: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return where a window position reads its elements: the phase of the plane, and the offset in this plane.

        A plane contains the elements that the window positions of one phase (offset modulo the strides) read, in one
        channel.  The phase and the offset are pairs (rows, elements).

        tap: the row-major index of the window position.
        """
        steps = (tap // self.sizes[1] * self.dilations[0], tap % self.sizes[1] * self.dilations[1])
        (row, column), (row_phase, column_phase) = zip(*map(divmod, steps, self.strides), strict=True)
        return (row_phase, column_phase), (row, column)


def can_write_few_filters(x: Buffer, w: Buffer, window: Window) -> bool:
    """Return whether `write_few_filters` can generate the convolution of input `x` and weights `w`.

    This function does not check that the number of filters per group is small.
    """
    sizes = (*window.sizes, w.shape[1])
    known = all(isinstance(size, int) and size > 0 for size in sizes) and len(window.sizes) <= 2
    if not known or x.dtype.name != "f32":
        return False
    shape = _BlockLayout(window, known_size(w.shape[1]))
    return shape.max_plane_size // (_MAX_COLUMNS + shape.reach[1]) > shape.reach[0]


def _fits_one_block(shape: _BlockLayout, indices: tuple[AnyDim, ...]) -> bool:
    """Return whether a single block certainly covers all output positions of a channel.

    If so, the padding is in the same place for each channel, so the kernel sets it to zero only once.

    shape: the layout of a block.
    indices: the spatial dimensions of the output.
    """
    high, wide = indices if len(indices) == 2 else (1, *indices)
    if not isinstance(high, int) or not isinstance(wide, int) or wide > _MAX_COLUMNS:
        return False
    return high <= shape.rows_of_block(-(-wide // _LANES) * _LANES + shape.reach[1])


def write_few_filters(k: KernelBuilder, x: Buffer, w: Buffer, result: Epilogue, window: Window, filters: int) -> None:
    """Generate a convolution with few filters per group.

    x, w: the input and the weights.
    filters: the number of filters per group.
    """
    shape = _BlockLayout(window, known_size(w.shape[1]))
    wide = as_scalar(result.shape[-1], I64)
    high = as_scalar(result.shape[2], I64) if len(result.shape) == 4 else Literal(1, I64)
    groups = k.size(result.shape[1:2]) / filters
    across = k.let("across", maximum(minimum(wide, _MAX_COLUMNS), 1))
    lanes = k.let("lanes", (across + (_LANES - 1)) / _LANES * _LANES)
    pitch = k.let("pitch", lanes + shape.reach[1])
    fast = maximum(
        Literal(_FAST_BLOCK_SIZE // (shape.channels * len(shape.phases)), I64) / pitch - shape.reach[0], _ROWS
    )
    most = Literal(shape.max_plane_size, I64) / pitch - shape.reach[0]  # as in _BlockLayout.rows_of_block
    down = k.let("down", maximum(minimum(high, minimum(most, fast)), 1))
    every, has_padding = shape.channels * shape.taps, _fits_one_block(shape, result.shape[2:])
    parts = k.let("parts", (high + (down - 1)) / down)
    with k.parallel(k.size(result.shape[:1]) * groups * parts, wide * down * (every * filters)) as (first, last):
        max_plane_size = _MAX_BLOCK_SIZE + _SLACK + (_ROWS - 1) * (_MAX_COLUMNS + shape.reach[1])
        block = k.allocate("block", x.dtype, (max_plane_size,))
        sums = k.allocate("sums", x.dtype, (shape.max_plane_size + _SLACK + (_ROWS - 1) * _MAX_COLUMNS,))
        with k.loop(max_plane_size, simd=True) as i:
            k.store(block, (i,), 0)
        convolve = _make_convolve(k, shape, pitch, lanes, w, block, sums, is_line=len(result.shape) < 4)
        with (
            k.loop(last, start=first, name="part") as part,
            k.loop((wide + (across - 1)) / across, name="column") as column,
        ):
            number = k.let("number", part / parts)
            at = k.let("y", part % parts * down), k.let("x", column * across)
            count = k.let("rows", minimum(high - at[0], down)), k.let("columns", minimum(wide - at[1], across))
            for index in range(shape.channels):
                channel = k.let("channel", number * shape.channels + index)
                _copy_planes(k, x, channel, block, index, shape, pitch, at, count, has_padding)
            with k.loop(filters, name="f") as f:
                filter_ = k.let("filter", number % groups * filters + f)
                convolve(filter_ * every, *count)
                with k.loop(count[0], name="i") as i, k.loop(count[1], name="j", simd=True) as j:
                    position = (at[0] + i) * wide + at[1] + j
                    result.store(k, (number / groups, filter_, position), sums[i * lanes + j])


def _taps_by_size(shape: _BlockLayout, max_size: int) -> dict[int, list[int]]:
    """Return the groups of `shape.tap_groups`: the number of window positions in a group -> the first position of each
    group of this size, in the order of addition."""
    firsts: dict[int, list[int]] = {}
    for first, size in shape.tap_groups(max_size):
        firsts.setdefault(size, []).append(first)
    return firsts


def _tap_order(shape: _BlockLayout) -> list[int]:
    """Return the window positions in the order in which `_make_convolve` adds their products."""
    below = shape.step * shape.sizes[1]  # the distance between the positions of a group
    groups = _taps_by_size(shape, _ROWS)
    return [first + row * below for size, firsts in groups.items() for first in firsts for row in range(size)]


def can_write_planes(x: Buffer, w: Buffer, window: Window, dims: Sequence[AnyDim]) -> bool:
    """Return whether `write_planes` can generate the depthwise convolution of input `x` and weights `w`, and whether it
    is faster than `write_depthwise_rows` or `write_few_filters`.

    dims: the spatial dimensions of the output.
    """
    known = all(isinstance(size, int) and size > 0 for size in (*window.sizes, *x.shape[2:], *dims))
    if not known or x.dtype.name != "f32" or w.shape[1] != 1 or len(window.sizes) != 2:
        return False
    (high, wide), (down, across) = (tuple(map(known_size, given)) for given in (x.shape[2:], dims))
    taps, vectors = math.prod(map(known_size, window.sizes)), _plane_stride(high * wide) // _LANES
    if taps > _MAX_TAPS or (down - 1) * window.strides[0] >= high or (across - 1) * window.strides[1] >= wide:
        return False
    # Nanoseconds a plane, fit to measurements on processors with AVX-512 (benchmarks/README.md, "Convolutions").
    rest = down % _ROWS  # the last rows of sums, which are computed together, or up to four of them
    vectors_of_rows = (down - rest + (rest and (4 if rest <= 4 else _ROWS))) * -(-across // _LANES)
    if can_write_depthwise_rows(x, w, window):
        of_rows = 4 + 0.3 * taps * vectors_of_rows + 0.15 * down * across + 25 * (window.strides[1] != 1)
    else:
        of_rows = 22 + 0.12 * taps * vectors_of_rows + 0.15 * down * across + 20 * (window.strides != (1, 1))
    return 4 + 0.72 * taps * vectors < of_rows


def _plane_stride(elements: int) -> int:
    """Return the distance between the sums of adjacent planes of `elements` elements, as rvm_planes_f32 expects it."""
    return -(-elements // _LANES) * _LANES


def write_planes(k: KernelBuilder, x: Buffer, w: Buffer, result: Epilogue, window: Window) -> None:
    """Generate a depthwise convolution of small planes of known size.

    The micro-kernel computes a sum for each element of a plane, as if all strides were 1.  The sums that the strides
    skip are not used.
    """
    shape = _BlockLayout(window, 1)
    (high, wide), (down, across) = (tuple(map(known_size, given)) for given in (x.shape[2:], result.shape[2:]))
    stride, channels = _plane_stride(high * wide), k.size(w.shape[:1])
    most, order = max(_SUMS // stride, 1), _tap_order(shape)
    shifts = [
        (tap // shape.sizes[1] * shape.dilations[0] - shape.pads[0]) * wide
        + (tap % shape.sizes[1] * shape.dilations[1] - shape.pads[1])
        for tap in order
    ]
    around = max(*shifts, 0) - min(*shifts, 0)
    count = k.let("count", minimum(channels, most))
    parts = k.let("parts", (channels + (count - 1)) / count)
    with k.parallel(k.size(x.shape[:1]) * parts, count * (stride * shape.taps)) as (first, last):
        sums = k.allocate("sums", x.dtype, (most * stride,))
        masks = k.allocate("masks", I32, (shape.taps * stride,))
        copy = k.allocate("copy", x.dtype, (around + stride,))
        taps = k.allocate("taps", I64, (shape.taps,))
        for number, tap in enumerate(order):
            k.store(taps, (number,), tap)
        with k.loop(last, start=first, name="part") as part:
            image, channel = k.let("image", part / parts), k.let("channel", part % parts * count)
            planes = k.let("planes", minimum(channels - channel, count))
            zero = Literal(0, I64)
            k.invoke(
                "rvm_planes_f32",
                x=Address(x, image * (channels * (high * wide))),
                size=channels * (high * wide),
                first=channel * (high * wide),
                planes=planes,
                height=high,
                width=wide,
                weights=Address(w, channel * shape.taps),
                window_height=shape.sizes[0],
                window_width=shape.sizes[1],
                pad_y=shape.pads[0],
                pad_x=shape.pads[1],
                dilation_y=shape.dilations[0],
                dilation_x=shape.dilations[1],
                taps=shape.taps,
                order=Address(taps, zero),
                sums=Address(sums, zero),
                masks=Address(masks, zero),
                copy=Address(copy, zero),
            )
            with k.loop(planes, name="plane") as plane:
                filter_, start = k.let("filter", channel + plane), k.let("start", plane * stride)
                if (down, across) == (high, wide) and shape.strides == (1, 1):
                    with k.loop(high * wide, name="j", simd=True) as j:
                        result.store(k, (image, filter_, j), sums[start + j])
                else:
                    with k.loop(down, name="i") as i, k.loop(across, name="j", simd=True) as j:
                        value = sums[start + i * (shape.strides[0] * wide) + j * shape.strides[1]]
                        result.store(k, (image, filter_, i * across + j), value)


def column_order(window: Window) -> tuple[RowsOfColumn, ...]:
    """Return the order in which the products of a window with two axes are added by `write_few_filters`, `write_planes`
    and `write_depthwise_rows`."""
    shape = _BlockLayout(window, 1)
    return tuple(
        RowsOfColumn(
            tuple(first // shape.sizes[1] for first in firsts if first % shape.sizes[1] == 0), size, shape.step
        )
        for size, firsts in _taps_by_size(shape, _ROWS).items()
    )


def _make_convolve(
    k: KernelBuilder,
    shape: _BlockLayout,
    pitch: Scalar,
    lanes: Scalar,
    w: Buffer,
    block: Buffer,
    sums: Buffer,
    *,
    is_line: bool,
) -> Callable[[Scalar, Scalar, Scalar], None]:
    """Return a function that generates code to convolve a block with one filter, and to write the results to `sums`.

    The returned function has three parameters: the position of the filter in `w`, the number of output rows, and the
    number of output positions in a row.

    shape: the layout of `block`.
    pitch: the distance between rows in a plane of `block`.
    lanes: the distance between rows in `sums`.
    is_line: whether the convolution has one spatial axis.

    Window positions in the same column are processed together, so that they share loads.  If the convolution has one
    spatial axis, all window positions are processed together.
    """
    # The number of positions of a group -> the channel and the first position of each group of this size.
    groups = {
        size: list(itertools.product(range(shape.channels), firsts))
        for size, firsts in _taps_by_size(shape, 1 if is_line else _ROWS).items()
    }
    count = sum(map(len, groups.values()))
    offsets, firsts = k.allocate("offsets", I64, (count,)), k.allocate("firsts", I64, (count,))
    for number, (channel, tap) in enumerate(itertools.chain.from_iterable(groups.values())):
        phase, (row, column) = shape.locate_tap(tap)
        k.store(offsets, (number,), pitch * row + (shape.plane_position(channel, phase) + column))
        k.store(firsts, (number,), channel * shape.taps + tap)
    zero = Literal(0, I64)

    def convolve(start: Scalar, rows: Scalar, indices: Scalar) -> None:
        weights = Address(w, k.let("weights", start))
        if is_line:
            k.invoke(
                "rvm_taps_f32",
                columns=indices,
                taps=count,
                offsets=Address(offsets, zero),
                weights=weights,
                x=Address(block, zero),
                sums=Address(sums, zero),
                accumulates=0,
            )
            return
        done = 0
        for below, members in groups.items():
            k.invoke(
                "rvm_columns_f32",
                taps=below,
                rows=rows,
                columns=indices,
                count=len(members),
                offsets=Address(offsets, Literal(done, I64)),
                weight_offsets=Address(firsts, Literal(done, I64)),
                weight_stride=shape.step * shape.sizes[1],
                weights=weights,
                x=Address(block, zero),
                x_stride=pitch,
                sums=Address(sums, zero),
                sums_stride=lanes,
                accumulates=int(done > 0),
            )
            done += len(members)

    return convolve


def _copy_planes(
    k: KernelBuilder,
    x: Buffer,
    channel: Scalar,
    block: Buffer,
    channel_in_block: int,
    shape: _BlockLayout,
    pitch: Scalar,
    at: tuple[Scalar, Scalar],
    count: tuple[Scalar, Scalar],
    has_padding: bool,
) -> None:
    """Generate code that copies elements of one channel of x to the planes of this channel in the block.

    A plane contains the elements that the window positions of one phase (offset modulo the strides) read.  The code
    copies the elements that the output positions of the block read, and writes zeros for padding.

    channel: the row-major index of the channel over the batch and channel axes of x.
    channel_in_block: the index of the channel among the channels of the block.
    shape: the layout of the block.
    pitch: the distance between the rows of a plane.
    at: the row and the column of the first output position of the block.
    count: the number of output rows, and of output positions in a row.
    has_padding: whether the zeros of the padding are in the block already.
    """
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

    def copy_rows(from_row: Scalar, to_row: Scalar, columns: Sequence[Scalar], origin: Scalar, to: int) -> None:
        source = origin + from_row * shape.strides[0] * wide + columns[1] * shape.strides[1]
        begin, data_begin, data_end, end = columns
        k.invoke(
            "rvm_window_rows_f32",
            dst=Address(block, from_row * pitch + to),
            dst_stride=pitch,
            x=Address(x, source),
            x_stride=shape.strides[0] * wide,
            step=shape.strides[1],
            rows=to_row - from_row,
            begin=begin,
            data_begin=data_begin,
            data_end=data_end,
            end=end,
        )

    zero = Literal(0, I64)
    for row_phase in dict.fromkeys(row for row, _ in shape.phases):
        rows = k.let("rows", count[0] + shape.reach[0])
        begin = k.let("begin", at[0] * shape.strides[0] + (row_phase - shape.pads[0]))
        above, below = valid_range(high, rows, shape.strides[0], begin)
        above = k.let("above", minimum(above, rows))
        below = k.let("below", maximum(below, above))
        for phase, (offset, first, last) in bounds.items():
            if (row_phase, phase) not in shape.phases:
                continue
            origin = start + begin * wide + offset, shape.plane_position(channel_in_block, (row_phase, phase))
            if has_padding:
                copy_rows(above, below, (first, first, last, last), *origin)
            else:
                copy_rows(zero, above, (zero, zero, zero, columns), *origin)
                copy_rows(above, below, (zero, first, last, columns), *origin)
                copy_rows(below, rows, (zero, zero, zero, columns), *origin)
