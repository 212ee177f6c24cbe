"""Loop nest of convolutions with packed weights: a product of windows and weights that needs no im2col matrix.

A row of the left matrix is the window of an output position, and the right matrix contains the weights.  The product
reads the elements of a window in place: element (channel, tap) of the window of position i is
`offset of i + channel * distance of channels + offset of tap`.  If the window has padding, the channels are first
copied to a buffer with padding.  The order of additions is that of a product with an im2col matrix.

Source of the idea: Dukhan, The Indirect Convolution Algorithm, 2019.
"""

from __future__ import annotations

import math

from relvm.data_classes import value_record
from relvm.ir.dtypes import F32, I64
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, as_scalar, constant_value, maximum, minimum
from relvm.ir.symbolic import known_size
from relvm.kernels.conv.padded_copy import PaddedCopy
from relvm.kernels.conv.sliding_window import Window, over_two_axes
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.gemm.gemm import STEP, WIDTHS
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import clip_to_block
from relvm.tables import kernel_constant

POSITIONS = 96  # output positions of a block, at most: a multiple of the rows of a tile and of STEP
_MAX_DEPTH = kernel_constant("MAX_OFFSETS")  # rows of weights that are used together; their columns fit in the L2 cache
_MAX_COPY = 32768  # elements of the buffer of channels with padding, so that it fits the C stack and the L2 cache
_MAX_TAPS = _MAX_DEPTH  # window positions, at most
_WIDTH = WIDTHS[0]  # filters that are computed together
_ZERO = Literal(0, I64)


@value_record
class _Shape:
    """The sizes of a convolution over two spatial axes that are known when its kernel is generated.

    taps: the number of positions in a window.
    reach: how many lines and columns a window spans after its first line and column.
    channels: the number of channels.
    chunk: the number of channels that are processed at a time.
    """

    window: Window
    taps: int
    reach: tuple[int, int]
    channels: int
    chunk: int

    def needed(self, lines: Scalar | int, columns: Scalar | int) -> tuple:
        """Return how many lines and columns of a channel the windows of `lines` x `columns` output positions read."""
        down, across = self.window.strides
        return (lines - 1) * down + (self.reach[0] + 1), (columns - 1) * across + (self.reach[1] + 1)

    @property
    def is_padded(self) -> bool:
        return any(self.window.pads)

    @property
    def max_plane_size(self) -> int:
        """The largest number of elements of a channel that a block reads."""
        return max(math.prod(self.needed(POSITIONS // wide, wide)) for wide in range(1, POSITIONS + 1))


def _shape(window: Window, channels: int) -> _Shape | None:
    """Return the sizes of a convolution, or None if `multiply_windows` cannot generate it."""
    if len(window.sizes) > 2 or not all(isinstance(size, int) and size > 0 for size in window.sizes):
        return None
    window = over_two_axes(window)
    sizes = tuple(map(known_size, window.sizes))
    reach = ((sizes[0] - 1) * window.dilations[0], (sizes[1] - 1) * window.dilations[1])
    taps = math.prod(sizes)
    chunk = max(1, _MAX_DEPTH // taps)
    shape = _Shape(window, taps, reach, channels, min(chunk, channels))
    if shape.is_padded:
        chunk = min(chunk, _MAX_COPY // shape.max_plane_size)
    return _Shape(window, taps, reach, channels, min(chunk, channels)) if chunk and 0 < taps <= _MAX_TAPS else None


def blocks_of_positions(high: int, wide: int) -> list[tuple[int, int, int]]:
    """Return (lines, columns, number of blocks) for each size of block in an output of `high` x `wide` positions.

    `multiply_windows` divides the output in the same way at run time.
    """
    across = max(min(wide, POSITIONS), 1)
    down = max(min(high, POSITIONS // across), 1)
    lines, columns = [(down, high // down), (high % down, 1)], [(across, wide // across), (wide % across, 1)]
    return [(i, j, m * n) for i, m in lines for j, n in columns if i * j * m * n]


def can_multiply_windows(window: Window) -> bool:
    """Return whether `multiply_windows` can generate a convolution with this window."""
    return _shape(window, 1) is not None


def multiply_windows(
    k: KernelBuilder, x: Buffer, weights: Buffer, result: Epilogue, window: Window, filters: int
) -> None:
    """Generate a convolution with packed weights.

    x: the input, with a known number of channels.
    weights: the matrix (depth, filters) of the weights, packed by `pack_columns`.  Each row belongs to one channel and
    one position of the window.
    """
    shape = _shape(window, known_size(x.shape[1]))
    assert shape is not None
    high, wide = (as_scalar(dim, I64) for dim in (1, *result.shape[2:])[-2:])
    across = k.let("across", maximum(minimum(wide, POSITIONS), 1))
    down = k.let("down", maximum(minimum(high, POSITIONS / across), 1))
    blocks_wide = k.let("blocks_wide", (wide + (across - 1)) / across)
    blocks = k.let("blocks", (high + (down - 1)) / down * blocks_wide)
    panels, depth = -(-filters // _WIDTH), shape.channels * shape.taps
    with k.parallel(k.size(x.shape[:1]) * blocks * panels, down * across * (11 * depth)) as (first, last):
        block = _Block(k, x, weights, result, shape, filters)
        with k.loop((last - 1) / panels + 1, start=first / panels, name="number") as number:
            low, stop = clip_to_block(k, first, last, number, Literal(panels, I64))
            at = k.let("at", number % blocks)
            left = k.let("left", at % blocks_wide * across)
            columns = k.let("columns", minimum(wide - left, across))
            top: Scalar = _ZERO
            lines: Scalar = Literal(1, I64)
            if constant_value(high) != 1:
                top = k.let("top", at / blocks_wide * down)
                lines = k.let("lines", minimum(high - top, down))
            block.begin(k.let("image", number / blocks), (top, left), (lines, columns), wide)
            with k.loop(stop, start=low, name="panel") as panel:
                block.write(k.let("filter", panel * _WIDTH))


class _Block:
    """Generates the code for a block of output positions: some lines of an image, or a part of one line."""

    def __init__(
        self, k: KernelBuilder, x: Buffer, weights: Buffer, result: Epilogue, shape: _Shape, filters: int
    ) -> None:
        self.k = k
        self.x = x
        self.weights = weights
        self.result = result
        self.shape = shape
        self.filters = filters
        self.dims = [as_scalar(dim, I64) for dim in (1, *x.shape[2:])[-2:]]
        self.sums = k.allocate("sums", F32, (POSITIONS * _WIDTH,))
        self.transposed = k.allocate("transposed", F32, (_WIDTH * STEP,))
        self.rows = k.allocate("rows", I64, (POSITIONS,))
        self.offsets = k.allocate("offsets", I64, (shape.chunk * shape.taps,))
        if shape.is_padded:
            self.copy = k.allocate("copy", F32, (shape.chunk * shape.max_plane_size,))

    def begin(self, image: Scalar, origin: tuple[Scalar, Scalar], count: tuple[Scalar, Scalar], wide: Scalar) -> None:
        """Generate the code that is needed once for a block.

        image: the index of the image.
        origin: the line and the column of the block's first output position.
        count: the number of lines and of columns of the block.
        wide: the number of output positions in a line of the image.
        """
        k, shape, window = self.k, self.shape, self.shape.window
        self.image, self.start, self.count = image, k.let("start", origin[0] * wide + origin[1]), count[0] * count[1]
        self.needed = tuple(k.let("needed", size) for size in shape.needed(*count))
        self.source = tuple(
            k.let("source", at * stride - pad)
            for at, stride, pad in zip(origin, window.strides, window.pads[:2], strict=True)
        )
        self.pitch = self.needed[1] if shape.is_padded else self.dims[1]
        self.channel_stride = k.let("stride", (self.needed if shape.is_padded else self.dims)[0] * self.pitch)
        sizes = tuple(map(known_size, window.sizes))
        with (
            k.loop(shape.chunk, name="c") as c,
            k.loop(sizes[0], name="i") as i,
            k.loop(sizes[1], name="j") as j,
        ):
            offset = c * self.channel_stride + i * (self.pitch * window.dilations[0]) + j * window.dilations[1]
            k.store(self.offsets, ((c * sizes[0] + i) * sizes[1] + j,), offset)
        with k.loop(count[0], name="line") as i, k.loop(count[1], name="column") as j:
            k.store(self.rows, (i * count[1] + j,), i * window.strides[0] * self.pitch + j * window.strides[1])
        if shape.chunk == shape.channels:
            self._copy_channels(_ZERO, as_scalar(shape.channels, I64))

    def write(self, column: Scalar) -> None:
        """Generate the code for at most _WIDTH filters, beginning with the filter at index `column`."""
        k, shape = self.k, self.shape
        width = k.let("width", minimum(self.filters - column, _WIDTH))
        self.result.prefetch(k, (self.image, column, self.start), width, self.count)
        with k.loop(-(-shape.channels // shape.chunk), name="chunk") as chunk:
            channel = k.let("channel", chunk * shape.chunk)
            channels = k.let("channels", minimum(shape.channels - channel, shape.chunk))
            if shape.chunk < shape.channels:
                self._copy_channels(channel, channels)
            start = k.let("weights", column * (shape.channels * shape.taps) + width * channel * shape.taps)
            self._multiply(channel, channels, start, width)
        self._store(column, width)

    def _copy_channels(self, channel: Scalar, channels: Scalar) -> None:
        """Generate code that copies what the block needs of some channels, with zeros for the padding."""
        if not self.shape.is_padded:
            return
        (high, wide), has_zero_lines = self.dims, any(self.shape.window.pads[::2])
        lines, columns = self.needed
        copy = PaddedCopy(self.copy, self.channel_stride, lines, columns, self.x, self.dims, has_zero_lines)
        plane = (self.image * self.shape.channels + channel) * (high * wide)
        copy.write(self.k, _ZERO, plane, channels, self.source)

    def _multiply(self, channel: Scalar, channels: Scalar, weights: Scalar, width: Scalar) -> None:
        """Generate code that adds the products of some channels to the sums of all output positions of the block.

        channel, channels: the index of the first of these channels, and their number.
        weights: the position of their weights in the array of packed weights.
        width: the number of filters.
        """
        k, shape = self.k, self.shape
        if shape.is_padded:
            x = Address(self.copy, _ZERO)
        else:
            plane = (self.image * shape.channels + channel) * self.channel_stride
            x = Address(self.x, k.let("window", plane + self.source[0] * self.pitch + self.source[1]))
        k.invoke(
            "rvm_window_tile_f32",
            rows=self.count,
            columns=width,
            depth=channels * shape.taps,
            x=x,
            row_offsets=Address(self.rows, _ZERO),
            offsets=Address(self.offsets, _ZERO),
            b=Address(self.weights, weights),
            b_stride=width,
            tile=Address(self.sums, _ZERO),
            tile_stride=_WIDTH,
            accumulates=channel,
        )

    def _store(self, column: Scalar, width: Scalar) -> None:
        """Generate code that passes the sums to the epilogue, STEP output positions of all filters at a time."""
        k = self.k
        with k.loop((self.count + (STEP - 1)) / STEP, name="group") as group:
            with k.loop((width + (STEP - 1)) / STEP, name="quarter") as quarter:
                k.invoke(
                    "rvm_transposed_tile",
                    tile=Address(self.transposed, quarter * (STEP * STEP)),
                    x=Address(self.sums, group * (STEP * _WIDTH) + quarter * STEP),
                    x_stride=_WIDTH,
                )
            size = k.let("size", minimum(self.count - group * STEP, STEP))
            with k.loop(width, name="f") as f, k.loop(size, name="j", simd=True) as j:
                position = self.start + group * STEP + j
                self.result.store(k, (self.image, column + f, position), self.transposed[f * STEP + j])
