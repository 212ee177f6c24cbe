"""The choice between the algorithms of a convolution, by estimates of their times.

The unit is a processor cycle.  The constants are fitted to measurements on a processor with AVX-512
(benchmarks/README.md, "Convolutions").  The choice depends only on the order of the estimated times.  It affects
results only if Winograd's algorithm is chosen.
"""

from __future__ import annotations

import math

from relvm.data_classes import value_record
from relvm.ir.symbolic import AnyDim, known_size
from relvm.kernels.conv.direct import FILTERS, DirectShape, direct_shape
from relvm.kernels.conv.sliding_window import Window
from relvm.kernels.conv.window_product import blocks_of_positions, can_multiply_windows
from relvm.kernels.gemm.gemm import ROWS, STEP, WIDTHS

Shape = tuple[AnyDim, ...]

_LARGE = 64  # stands for an unknown size of a spatial axis
_TOLERANCE = 1.1  # how much longer packed weights may take for unknown sizes; for small images they save much more
_WIDTH = WIDTHS[0]
_CACHE = 1 << 20  # bytes of weights that stay in the L2 cache
_MEMORY = 10  # bytes that are read in a cycle from memory behind the L2 cache


def is_window_product_faster(x: Shape, w: Shape, out: Shape, window: Window) -> bool:
    """Return whether `multiply_windows` takes less time than the operator `conv` for a convolution with groups=1.

    If spatial sizes are unknown, the times are estimated for large images, and `multiply_windows` may take longer by
    the factor _TOLERANCE.

    x, w, out: the shapes of the input, of the weights, which are known, and of the result.
    """
    if not isinstance(x[1], int) or 0 in w or not can_multiply_windows(window):
        return False
    dims = tuple(dim for dim in out[2:] if dim != 1)
    if not dims:
        return True
    if known_size(w[0]) < ROWS or is_flat(w[1], window):  # see convolve_windows
        return False
    known = all(isinstance(dim, int) for dim in dims)
    batch = x[0] if isinstance(x[0], int) else 1
    sizes = _Sizes(
        batch, x[1], known_size(w[0]), tuple(dim if isinstance(dim, int) else _LARGE for dim in dims), window
    )
    others = _im2col_cycles(sizes, shares_panels=batch != 1 and wastes_vectors(sizes.positions))
    if shape := direct_shape(window, sizes.channels):
        others = min(others, _direct_cycles(sizes, shape))
    return _window_product_cycles(sizes) < others * (1 if known else _TOLERANCE)


def is_direct_faster_than_windows(w: Shape, out: Shape, window: Window) -> bool:
    """Return whether `convolve_directly` takes less time than `multiply_windows` for a convolution with groups=1.

    Return False if `convolve_directly` cannot generate the convolution, and True if only `multiply_windows` cannot.

    w, out: the shapes of the weights, which are known, and of the result.  Unknown spatial sizes count as large ones.
    """
    channels = known_size(w[1])
    shape = direct_shape(window, channels)
    if shape is None:
        return False
    dims = tuple(dim if isinstance(dim, int) else _LARGE for dim in out[2:])
    sizes = _Sizes(1, channels, known_size(w[0]), dims, window)
    return not can_multiply_windows(window) or _direct_cycles(sizes, shape) < _window_product_cycles(sizes)


def direct_shape_if_faster(
    batch: AnyDim, channels: AnyDim, filters: AnyDim, dims: Shape, window: Window, *, shares_panels: bool
) -> DirectShape | None:
    """Return the sizes of a direct convolution if it is faster than a product with an im2col matrix, otherwise None.

    batch: the number of images.  If it is unknown, the times are estimated for one image.
    channels, filters: the number of channels and of filters per group.
    dims: the sizes of the output along the spatial axes.
    shares_panels: whether the positions of all images would be columns of one im2col matrix.
    """
    if not isinstance(channels, int) or not isinstance(filters, int) or filters < 1 or window.is_pointwise():
        return None
    shape = direct_shape(window, channels)
    if shape is None:
        return None
    images = batch if isinstance(batch, int) else 1
    known = tuple(dim if isinstance(dim, int) else _LARGE for dim in dims)
    sizes = _Sizes(images, channels, filters, known, window)
    return shape if _direct_cycles(sizes, shape) < _im2col_cycles(sizes, shares_panels=shares_panels) else None


def is_flat(channels: AnyDim, window: Window) -> bool:
    """Return whether a convolution is fastest as sums over window positions, for any number of filters.

    This is so with one channel per group, two spatial axes, and strides and dilations of 1.

    channels: the number of channels per group.
    """
    return channels == 1 and len(window.sizes) == 2 and {*window.strides, *window.dilations} == {1}


def wastes_vectors(positions: AnyDim) -> bool:
    """Return whether the matrix of an image with `positions` output positions has too few columns for its vectors.

    This is so if the columns do not fill a panel, or fill less than 9/10 of their vectors of STEP elements.
    """
    if not isinstance(positions, int) or positions <= 0:
        return False
    return positions < _WIDTH or positions * 10 < -(-positions // STEP) * STEP * 9


@value_record
class _Sizes:
    """The sizes of a convolution with groups=1, in which numbers stand for unknown sizes.

    dims: the sizes of the output along the spatial axes.
    """

    batch: int
    channels: int
    filters: int
    dims: tuple[int, ...]
    window: Window

    @property
    def depth(self) -> int:
        return self.channels * math.prod(map(known_size, self.window.sizes))

    @property
    def positions(self) -> int:
        return math.prod(self.dims)


def _step_cycles(rows: int, columns: int) -> float:
    """Return the cycles that a matrix product takes for one step along its depth.

    The result has `rows` rows and at most _WIDTH columns, and is divided into tiles of at most ROWS rows.  The time of
    a tile is the longest of three: its multiplications (two vectors in a cycle), its loads from the L2 cache (half a
    vector in a cycle), and the latency of an addition, because the next step needs its sum.
    """
    vectors = -(-columns // STEP)
    full, rest = divmod(rows, ROWS)
    return sum(max(count * vectors / 2, 2 * vectors, 4) for count in (ROWS,) * full + ((rest,) if rest else ()))


def _im2col_cycles(sizes: _Sizes, *, shares_panels: bool) -> float:
    """Return the estimated time of a product of the weights and an im2col matrix (`convolve_windows`).

    shares_panels: whether the positions of all images are columns of one matrix.
    """
    window, depth, filters = sizes.window, sizes.depth, sizes.filters
    columns, images = (sizes.batch * sizes.positions, 1) if shares_panels else (sizes.positions, sizes.batch)
    full, rest = divmod(columns, _WIDTH)
    total = 0.0
    for count, width in ((full, _WIDTH), (1, rest)):
        if not width:
            continue
        vectors, runs = -(-width // STEP), 1.0
        if not window.is_pointwise() or shares_panels:
            runs = max(1.0, width / sizes.dims[-1]) + any(window.pads) / 2
        if window.is_pointwise() and not shares_panels and width % STEP == 0:
            copy = 4.0  # the first tile copies the panel
        else:
            copy = 2 + 2 * vectors + 8 * runs + (width / 8 if window.strides[-1] > 1 else 0)
        product = max(_step_cycles(filters, width) * depth, _from_memory(sizes))
        total += count * (product + copy * depth + 2 * vectors * filters)
    return images * total


def _window_product_cycles(sizes: _Sizes) -> float:
    """Return the estimated time of a product of windows and packed weights (`multiply_windows`)."""
    total = 0.0
    for lines, columns, count in blocks_of_positions(*(1, *sizes.dims)[-2:]):
        positions, groups = lines * columns, -(-lines * columns // STEP)
        product = store = 0.0
        for first in range(0, sizes.filters, _WIDTH):
            width = min(sizes.filters - first, _WIDTH)
            product += _step_cycles(positions, width) * sizes.depth
            store += groups * (80 * -(-width // STEP) + 10 * width)
        if any(sizes.window.pads):
            copy = 5.0 * sizes.channels * (lines * sizes.window.strides[0] + 2)
        else:  # channels that are read in place are on different pages of memory
            copy = 3.0 * sizes.channels * -(-positions // ROWS) if sizes.positions >= 512 else 0.0
        total += count * (max(product, _from_memory(sizes)) + store + copy)
    return sizes.batch * total


def _direct_cycles(sizes: _Sizes, shape: DirectShape) -> float:
    """Return the estimated time of a direct convolution (`convolve_directly`)."""
    total = 0.0
    flat_lines = not shape.reach[1] and not any(sizes.window.pads[-1 :: -len(sizes.window.sizes)])
    for lines, columns, count in shape.blocks(*(1, *sizes.dims)[-2:]):
        pitch, planes = columns + shape.reach[1], sizes.channels * math.prod(shape.phases)
        copied = planes * (lines + shape.reach[0])
        copy = copied * pitch / (8 if shape.steps[1] == 1 else 2.5) + 5 * (planes if flat_lines else copied)
        full, rest = divmod(lines * pitch - shape.reach[1], _WIDTH)
        product = 0.0
        for tiles, width in ((full, _WIDTH), (1, rest)):
            if width:
                vectors = -(-width // STEP)
                groups, left = divmod(sizes.filters, ROWS)
                steps = sum(
                    max(rows * vectors / 2, vectors + rows / 2, 4) for rows in (ROWS,) * groups + (left,) if rows
                )
                store = 12 + 3 * vectors + (0 if flat_lines else 6 * width / pitch)
                product += tiles * (steps * sizes.depth + sizes.filters * store)
        total += count * (product + copy * -(-sizes.filters // FILTERS))
    return sizes.batch * total


def _from_memory(sizes: _Sizes) -> float:
    """Return the estimated time to read the weights from memory, or 0 if they fit in the L2 cache."""
    size = sizes.filters * sizes.depth * 4
    return size / _MEMORY if size > _CACHE else 0.0
