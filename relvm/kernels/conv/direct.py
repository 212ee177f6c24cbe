"""Loop nest of direct convolutions: products of weights and windows, whose windows are read in place.

The left matrix has a row of weights for each filter.  The right matrix has a column for each output position, which is
the window at this position, and a row for each channel and position in the window.  The elements of such a row for
adjacent output positions are adjacent in the input.  The product reads them there, without copying them to a panel.

The input of a block of output positions is first copied, with zeros for the padding.  The lines of the copy follow each
other, so the product computes the positions of several lines at a time.  It also computes, and ignores, a few positions
behind the end of each line, at which windows extend over two lines.  If the window has strides, the copy contains the
elements of each phase separately: all elements whose line and column have the same remainders.

If the lines of a window are dilated, adjacent output lines of a block also have the distance of the dilation.  Their
windows then share lines of the input.

The order of additions is that of a product with an im2col matrix.
"""

from __future__ import annotations

import math

from relvm.data_classes import value_record
from relvm.ir.dtypes import F32, I64
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, as_scalar, constant_value, maximum, minimum
from relvm.ir.symbolic import AnyDim, known_size
from relvm.kernels.conv.padded_copy import PaddedCopy
from relvm.kernels.conv.sliding_window import Window, over_two_axes
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.gemm.gemm import ROWS, STEP, WIDTHS, for_each_tile
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import clip_to_block, size_of_block
from relvm.tables import kernel_constant

FILTERS = 8 * ROWS  # filters that a thread computes together
_MAX_DEPTH = kernel_constant("MAX_OFFSETS")
_MAX_COPY = 32768  # elements of the copy, so that it fits the C stack and the L2 cache
_MAX_POSITIONS = 2048  # output positions of a block, at most: with more blocks, more threads have work
_MIN_COLUMNS = 16  # output positions of a line that the copy must have room for
_WIDTH = WIDTHS[0]
_ZERO = Literal(0, I64)


@value_record
class DirectShape:
    """The sizes of a direct convolution over two spatial axes that are known when its kernel is generated.

    taps: the number of positions in a window.
    spread: the distance, in the output, between adjacent lines of a block.
    steps: the distance, in the input, between adjacent lines and between adjacent columns of a phase.
    phases: how many phases the copy of the input contains along the lines and along the columns.  Input elements are in
    the same phase if their lines and columns have the same remainders, modulo the strides.
    reach: how many lines and columns of a phase a window reads after its first line and column of this phase.
    channels: the number of channels per group.
    chunk: the number of channels that are summed at a time.
    max_columns: the maximum number of output positions in a line of a block.
    """

    window: Window
    taps: int
    spread: int
    steps: tuple[int, int]
    phases: tuple[int, int]
    reach: tuple[int, int]
    channels: int
    chunk: int
    max_columns: int

    def blocks(self, high: int, wide: int) -> list[tuple[int, int, int]]:
        """Return (lines, columns, number of blocks) for each size of block in an output of `high` x `wide` positions.

        `convolve_directly` divides the output in the same way at run time.
        """
        across = max(min(wide, self.max_columns), 1)
        pitch, high_of_class = across + self.reach[1], -(-high // self.spread)
        plane_lines = self.plane_size // pitch - self.reach[0]
        down = max(min(plane_lines, _MAX_POSITIONS // pitch, high_of_class), 1)
        lines = [(down, high_of_class // down), (high_of_class % down, 1)]
        columns = [(across, wide // across), (wide % across, 1)]
        return [(i, j, self.spread * m * n) for i, m in lines for j, n in columns if i * j * m * n]

    @property
    def plane_size(self) -> int:
        """The maximum number of elements that the copy can contain for each phase of a channel."""
        return (_MAX_COPY - STEP) // (self.channels * math.prod(self.phases))


def direct_shape(window: Window, channels: int) -> DirectShape | None:
    """Return the sizes of a direct convolution, or None if `convolve_directly` cannot generate it.

    channels: the number of channels per group.
    """
    if len(window.sizes) > 2 or not all(isinstance(size, int) and size > 0 for size in window.sizes) or not channels:
        return None
    window = over_two_axes(window)
    sizes = tuple(map(known_size, window.sizes))
    spread = window.dilations[0] if window.strides[0] == 1 else 1
    steps = (max(window.strides[0], spread), window.strides[1])
    taps, spans = math.prod(sizes), [(size - 1) * step for size, step in zip(sizes, window.dilations, strict=True)]
    phases = (min(window.strides[0], spans[0] + 1), min(steps[1], spans[1] + 1))
    reach = (spans[0] // steps[0], spans[1] // steps[1])
    max_columns = (_MAX_COPY - STEP) // (channels * math.prod(phases) * (reach[0] + 1)) - reach[1]
    if taps > _MAX_DEPTH or max_columns < _MIN_COLUMNS:
        return None
    chunk = min(channels, _MAX_DEPTH // taps)
    return DirectShape(window, taps, spread, steps, phases, reach, channels, chunk, min(max_columns, _MAX_POSITIONS))


def convolve_directly(
    k: KernelBuilder, x: Buffer, w: Buffer, result: Epilogue, shape: DirectShape, filters: int, groups: int
) -> None:
    """Generate a direct convolution of f32.

    x: the input.
    w: the weights, of shape (groups * filters, channels, window...).
    filters: the number of filters per group.
    """
    high, wide = (as_scalar(dim, I64) for dim in (1, *result.shape[2:])[-2:])
    across = k.let("across", maximum(minimum(wide, shape.max_columns), 1))
    pitch = k.let("pitch", across + shape.reach[1])
    plane_lines = Literal(shape.plane_size, I64) / pitch - shape.reach[0]
    spread = shape.spread
    down = k.let(
        "down", maximum(minimum(minimum(plane_lines, _MAX_POSITIONS / pitch), (high + (spread - 1)) / spread), 1)
    )
    blocks_wide = k.let("blocks_wide", (wide + (across - 1)) / across)
    blocks_high = k.let("blocks_high", (high + (down * spread - 1)) / (down * spread))
    blocks = k.let("blocks", blocks_high * spread * blocks_wide)
    panels, depth = -(-filters // FILTERS), shape.channels * shape.taps
    images = k.size(x.shape[:1]) * groups
    work = down * across * (min(filters, FILTERS) * depth // 6 + 1)
    with k.parallel(images * blocks * panels, work) as (first, last):
        block = _Block(k, x, w, result, shape, filters, groups)
        with k.loop((last - 1) / panels + 1, start=first / panels, name="number") as number:
            low, stop = clip_to_block(k, first, last, number, Literal(panels, I64))
            at = k.let("at", number % blocks)
            left = k.let("left", at % blocks_wide * across)
            of_line = k.let("of_line", at / blocks_wide)
            top: Scalar = _ZERO
            lines: Scalar = Literal(1, I64)
            if constant_value(high) != 1:
                top = k.let("top", of_line / spread * (down * spread) + of_line % spread)
                lines = k.let("lines", minimum((high - top + (spread - 1)) / spread, down))
            columns = k.let("columns", minimum(wide - left, across))
            block.begin(k.let("image", number / blocks), (top, left), (lines, columns), wide)
            with k.loop(stop, start=low, name="panel") as panel:
                block.write(k.let("filter", panel * FILTERS))


class _Block:
    """Generates the code for a block of output positions: some lines of an image, or a part of one line."""

    def __init__(
        self, k: KernelBuilder, x: Buffer, w: Buffer, result: Epilogue, shape: DirectShape, filters: int, groups: int
    ) -> None:
        self.k = k
        self.x = x
        self.weights = w
        self.result = result
        self.shape = shape
        self.filters = filters
        self.groups = groups
        self.dims = [as_scalar(dim, I64) for dim in (1, *x.shape[2:])[-2:]]
        (wide_in, wide), has_one_part = (x.shape[-1], result.shape[-1]), False
        if isinstance(wide_in, int) and isinstance(wide, int):
            has_one_part = wide <= shape.max_columns and shape.spread == 1
        self.joins_lines = has_one_part and shape.steps == (1, 1) and wide_in == wide + shape.reach[1]
        self.stores_lines = has_one_part and not shape.reach[1]
        self.tile = k.allocate("tile", F32, (ROWS * _WIDTH,))
        self.offsets = k.allocate("offsets", I64, (shape.chunk * shape.taps,))
        self.copy = k.allocate("copy", F32, (self._copy_size(result.shape),))

    def _copy_size(self, shape: tuple[AnyDim, ...]) -> int:
        """Return the number of elements of the copy, for a result of shape `shape`."""
        high, wide = (1, *shape[2:])[-2:]
        if not isinstance(high, int) or not isinstance(wide, int):
            return _MAX_COPY
        down, across = self.shape.reach
        planes = (((i + down) * (j + across)) for i, j, _ in self.shape.blocks(high, wide))
        return self.shape.channels * math.prod(self.shape.phases) * max(planes, default=0) + STEP

    def begin(self, image: Scalar, origin: tuple[Scalar, Scalar], count: tuple[Scalar, Scalar], wide: Scalar) -> None:
        """Generate the code that is needed once for a block.

        image: the row-major index over images and groups.
        origin: the line and the column of the block's first output position.
        count: the number of lines and of columns of the block.
        wide: the number of output positions in a line of the image.
        """
        k, shape, window = self.k, self.shape, self.shape.window
        self.image, self.count, self.wide = image, count, wide
        self.start = k.let("start", origin[0] * wide + origin[1])
        self.lines = k.let("needed", count[0] + shape.reach[0])
        self.pitch = k.let("pitch", count[1] + shape.reach[1])
        self.plane = k.let("plane", self.lines * self.pitch)
        self.channel_stride = self.plane * math.prod(shape.phases)
        with (
            k.loop(shape.chunk, name="c") as c,
            k.loop(known_size(window.sizes[0]), name="i") as i,
            k.loop(known_size(window.sizes[1]), name="j") as j,
        ):
            y, down = i * window.dilations[0] % window.strides[0], i * window.dilations[0] / shape.steps[0]
            x, across = j * window.dilations[1] % window.strides[1], j * window.dilations[1] / shape.steps[1]
            phase = (c * shape.phases[0] + y) * shape.phases[1] + x
            tap = (c * known_size(window.sizes[0]) + i) * known_size(window.sizes[1]) + j
            k.store(self.offsets, (tap,), phase * self.plane + down * self.pitch + across)
        self._copy_channels(origin)

    def _copy_channels(self, origin: tuple[Scalar, Scalar]) -> None:
        """Generate code that copies the input of the block, with zeros for the padding."""
        k, shape, window, (high, wide) = self.k, self.shape, self.shape.window, self.dims
        has_zero_lines = any(window.pads[::2]) or shape.phases[0] > 1
        copy = PaddedCopy(
            self.copy,
            self.channel_stride,
            self.lines,
            self.pitch,
            self.x,
            self.dims,
            has_zero_lines,
            shape.steps,
            self.joins_lines,
        )
        plane = self.image * shape.channels * (high * wide)
        with k.loop(shape.phases[0], name="y") as y, k.loop(shape.phases[1], name="x") as x:
            start = [
                k.let("source", at * stride + phase - pad)
                for at, stride, phase, pad in zip(origin, window.strides, (y, x), window.pads[:2], strict=True)
            ]
            copy.write(k, (y * shape.phases[1] + x) * self.plane, plane, Literal(shape.channels, I64), start)

    def write(self, filter: Scalar) -> None:
        """Generate the code for FILTERS filters of a group, beginning with the one at index `filter`."""
        k = self.k
        positions = k.let("positions", maximum((self.count[0] - 1) * self.pitch + self.count[1], 0))
        width = k.let("width", size_of_block(Literal(self.filters, I64), filter, FILTERS))
        with k.loop((positions + (_WIDTH - 1)) / _WIDTH, name="part") as part:
            first = k.let("position", part * _WIDTH)
            size = k.let("size", minimum(positions - first, _WIDTH))

            def tile(row: Scalar, rows: Scalar) -> None:
                group, image = self._group_and_image()
                counters = (image, group * self.filters + row, self._position(first))
                self.result.prefetch(k, counters, rows, size)
                self._multiply(k.let("row", filter + row), rows, first, size)
                self._store(filter + row, rows, first, size)

            for_each_tile(k, width, ROWS, (_ZERO, (width + (ROWS - 1)) / ROWS), tile)

    def _multiply(self, row: Scalar, rows: Scalar, first: Scalar, size: Scalar) -> None:
        """Generate code that computes a tile: `rows` filters from `row` on, at `size` positions from `first` on."""
        k, shape, (group, _) = self.k, self.shape, self._group_and_image()
        depth = shape.channels * shape.taps
        with k.loop(-(-shape.channels // shape.chunk), name="chunk") as chunk:
            channel = k.let("channel", chunk * shape.chunk)
            channels = size_of_block(Literal(shape.channels, I64), channel, shape.chunk)
            k.invoke(
                "rvm_direct_tile_f32",
                rows=rows,
                columns=size,
                depth=channels * shape.taps,
                a=Address(self.weights, (group * self.filters + row) * depth + channel * shape.taps),
                a_row_stride=depth,
                x=Address(self.copy, channel * self.channel_stride + first),
                offsets=Address(self.offsets, _ZERO),
                tile=Address(self.tile, _ZERO),
                tile_stride=_WIDTH,
                accumulates=channel,
            )

    def _group_and_image(self) -> tuple[Scalar, Scalar]:
        return (_ZERO, self.image) if self.groups == 1 else (self.image % self.groups, self.image / self.groups)

    def _position(self, first: Scalar) -> Scalar:
        """Return the output position of column `first` of the block, or the end of a line if it is behind the line."""
        if self.stores_lines:
            return self.start + first
        line = first / self.pitch
        column = minimum(first - line * self.pitch, self.count[1])
        return self.start + line * (self.wide * self.shape.spread) + column

    def _store(self, row: Scalar, rows: Scalar, first: Scalar, size: Scalar) -> None:
        """Generate code that passes the elements of a tile to the epilogue.   The parameters: see `_multiply`."""
        k, (group, image) = self.k, self._group_and_image()
        if self.stores_lines:  # they follow each other in the output, too
            with k.loop(rows, name="r") as r, k.loop(size, name="j", simd=True) as j:
                value = self.tile[r * _WIDTH + j]
                self.result.store(k, (image, group * self.filters + row + r, self.start + first + j), value)
            return
        with k.loop((first + size - 1) / self.pitch + 1, start=first / self.pitch, name="line") as line:
            low = k.let("low", maximum(line * self.pitch - first, 0))
            column = k.let("column", first + low - line * self.pitch)
            count = k.let("count", minimum(self.count[1] - column, size - low))
            with k.loop(rows, name="r") as r, k.loop(count, name="j", simd=True) as j:
                position = self.start + line * (self.wide * self.shape.spread) + column + j
                value = self.tile[r * _WIDTH + low + j]
                self.result.store(k, (image, group * self.filters + row + r, position), value)
