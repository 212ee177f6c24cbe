"""Integer convolutions with weights that are packed in advance.  Each word contains four channels at one window
position.

The inner axis of the matrix product runs over the window positions and, for each position, over the channels.  The
channels are padded to a multiple of four with weights of 0.  csrc/codegen/gemm_int8.h combines four rows of bytes into
words.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import I8, I32, I64
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, maximum, minimum
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim, known_size, product
from relvm.ir.type_rules import expect_known_dims, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.conv.sliding_window import Window, window_of
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.flop_count import window_operations
from relvm.kernels.gemm.gemm import WIDTHS, PackOnTheFly, clear_padding_columns
from relvm.kernels.gemm.gemm_int8 import WORD, padding_word, unsigned_flip_mask, unsigned_zero_point
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import Contraction
from relvm.ops.conv_int8 import convolve_words, expect_bytes, numpy_conv_integer
from relvm.ops.convolution import ColumnRun, check_convolution, drop_unit_axes, generate_runs, loop_axes, pad_run


def pack_windows(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pack i8 weights of shape (filters, channels, window...) for `conv_integer_packed`.  Return the packed weights and
    the sum of the weights of each filter."""
    last = np.moveaxis(w, 1, -1)
    packed = np.zeros((*last.shape[:-1], -(-w.shape[1] // WORD) * WORD), np.int8)
    packed[..., : w.shape[1]] = last
    return packed, packed.sum(axis=tuple(range(1, packed.ndim)), dtype=np.int32)


def _conv(k: KernelBuilder, inputs, result: Epilogue, *, strides, pads, dilations, groups: int) -> None:
    """Generate the kernel of `conv_integer_packed`: a matrix product of weights and windows for each image and group.

    There is one window for each output position.
    """
    x, w, sums, x_zero = inputs
    window = window_of("conv_integer_packed", w.shape[1:-1], strides, pads, dilations)
    if window.is_pointwise():
        x, window = _as_line(x), Window((1,), (1,), (0, 0), (1,))
        result = replace(result, shape=(*result.shape[:2], product(result.shape[2:])))
    (x,), result, window = drop_unit_axes((x,), result, window)
    width, channels = _panel_width(k, product(result.shape[2:])), known_size(x.shape[1]) // groups
    zero = unsigned_zero_point(k, x.dtype, x_zero.flat(Literal(0, I64)))
    padding = padding_word(k, zero)

    def right(start: Scalar) -> PackOnTheFly:
        return _im2col_words(k, x, start, channels, result.shape, window, padding)

    convolve_words(k, x, w, result, (groups, channels), width, zero, sums.flat, right)


def _panel_width(k: KernelBuilder, positions: AnyDim) -> int:
    """Return the panel width: the smallest of WIDTHS that is large enough for all output positions.

    The panel width is the number of columns that the product processes at a time.  If no width is large enough, return
    the largest.  If the kernel should use little memory (`is_compact`), always return the smallest.
    """
    if k.is_compact:
        return WIDTHS[-1]
    return min((width for width in WIDTHS if isinstance(positions, int) and width >= positions), default=WIDTHS[0])


def _as_line(x: Buffer) -> Buffer:
    return replace(x, shape=(*x.shape[:2], product(x.shape[2:])))


def _im2col_words(
    k: KernelBuilder,
    x: Buffer,
    start: Scalar,
    channels: int,
    shape: tuple[AnyDim, ...],
    window: Window,
    padding: Scalar,
) -> PackOnTheFly:
    """Return the im2col matrix of a group of channels, as the right operand of a matrix product.

    Each element of the matrix is a word of four channels.

    start: the flat position in x of the first channel.
    channels: the number of channels in the group.
    shape: the shape of the convolution's result.
    padding: the word for padding, which contains four padding elements.
    """
    blocks, area = -(-channels // WORD), k.size(x.shape[2:])
    flip, step = unsigned_flip_mask(x.dtype), window.strides[-1]

    def fill(panel: Buffer, first: Scalar, span: Scalar, column: Scalar, count: Scalar, pitch: Scalar) -> None:
        end = k.let("end", first + span)
        with k.loop((end - 1) / blocks + 1, start=first / blocks, name="tap") as tap:
            before = k.let("before", tap * blocks)
            low = k.let("low", maximum(first - before, 0))
            high = k.let("high", minimum(end - before, blocks))

            def words(run: ColumnRun) -> None:
                with k.loop(high, start=low, name="block") as block:
                    to = k.let("to", (before + block - first) * pitch)
                    pad_run(k, panel, to, run, padding)
                    have = Literal(WORD, I64) if channels % WORD == 0 else minimum(channels - block * WORD, WORD)
                    source = start + run.source + block * WORD * area + run.first * step
                    k.invoke(
                        "rvm_words_of_bytes",
                        words=Address(panel, to + run.first),
                        bytes=Address(x, source),
                        stride=area,
                        rows=have,
                        count=run.end - run.first,
                        step=step,
                        flip=flip,
                    )

            generate_runs(k, x.shape[2:], shape[2:], window, tap, column, count, words)
        clear_padding_columns(k, panel, span, count, pitch)

    return PackOnTheFly(fill)


def _numpy_conv(
    x: np.ndarray, w: np.ndarray, sums: np.ndarray, x_zero: np.ndarray, *, strides, pads, dilations, groups: int
) -> np.ndarray:
    weights = np.moveaxis(w, -1, 1)[:, : x.shape[1] // groups]
    return numpy_conv_integer(x, weights, x_zero, strides=strides, pads=pads, dilations=dilations, groups=groups)


def _operations(x: tuple, w: tuple, *shapes: tuple, groups: int, **attributes) -> AnyDim:
    return window_operations(x, (w[0], x[1] // groups, *w[1:-1]), *shapes)


@op("conv_integer_packed", numpy=_numpy_conv, lower=Contraction(_conv, loop_axes, _operations))
def conv_integer_packed(
    x: TensorType,
    w: TensorType,
    sums: TensorType,
    x_zero: TensorType,
    *,
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
    groups: int = 1,
) -> TensorType:
    """Cross-correlation of x - x_zero with constant weights that are packed in advance.  The padding has the value
    x_zero, so it adds 0 to each sum.

    x: a tensor of dtype i8 or u8 and of shape (batch, channels, spatial...), with a known number of channels.
    w: the packed weights, the first result of `pack_windows`.  It is an i8 tensor of shape (filters, window...,
    channels / groups rounded up to a multiple of four).
    sums: the sum of the weights of each filter, the second result of `pack_windows`.  It is an i32 tensor of shape
    (filters,).
    x_zero: the zero point of x, a tensor of the dtype of x and of rank 0.
    strides, dilations: one number >= 1 for each spatial axis, or None for 1.
    pads: the padding (>= 0) before each spatial axis, then after each spatial axis, or None for 0.
    groups: the number of groups into which channels and filters are divided.
    Result: an i32 tensor of shape (batch, filters, spatial...).  A spatial axis of size n gets the size (n + p -
    (window - 1) * dilation - 1) // stride + 1, where p is the sum of its two pads.  Sums wrap around.
    Raises RelvmTypeError if an argument has another dtype or rank, or a dimension of w or sums is unknown.  Raises
    RelvmArgumentError if an attribute has the wrong length or an invalid value.  Raises RelvmShapeError if the number
    of channels is unknown, the shapes do not fit together, or the window is larger than the padded input.
    Source: the pass pack_weights.
    """
    name = "conv_integer_packed"
    expect_tensor(name, x=x, w=w, sums=sums, x_zero=x_zero)
    expect_bytes(name, x, x_zero)
    expect_known_dims(name, "w", w, I8)
    expect_known_dims(name, "sums", sums, I32)
    if x.shape is None or w.shape is None:
        return TensorType(I32, *check_convolution(name, x, w, strides, pads, dilations, groups))
    expect(len(w.shape) >= 3, "{}: w has rank {}, expected at least 3", name, len(w.shape))
    expect(groups >= 1, "{}: groups is {}, expected an integer of at least 1", name, groups, error=RelvmArgumentError)
    channels = x.shape[1] // groups if len(x.shape) > 1 and isinstance(x.shape[1], int) else -1
    fits = channels >= 0 and -(-channels // WORD) * WORD == w.shape[-1]
    message = "{}: x is {} and w is {}, expected {} channels per group, or up to 3 fewer"
    expect(fits, message, name, x, w, w.shape[-1], error=RelvmShapeError)
    message = "{}: sums is {}, expected one element for each of {} filters"
    expect(sums.shape in (None, w.shape[:1]), message, name, sums, w.shape[0], error=RelvmShapeError)
    plain = TensorType(I8, (w.shape[0], channels, *w.shape[1:-1]))
    return TensorType(I32, *check_convolution(name, x, plain, strides, pads, dilations, groups))
