"""Integer convolution of 8-bit tensors with a zero point.  The value of padding elements is the zero point."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relvm.ir.dtypes import I8, I32, I64, U8, DType
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, as_scalar, minimum
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import product
from relvm.ir.type_rules import expect_known_dims, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.conv.depthwise_int8 import can_write_byte_depthwise, write_byte_depthwise
from relvm.kernels.conv.sliding_window import window_of
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.flop_count import window_operations
from relvm.kernels.gemm.gemm import (
    ROWS,
    Counters,
    LhsInt8,
    PackOnTheFly,
    byte_tile_rows,
    gemm,
    pack_from_row_major,
    run_time_panel_width,
)
from relvm.kernels.gemm.gemm_int8 import (
    WORD,
    ZeroPoints,
    choose_signs,
    int8_lhs,
    sum_row,
    unsigned_flip_mask,
    unsigned_zero_point,
    word_count,
)
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import Contraction
from relvm.kernels.plain_loops import convolve_plainly
from relvm.ops.convolution import check_convolution, drop_unit_axes, im2col, loop_axes, numpy_conv


def _conv_integer(k: KernelBuilder, inputs, result: Epilogue, *, strides, pads, dilations, groups: int) -> None:
    """Generate the kernel of `conv_integer`.

    It is a matrix product of the weights and the windows of x for each image and group.  The weights are signed, and
    the elements of x are first converted to unsigned.  Small kernels, and kernels for groups with few filters, use
    other loops (`convolve_plainly`, `write_byte_depthwise`).
    """
    x, w, x_zero = inputs
    window = window_of("conv_integer", w.shape[2:], strides, pads, dilations)
    filters, padding = w.shape[0] // groups, k.let("padding", x_zero.flat(Literal(0, I64)))
    is_narrow = groups > 1 and filters < ROWS
    if k.is_small or (k.is_compact and is_narrow):  # the kernel of narrow groups needs 16 kB of sums
        (x, w), result, window = drop_unit_axes((x, w), result, window)
        zero = k.let("zero", padding.to(I32))
        convolve_plainly(k, x, w, result, window, groups, lambda position: x.flat(position).to(I32) - zero)
        return
    if is_narrow:
        (narrow_x, narrow_w), narrow, small = drop_unit_axes((x, w), result, window)
        if can_write_byte_depthwise(narrow_w, small):
            write_byte_depthwise(k, narrow_x, narrow_w, padding, narrow, small, filters)
            return
    indices, depth = product(result.shape[2:]), product(w.shape[1:])
    width, deep = run_time_panel_width(k, indices), k.size((depth,))
    zero = unsigned_zero_point(k, x.dtype, padding)
    sums = k.allocate("sums", I32, (max(w.shape[0], 1),))
    with k.loop(w.shape[0], name="filter") as filter_:
        k.store(sums, (filter_,), sum_row(k, w, filter_ * deep, deep, 0))

    def right(start: Scalar) -> PackOnTheFly:
        if window.is_pointwise():
            rows = pack_from_row_major(k, x, start, k.size(x.shape[2:]))
        else:
            rows = im2col(k, x, start, result.shape, window, padding)
        return _combine_bytes(k, rows, x.dtype, deep, width)

    convolve_words(k, x, w, result, (groups, w.shape[1]), width, zero, lambda filter_: sums[filter_], right)


def convolve_words(
    k: KernelBuilder,
    x: Buffer,
    w: Buffer,
    result: Epilogue,
    groups: tuple[int, int],
    width: int,
    zero: Scalar,
    sum_of: Callable[[Scalar], Scalar],
    im2col_of: Callable[[Scalar], PackOnTheFly],
) -> None:
    """Generate a matrix product of the signed weights and the im2col matrix of x, for each image and group.

    Each element of the im2col matrix is a word, which consists of four unsigned bytes.

    result: stores the elements of the product, after the operators that are fused into the kernel.
    groups: the number of groups, and the number of channels of x in each group.
    width: the number of columns that the product processes at a time (a panel).
    zero: the zero point of x, converted to unsigned.
    sum_of: a function from the index of a filter to the sum of its weights.
    im2col_of: a function from the flat position in x of a group's first channel to the im2col matrix of the group.
    """
    depth, filters = product(w.shape[1:]), w.shape[0] // groups[0]
    deep = k.size((depth,))

    def operands(place: tuple[Scalar, ...]) -> tuple[LhsInt8, PackOnTheFly, Counters]:
        image, group = place
        at_filter = k.let("at_filter", group * filters)
        at_x = k.let("at_x", (image * groups[0] + group) * k.size((groups[1], *x.shape[2:])))
        zeros = ZeroPoints(
            left=None,
            right=lambda j: zero,
            row_sum=lambda i: sum_of(at_filter + i),
            column_sum=lambda first, j: Literal(0, I32),
        )
        left = int8_lhs(k, w, at_filter * deep, deep, choose_signs(I8, U8), zeros)
        return left, im2col_of(at_x), lambda i, j: (image, at_filter + i, j)

    sizes = (as_scalar(filters, I64), k.size((product(result.shape[2:]),)), word_count(depth))
    gemm(k, (x.shape[0], groups[0]), sizes, width, result, operands, tile_rows=byte_tile_rows(k))


def _combine_bytes(k: KernelBuilder, rows: PackOnTheFly, dtype: DType, depth: Scalar, width: int) -> PackOnTheFly:
    """Combine the bytes of `rows`, the right operand of a matrix product, into words, and return the new operand.

    Each word consists of four consecutive bytes of a column, converted to unsigned.

    dtype: the dtype of the bytes.
    depth: the number of rows of bytes.
    width: the number of columns that the product processes at a time (a panel).
    """
    four = k.allocate("four", dtype, (WORD * width,))

    def fill(panel: Buffer, first: Scalar, span: Scalar, column: Scalar, count: Scalar, pitch: Scalar) -> None:
        with k.loop(span, name="p") as p:
            row = k.let("row", (first + p) * WORD)
            have = k.let("have", minimum(depth - row, WORD))
            rows.fill(four, row, have, column, count, pitch)
            k.invoke(
                "rvm_words_of_bytes",
                words=Address(panel, p * pitch),
                bytes=Address(four, Literal(0, I64)),
                stride=pitch,
                rows=have,
                count=pitch,
                step=1,
                flip=unsigned_flip_mask(dtype),
            )

    return PackOnTheFly(fill)


def numpy_conv_integer(
    x: np.ndarray, w: np.ndarray, x_zero: np.ndarray, *, strides, pads, dilations, groups: int
) -> np.ndarray:
    moved = x.astype(np.int32) - x_zero.astype(np.int32)
    return numpy_conv(moved, w.astype(np.int32), strides=strides, pads=pads, dilations=dilations, groups=groups)


def expect_bytes(op: str, x: TensorType, x_zero: TensorType) -> None:
    """Check that x is a tensor of dtype i8 or u8, and that its zero point `x_zero` is a tensor of the same dtype and of
    rank 0."""
    expect(x.dtype in (I8, U8), "{}: x has dtype {}, expected i8 or u8", op, x.dtype)
    right = x_zero.dtype == x.dtype and x_zero.rank in (None, 0)
    expect(right, "{}: x_zero is {}, expected {} of rank 0", op, x_zero, x.dtype)


@op("conv_integer", numpy=numpy_conv_integer, lower=Contraction(_conv_integer, loop_axes, window_operations))
def conv_integer(
    x: TensorType,
    w: TensorType,
    x_zero: TensorType,
    *,
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
    groups: int = 1,
) -> TensorType:
    """Cross-correlation of x - x_zero with w.  The padding has the value x_zero, so it adds 0 to each sum.

    x: a tensor of dtype i8 or u8 and of shape (batch, channels, spatial...).
    w: an i8 tensor of shape (filters, channels / groups, window...), with known dimensions.
    x_zero: the zero point of x, a tensor of the dtype of x and of rank 0.
    strides, dilations: one number >= 1 for each spatial axis, or None for 1.
    pads: the padding (>= 0) before each spatial axis, then after each spatial axis, or None for 0.
    groups: the number of groups into which channels and filters are divided.
    Result: an i32 tensor of shape (batch, filters, spatial...).  A spatial axis of size n gets the size (n + p -
    (window - 1) * dilation - 1) // stride + 1, where p is the sum of its two pads.  Sums wrap around.
    Raises RelvmTypeError if an argument has another dtype or rank, or w has unknown dimensions.  Raises
    RelvmArgumentError if an attribute has the wrong length or an invalid value.  Raises RelvmShapeError if the numbers
    of channels are not provably equal, the filters cannot be divided into the groups, or the window is larger than the
    padded input.
    Source: ONNX ConvInteger-10.

    Examples:

        >>> run(
        ...     "conv_integer(x, w, x_zero)",
        ...     x=np.uint8([[[5, 6, 7]]]),
        ...     w=np.int8([[[1, 2]]]),
        ...     x_zero=np.uint8(5),
        ... )
        [[[2 5]]]
    """
    name = "conv_integer"
    expect_tensor(name, x=x, w=w, x_zero=x_zero)
    expect_bytes(name, x, x_zero)
    expect_known_dims(name, "w", w, I8)
    return TensorType(I32, *check_convolution(name, x, w, strides, pads, dilations, groups))
