"""Winograd convolution with 3 x 3 windows, which computes tiles of the result with fewer multiplications.

The C code is in csrc/codegen/winograd.h.
"""

from __future__ import annotations

import numpy as np

from relvm.ir.dtypes import BOOL, F32, I64
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, as_scalar, constant_value, maximum, minimum, select
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim, known_size, known_sizes
from relvm.ir.type_rules import expect_equal_dims, expect_same_dtype
from relvm.ir.types import TensorType
from relvm.kernels.conv.sliding_window import output_dims, window_of
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.flop_count import window_operations
from relvm.kernels.gemm.gemm import ROWS, STEP, for_each_tile, round_up
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import Contraction, clip_to_block
from relvm.ops.convolution import loop_axes, numpy_conv
from relvm.tables import kernel_constant

_LANES, _MAX_TILES = kernel_constant("WINOGRAD_LANES"), kernel_constant("WINOGRAD_TILES")
_MAX_BYTES = 384 << 10  # limit on the transformed elements of a block, so that they fit the C stack and the L2 cache
_MIN_GROUPS = 12  # minimum filter groups in a part; each part repeats the transform, which takes as long as 3 groups
_MIN_CHANNELS = 8  # minimum number of input channels and of filters for which Winograd convolution saves time

MAX_CHANNELS = _MAX_BYTES // (16 * _LANES * 4)


def is_winograd_faster(channels: int, filters: int, high: Scalar, wide: Scalar, spread: int) -> Scalar:
    """Return whether the Winograd algorithm takes less time than each of the alternatives.

    The alternatives are a matrix product with an im2col matrix, a product of windows in place, and a direct
    convolution.

    The result is a literal if the sizes are literals.  The same rule therefore applies at compile time and at run time.
    The unit of the estimated times is a multiplication and addition of the Winograd algorithm.  The other constants are
    fitted to measurements on processors with AVX-512 (benchmarks/README.md, "Convolutions").

    channels, filters: the numbers of input channels and of filters.
    high, wide: the sizes of the result along the spatial axes.
    spread: the dilation along the first spatial axis.
    """
    if min(channels, filters) < _MIN_CHANNELS:
        return Literal(False, BOOL)
    lines, tiles_wide = _tile_lines(high, spread), (wide + 1) / 2
    tiles = round_up(lines * tiles_wide, _LANES)
    blocks = tiles / _tiles_per_block(channels) + 1
    products = (tiles + 17 * blocks) * (16 * channels * filters)  # a block reads all weights
    transform = lines * (450 * round_up(tiles_wide, _LANES) + 4200) * channels
    stores = high * (2300 * filters)
    im2col = round_up(high * wide, STEP) * (15 * channels * filters)
    windows = high * wide * (-(-filters // STEP) * STEP * (11 * channels + 47))
    direct = high * (wide + 2) * (11 * channels * filters) + high * wide * (25 * channels)
    return products + transform + stores < minimum(minimum(im2col, windows), direct)


def transform_windows(w: np.ndarray) -> np.ndarray:
    """Transform weights of shape (filters, channels, 3, 3) for `conv_winograd`.

    The result has shape (16, filters, channels): a 3 x 3 window w becomes the 16 elements of the matrix G w G^T.
    """
    elements = np.ascontiguousarray(w.reshape(-1, 9).T, np.float64).reshape(3, 3, *w.shape[:2])
    return np.array([value.astype(w.dtype) for row in _multiply_by_g(elements) for value in _multiply_by_g(row)])


def _multiply_by_g(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the four rows of the product G x, where x is an array of shape (3, ...).

    G is [[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]].  NumPy's product of small matrices would be slower.
    """
    half_sum, half = (x[0] + x[2]) * 0.5, x[1] * 0.5
    return x[0], half_sum + half, half_sum - half, x[2]


def _inverse_transform(u: np.ndarray) -> np.ndarray:
    """Reverse `transform_windows`: return the weights from which that function has computed `u`.

    The weights have shape (filters, channels, 3, 3).
    """
    g = np.moveaxis(u, 0, -1).reshape(*u.shape[1:], 4, 4)
    undo = np.array([[1, 0, 0, 0], [0, 1, -1, 0], [0, 0, 0, 1]], np.float32)
    return undo @ g @ undo.T


def convolve_tiles(k: KernelBuilder, inputs, result: Epilogue, *, pads: tuple[int, ...], spread: int) -> None:
    """Generate the kernel of `conv_winograd`.  Each block of tiles is transformed once, and multiplied by ROWS filters
    at a time."""
    x, u = inputs
    _, filters, channels = map(known_size, u.shape)
    columns = _tiles_per_block(channels)
    high, wide = (as_scalar(dim, I64) for dim in result.shape[2:])
    tiles_wide = k.let("tiles_wide", (wide + 1) / 2)
    tiles = k.let("tiles", _tile_lines(high, spread) * tiles_wide)
    blocks, groups = (tiles + (columns - 1)) / columns, -(-filters // ROWS)
    parts, work = blocks * k.size(x.shape[:1]) * groups, channels * columns * 8
    with k.parallel(parts, work, least=min(groups, _MIN_GROUPS)) as (first, last):
        block = _TileBlock(k, x, u, result, pads, spread, _max_tiles(constant_value(tiles), columns), tiles_wide)
        with k.loop((last - 1) / groups + 1, start=first / groups, name="number") as number:
            low, stop = clip_to_block(k, first, last, number, Literal(groups, I64))
            image = k.let("image", number / blocks)
            start = k.let("start", number % blocks * columns)
            block.load(image, start, k.let("count", minimum(tiles - start, columns)))
            for_each_tile(k, as_scalar(filters, I64), ROWS, (low, stop), block.write)


def _tile_lines(high: Scalar, spread: int) -> Scalar:
    """Return the number of lines of tiles for a result of `high` rows.

    spread: the distance between the two rows of a tile.
    """
    return (high + (2 * spread - 1)) / (2 * spread) * spread


def _tiles_per_block(channels: int) -> int:
    """Return the number of tiles in a block.  The more channels there are, the fewer tiles fit in the cache."""
    return max(_LANES, min(_MAX_TILES, _MAX_BYTES // (16 * 4 * channels) // _LANES * _LANES))


def _max_tiles(tiles: int | None, columns: int) -> int:
    """Return the maximum number of tiles in a block, rounded up to a multiple of _LANES.

    tiles: the number of tiles of an image, or None if it is unknown.
    columns: the number of tiles in a full block.
    """
    return columns if tiles is None else max(-(-min(tiles, columns) // _LANES), 1) * _LANES


class _TileBlock:
    """Generates the code for a block of consecutive tiles of one image, in row-major order, with all channels."""

    def __init__(
        self,
        k: KernelBuilder,
        x: Buffer,
        u: Buffer,
        result: Epilogue,
        pads: tuple[int, ...],
        spread: int,
        columns: int,
        tiles_wide: Scalar,
    ) -> None:
        self.k = k
        self.x = x
        self.u = u
        self.result = result
        self.tiles_wide = tiles_wide
        _, self.filters, self.channels = map(known_size, u.shape)
        self.pads = pads
        self.spread = spread
        self.v = k.allocate("v", F32, (16 * (self.channels * columns + _LANES),))
        self.m = k.allocate("m", F32, (16 * ROWS * columns,))
        self.out = k.allocate("tile", F32, (ROWS * 4 * columns,))
        self.too_large = k.allocate("too_large", I64, (1,))

    def load(self, image: Scalar, start: Scalar, count: Scalar) -> None:
        self.image, self.start, self.count = image, start, count
        k, x = self.k, self.x
        self.columns = k.let("columns", round_up(count, _LANES))
        self.lines = (
            k.let("begin", start / self.tiles_wide),
            k.let("end", (start + count - 1) / self.tiles_wide + 1),
        )
        high, wide = (as_scalar(dim, I64) for dim in x.shape[2:])
        self.tiles: dict[str, Address | Scalar | int] = {
            "planes": Address(x, image * k.size(x.shape[1:])),
            "channels": self.channels,
            "height": high,
            "width": wide,
            "top": self.pads[0],
            "left": self.pads[1],
            "spread": self.spread,
            "tiles_per_row": self.tiles_wide,
            "first_tile": start,
            "tiles": count,
            "columns": self.columns,
        }
        k.invoke("rvm_winograd_input", **self.tiles, v=self.at(self.v), too_large=self.at(self.too_large))

    def at(self, buffer: Buffer) -> Address:
        return Address(buffer, Literal(0, I64))

    def write(self, filter_: Scalar, rows: Scalar) -> None:
        """Generate code that computes and writes the results of `rows` filters, beginning with the filter at index
        `filter_`."""
        k, filters = self.k, self.filters
        u = Address(self.u, filter_ * self.channels)
        wide = as_scalar(self.result.shape[3], I64)
        begin, end = self.lines
        self.result.prefetch(k, (self.image, filter_, self._row(begin) * wide), rows, (end - begin) * 2 * wide)
        with k.branch(self.too_large[0].eq(0)):
            k.invoke(
                "rvm_winograd_product",
                rows=rows,
                columns=self.columns,
                channels=self.channels,
                filters=filters,
                u=u,
                v=self.at(self.v),
                m=self.at(self.m),
            )
            k.invoke("rvm_winograd_output", rows=rows, columns=self.columns, m=self.at(self.m), out=self.at(self.out))
        with k.branch(self.too_large[0] > 0):
            k.invoke("rvm_winograd_plain", **self.tiles, rows=rows, filters=filters, u=u, out=self.at(self.out))
        self._write_rows(filter_, rows)

    def _row(self, line: Scalar) -> Scalar:
        """Return the first row of the result that a line of tiles computes."""
        return line / self.spread * (2 * self.spread) + line % self.spread

    def _write_rows(self, filter_: Scalar, rows: Scalar) -> None:
        """Generate code that writes the computed tiles to the rows of the result.

        filter_, rows: the index of the first filter, and the number of filters.
        """
        k, across = self.k, self.tiles_wide
        high, wide = (as_scalar(dim, I64) for dim in self.result.shape[2:])
        begin, end = self.lines
        with k.loop(rows, name="r") as r, k.loop(end, start=begin, name="line") as line:
            low = k.let("low", maximum(line * across - self.start, 0))
            stop = k.let("stop", minimum((line + 1) * across - self.start, self.count))
            column = k.let("column", (self.start + low - line * across) * 2)
            width = k.let("width", minimum((stop - low) * 2, wide - column))
            top = k.let("top", self._row(line))
            rows_here = select(top + self.spread < high, Literal(2, I64), (top < high).to(I64))
            with k.loop(rows_here, name="a") as a:
                source = k.let("source", (r * 2 + a) * (2 * self.columns) + low * 2)
                place = k.let("place", (top + a * self.spread) * wide + column)
                with k.loop(width, name="j", simd=True) as j:
                    self.result.store(k, (self.image, filter_ + r, place + j), self.out[source + j])


def check_tiled_convolution(name: str, x: TensorType, u: TensorType, pads: tuple[int, ...], spread: int) -> TensorType:
    """Check the arguments of a convolution with transformed weights, and return the type of its result.

    name: the operator, for messages.
    """
    expect_same_dtype(name, x=x, u=u)
    expect(x.dtype == F32, "{}: x has dtype {}, expected f32", name, x.dtype)
    expect(x.rank in (None, 4), "{}: x has rank {}, expected 4", name, x.rank)
    expect(u.rank in (None, 3), "{}: u has rank {}, expected 3", name, u.rank)
    if u.shape is None:
        return TensorType(F32, None, 4)
    sizes = known_sizes(u.shape)
    fits = sizes is not None and sizes[0] == 16 and sizes[1] > 0 and 0 < sizes[2] <= MAX_CHANNELS
    expect(fits, "{}: u is {}, expected f32[16, filters, channels] with at most {} channels", name, u, MAX_CHANNELS)
    window = window_of(name, (3, 3), None, pads, (spread, 1))
    if x.shape is None:
        return TensorType(F32, None, 4)
    expect_equal_dims(name, "channels of x and u differ", x.shape[1], u.shape[2])
    return TensorType(F32, (x.shape[0], u.shape[1], *output_dims(name, x.shape[2:], window)))


def _numpy_conv_winograd(x: np.ndarray, u: np.ndarray, *, pads: tuple[int, ...], spread: int) -> np.ndarray:
    return numpy_conv(x, _inverse_transform(u), strides=None, pads=pads, dilations=(spread, 1), groups=1)


def _operations(x: tuple, u: tuple, out: tuple, **attributes) -> AnyDim:
    """Return the number of operations of a direct convolution.

    Winograd's algorithm needs fewer multiplications, by a factor of 2.25.
    """
    return window_operations(x, (u[1], u[2], 3, 3), out)


@op("conv_winograd", numpy=_numpy_conv_winograd, lower=Contraction(convolve_tiles, loop_axes, _operations))
def conv_winograd(x: TensorType, u: TensorType, *, pads: tuple[int, ...], spread: int = 1) -> TensorType:
    """Cross-correlation with constant 3 x 3 windows, as `conv` over two spatial axes.  Winograd's algorithm computes
    it: one step computes 2 x 2 elements of the result.

    x: an f32 tensor of shape (batch, channels, h, w).
    u: an f32 tensor of shape (16, filters, channels), the result of `transform_windows` for the weights.  It has at
    most MAX_CHANNELS channels.
    pads: the padding (>= 0) before both spatial axes, then after both.
    spread: the dilation along the first spatial axis, a number >= 1.
    Result: an f32 tensor of shape (batch, filters, h + p - 2 * spread, w + q - 2), where p is the sum of the two
    pads of h, and q is the sum of the two pads of w.  It equals the result of conv except for rounding, because the
    algorithm multiplies sums and differences of elements.  Results near an element of x that is infinite, NaN or at
    least 1e30 in magnitude are computed as in conv.
    Raises RelvmTypeError if an argument has another dtype or rank, or u has another shape.  Raises RelvmArgumentError
    if `pads` or `spread` is invalid.  Raises RelvmShapeError if the numbers of channels are not provably equal, or the
    window is larger than the padded input.
    Source: the pass pack_weights; Lavin and Gray, 2015.
    """
    return check_tiled_convolution("conv_winograd", x, u, pads, spread)
