"""Convolution with constant 3 x 3 windows.  The sizes at run time decide which algorithm computes it."""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import F32, I64
from relvm.ir.loop_ir import as_scalar
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim, known_size
from relvm.ir.type_rules import expect_known_dims, expect_same_dtype
from relvm.ir.types import TensorType
from relvm.kernels.conv.direct import convolve_directly, direct_shape
from relvm.kernels.conv.sliding_window import window_of
from relvm.kernels.conv.window_product import can_multiply_windows, multiply_windows
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.flop_count import window_operations
from relvm.kernels.gemm.packing import packed_row_count, unpack_columns
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import Contraction
from relvm.ops.conv_winograd import check_tiled_convolution, convolve_tiles, is_winograd_faster
from relvm.ops.convolution import loop_axes, numpy_conv


def _conv_by_size(k: KernelBuilder, inputs, result: Epilogue, *, pads: tuple[int, ...], spread: int) -> None:
    """Generate the kernels of both algorithms, and the code that chooses one of them."""
    x, w, u = inputs
    _, filters, channels = map(known_size, u.shape)
    high, wide = (as_scalar(dim, I64) for dim in result.shape[2:])
    window = window_of("conv_by_size", (3, 3), None, pads, (spread, 1))
    in_tiles = k.let("in_tiles", is_winograd_faster(channels, filters, high, wide, spread))
    with k.branch(in_tiles):
        convolve_tiles(k, (x, u), result, pads=pads, spread=spread)
    with k.branch(in_tiles.logical_not()):
        if len(w.shape) == 1:
            multiply_windows(k, x, w, result, window, filters)
        else:
            shape = direct_shape(window, channels)
            assert shape is not None
            convolve_directly(k, x, w, result, shape, filters, groups=1)


def _numpy_conv_by_size(
    x: np.ndarray, w: np.ndarray, u: np.ndarray, *, pads: tuple[int, ...], spread: int
) -> np.ndarray:
    weights = w if w.ndim == 4 else unpack_columns(w, u.shape[1]).T.reshape(*u.shape[1:], 3, 3)
    return numpy_conv(x, weights, strides=None, pads=pads, dilations=(spread, 1), groups=1)


def _operations(x: tuple, w: tuple, u: tuple, out: tuple, **attributes) -> AnyDim:
    return window_operations(x, (*u[1:], 3, 3), out)


@op("conv_by_size", numpy=_numpy_conv_by_size, lower=Contraction(_conv_by_size, loop_axes, _operations))
def conv_by_size(x: TensorType, w: TensorType, u: TensorType, *, pads: tuple[int, ...], spread: int = 1) -> TensorType:
    """Cross-correlation with constant 3 x 3 windows, as `conv` over two spatial axes.  For each size of the result, the
    faster of two algorithms computes it: that of `conv_winograd`, or the algorithm for which w is stored.

    x: an f32 tensor of shape (batch, channels, height, width).
    w: the weights, an f32 tensor.  For a product of windows and weights (`multiply_windows`), it has rank 1 and is the
    result of `pack_filters`.  For a direct convolution (`convolve_directly`), it has shape (filters, channels, 3, 3).
    u: an f32 tensor of shape (16, filters, channels), the result of `transform_windows` for w.  It has at most
    MAX_CHANNELS channels.
    pads: the padding (>= 0) before both spatial axes, then after both.
    spread: the dilation along the first spatial axis, a number >= 1.
    Result: an f32 tensor of shape (batch, filters, height + p - 2 * spread, width + q - 2), where p and q are the sums
    of the two pads of the height and of the width.  It equals the result of conv except for rounding.
    Raises RelvmTypeError if an argument has another dtype or rank, or u has another shape.  Raises RelvmArgumentError
    if `pads` or `spread` is invalid, or the spread or the number of channels is too large for the other algorithm.
    Raises RelvmShapeError if the numbers of channels are not provably equal, w has another size than u needs, or the
    window is larger than the padded input.
    Source: the pass pack_weights; Lavin and Gray, 2015.
    """
    name = "conv_by_size"
    expect_same_dtype(name, x=x, w=w, u=u)
    result = check_tiled_convolution(name, x, u, pads, spread)
    window = window_of(name, (3, 3), None, pads, (spread, 1))
    expect(w.rank in (None, 1, 4), "{}: w has rank {}, expected 1 or 4", name, w.rank)
    expect_known_dims(name, "w", w, F32)
    if w.rank == 4 and u.shape is not None:
        expected = (*u.shape[1:], 3, 3)
        expect(w.shape == expected, "{}: w is {}, expected shape {}", name, w, expected, error=RelvmShapeError)
        can = direct_shape(window, known_size(u.shape[2])) is not None
    else:
        can = can_multiply_windows(window)
    expect(can, "{}: spread is {}, which is too large for this operator", name, spread, error=RelvmArgumentError)
    if w.rank != 4 and u.shape is not None and w.shape is not None:
        rows, channels = packed_row_count(name, w, known_size(u.shape[1])), known_size(u.shape[2])
        message = "{}: w has {} rows, expected 9 for each of {} channels of u"
        expect(rows == 9 * channels, message, name, rows, channels, error=RelvmShapeError)
    return result
