"""Convolution with constant 3 x 3 windows whose algorithm depends on the sizes at run time."""

from __future__ import annotations

import numpy as np

from relvm.ir.dtypes import F32, I64
from relvm.ir.loop_ir import as_scalar
from relvm.ir.operator import expect, op
from relvm.ir.type_rules import expect_same_dtype
from relvm.ir.types import TensorType
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.flop_count import window_operations
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import Contraction
from relvm.ops.conv_winograd import check_tiled_convolution, convolve_tiles, is_winograd_faster
from relvm.ops.convolution import convolve_windows, loop_axes, numpy_conv


def _conv_by_size(k: KernelBuilder, inputs, result: Epilogue, *, pads: tuple[int, ...], spread: int) -> None:
    """Generate the kernels of both algorithms, and the code that chooses one of them."""
    x, w, u = inputs
    filters, channels, _, _ = w.shape
    high, wide = (as_scalar(dim, I64) for dim in result.shape[2:])
    in_tiles = k.let("in_tiles", is_winograd_faster(channels, filters, high, wide, spread))
    with k.branch(in_tiles):
        convolve_tiles(k, (x, u), result, pads=pads, spread=spread)
    with k.branch(in_tiles.logical_not()):
        convolve_windows(k, (x, w), result, strides=None, pads=pads, dilations=(spread, 1), groups=1)


def _numpy_conv_by_size(
    x: np.ndarray, w: np.ndarray, u: np.ndarray, *, pads: tuple[int, ...], spread: int
) -> np.ndarray:
    return numpy_conv(x, w, strides=None, pads=pads, dilations=(spread, 1), groups=1)


@op("conv_by_size", numpy=_numpy_conv_by_size, lower=Contraction(_conv_by_size, loop_axes, window_operations))
def conv_by_size(x: TensorType, w: TensorType, u: TensorType, *, pads: tuple[int, ...], spread: int = 1) -> TensorType:
    """Cross-correlation with constant 3 x 3 windows, as `conv` over two spatial axes.  For each size of the result, the
    faster of two algorithms computes it: that of `conv` or that of `conv_winograd`.

    x: an f32 tensor of shape (batch, channels, h, w).
    w: the weights, an f32 tensor of shape (filters, channels, 3, 3), whose dimensions are known.
    u: an f32 tensor of shape (16, filters, channels), the result of `transform_windows` for w.  It has at most
    MAX_CHANNELS channels.
    pads: the padding (>= 0) before both spatial axes, then after both.
    spread: the dilation along the first spatial axis, a number >= 1.
    Result: an f32 tensor of shape (batch, filters, h + p - 2 * spread, w + q - 2), where p is the sum of the two
    pads of h, and q is the sum of the two pads of w.  It equals the result of conv except for rounding.
    Raises RelvmTypeError if an argument has another dtype or rank, or if w does not fit to u.  Raises RelvmShapeError
    if the numbers of channels are not provably equal, or the window is larger than the padded input.
    Source: the pass pack_weights; Lavin and Gray, 2015.
    """
    expect_same_dtype("conv_by_size", x=x, w=w, u=u)
    result = check_tiled_convolution("conv_by_size", x, u, pads, spread)
    if u.shape is not None:
        shape = (*u.shape[1:], 3, 3)
        expect(w.dtype == F32 and w.shape == shape, "conv_by_size: w is {}, expected {}", w, TensorType(F32, shape))
    return result
