"""Convolution with constant weights that are packed in advance."""

from __future__ import annotations

import math

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import F32, I64
from relvm.ir.loop_ir import Buffer, Literal
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim, known_size
from relvm.ir.type_rules import expect_integers, expect_known_dims, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.conv.sliding_window import window_of
from relvm.kernels.conv.window_product import can_multiply_windows, multiply_windows
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.flop_count import window_operations
from relvm.kernels.gemm.gemm import Lhs, Prepacked, gemm, panel_width
from relvm.kernels.gemm.packing import pack_columns, packed_row_count, unpack_columns
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import Contraction
from relvm.ops.convolution import check_convolution, drop_unit_axes, loop_axes, numpy_conv


def pack_filters(w: np.ndarray) -> np.ndarray:
    """Pack weights of shape (filters, channels, window...) for `conv_packed`."""
    return pack_columns(w.reshape(len(w), -1).T)


def _conv_packed(
    k: KernelBuilder, inputs, result: Epilogue, *, filters: int, window: tuple[int, ...], strides, pads, dilations
) -> None:
    x, w = inputs
    whole = window_of("conv_packed", window, strides, pads, dilations)
    if x.shape[2:] == window and not any(whole.pads):
        _multiply_images(k, x, w, result, filters)
        return
    (x,), result, small = drop_unit_axes((x,), result, whole)
    multiply_windows(k, x, w, result, small, filters)


def _multiply_images(k: KernelBuilder, x: Buffer, w: Buffer, result: Epilogue, filters: int) -> None:
    """Generate a convolution with one window for each image, which is a matrix product of images and weights."""
    zero, depth = Literal(0, I64), k.size(x.shape[1:])
    left, right = Lhs(x, zero, depth, Literal(1, I64)), Prepacked(w, zero)
    sizes = (k.size(x.shape[:1]), Literal(filters, I64), depth)
    gemm(k, (), sizes, panel_width(filters), result, lambda place: (left, right, lambda i, j: (i, j, zero)))


def _numpy_conv_packed(
    x: np.ndarray, w: np.ndarray, *, filters: int, window: tuple[int, ...], strides, pads, dilations
) -> np.ndarray:
    weights = unpack_columns(w, filters).T.reshape(filters, x.shape[1], *window)
    return numpy_conv(x, weights, strides=strides, pads=pads, dilations=dilations, groups=1)


def _operations(x: tuple, w: tuple, out: tuple, *, window: tuple[int, ...], **attributes) -> AnyDim:
    return window_operations(x, (out[1], x[1], *window), out)


@op("conv_packed", numpy=_numpy_conv_packed, lower=Contraction(_conv_packed, loop_axes, _operations))
def conv_packed(
    x: TensorType,
    w: TensorType,
    *,
    filters: int,
    window: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
) -> TensorType:
    """Cross-correlation over one or two spatial axes with constant weights that are packed in advance, as `conv`.

    x: an f32 tensor of shape (batch, channels, spatial...), with a known number of channels.
    w: the packed weights, the result of `pack_filters`.  It is an f32 tensor of rank 1.
    filters: the number of filters.
    window: the size of the window along each spatial axis, at least 1.
    strides, dilations: one number >= 1 for each spatial axis, or None for 1.
    pads: the padding (>= 0) before each spatial axis, then after each spatial axis, or None for 0.
    Result: an f32 tensor of shape (batch, filters, spatial...).  It equals the result of conv with groups=1.
    Raises RelvmTypeError if an argument has another dtype or rank, or the size of w is unknown.  Raises
    RelvmArgumentError if an attribute has the wrong length or an invalid value, or the window is too large: it has more
    than 512 positions, or padding and very large strides or dilations.  Raises RelvmShapeError if the number of
    channels is unknown, w has another size, or the window is larger than the padded input.
    Source: the pass pack_weights.
    """
    name = "conv_packed"
    expect_tensor(name, x=x, w=w)
    expect(x.dtype == F32, "{}: x has dtype {}, expected f32", name, x.dtype)
    expect_known_dims(name, "w", w, F32)
    expect_integers(name, "window", window, len(window))
    least = min(window, default=0)
    expect(least >= 1, "{}: window is {}, expected sizes of at least 1", name, window, error=RelvmArgumentError)
    can = can_multiply_windows(window_of(name, window, strides, pads, dilations))
    expect(can, "{}: the window {} is too large for this operator", name, window, error=RelvmArgumentError)
    rank = len(window) + 2
    expect(x.rank in (None, rank), "{}: x has rank {}, expected {}", name, x.rank, rank)
    if w.shape is None or x.shape is None:
        return TensorType(F32, None, rank)
    expect(w.rank == 1, "{}: w has rank {}, expected 1", name, w.rank)
    depth = packed_row_count(name, w, filters)
    channels = x.shape[1]
    fits = isinstance(channels, int) and channels * math.prod(window) == depth
    message = "{}: x is {}, but w has {} rows for windows {}"
    expect(fits, message, name, x, depth, window, error=RelvmShapeError)
    weights = TensorType(F32, (filters, known_size(channels), *window))
    return TensorType(F32, *check_convolution(name, x, weights, strides, pads, dilations, 1))
