"""Quantized matrix products: 8-bit factors, accumulated in 32 bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relvm.errors import RelvmShapeError
from relvm.ir.dtypes import I8, I32, I64, U8
from relvm.ir.loop_ir import Literal, Scalar
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim, product
from relvm.ir.type_rules import broadcast_dims, expect_equal_dims, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.flop_count import matrix_operations
from relvm.kernels.gemm.gemm import (
    Counters,
    LhsInt8,
    PackOnTheFly,
    Prepacked,
    byte_tile_rows,
    gemm,
    panel_width,
    run_time_panel_width,
)
from relvm.kernels.gemm.gemm_int8 import ZeroPoints, choose_signs, int8_lhs, pack_words, sum_row, word_count
from relvm.kernels.gemm.packing import pack_columns, packed_row_count, unpack_columns
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import Contraction
from relvm.kernels.plain_loops import Factors, multiply_plainly
from relvm.ops.matmul import batch_start, one_loop_per_axis, two_loops

Shape = tuple[AnyDim, ...]


def _matmul_integer(k: KernelBuilder, inputs, result: Epilogue) -> None:
    """Generate the kernel of `matmul_integer`: one matrix product for each batch element.

    If b is a single matrix and `a` has a single zero point, the batch axes of `a` are first merged with its rows.
    """
    a, b, a_zero, b_zero = inputs
    left = _merged_shape(a.shape, b.shape, a_zero.shape)
    rows, columns, depth = (k.size((dim,)) for dim in (left[-2], b.shape[-1], left[-1]))
    batch = broadcast_dims("matmul_integer", (left[:-2], b.shape[:-2], a_zero.shape[:-2], b_zero.shape[:-2]))
    if k.is_small:

        def plain_operands(counters: tuple[Scalar, ...]) -> tuple[Callable[[Scalar, Scalar], Factors], Counters]:
            at_a, at_b, at_a_zero, at_b_zero = (
                k.let("start", batch_start(counters, batch, shape))
                for shape in (left, b.shape, a_zero.shape, b_zero.shape)
            )

            def factors(i: Scalar, j: Scalar) -> Factors:
                row_zero = a_zero.flat(at_a_zero + i if a_zero.shape and a_zero.shape[-2] != 1 else at_a_zero)
                column_zero = b_zero.flat(at_b_zero + j if b_zero.shape and b_zero.shape[-1] != 1 else at_b_zero)
                zeros = k.let("zero", row_zero.to(I32)), k.let("zero", column_zero.to(I32))
                return lambda p: (
                    a.flat(at_a + i * depth + p).to(I32) - zeros[0],
                    b.flat(at_b + p * columns + j).to(I32) - zeros[1],
                )

            return factors, lambda i, j: (*counters, i, j)

        multiply_plainly(k, batch, (rows, columns, depth), result, plain_operands)
        return
    width, signs = run_time_panel_width(k, b.shape[-1]), choose_signs(a.dtype, b.dtype)

    def operands(counters: tuple[Scalar, ...]) -> tuple[LhsInt8, PackOnTheFly, Counters]:
        sums = k.allocate("sums", I32, (width,))
        at_a, at_b, at_a_zero, at_b_zero = (
            k.let("start", batch_start(counters, batch, shape)) for shape in (left, b.shape, a_zero.shape, b_zero.shape)
        )

        def zero_of_row(i: Scalar) -> Scalar:
            each = a_zero.shape and a_zero.shape[-2] != 1
            return k.let("zero", a_zero.flat(at_a_zero + i if each else at_a_zero).to(I32) + signs.left)

        def zero_of_column(j: Scalar) -> Scalar:
            each = b_zero.shape and b_zero.shape[-1] != 1
            return b_zero.flat(at_b_zero + j if each else at_b_zero).to(I32) + signs.right

        def row_sum(i: Scalar) -> Scalar:
            return sum_row(k, a, at_a + i * depth, depth, signs.left)

        zeros = ZeroPoints(zero_of_row, zero_of_column, row_sum, lambda first, j: sums[j])
        matrix = int8_lhs(k, a, at_a, depth, signs, zeros)
        right = pack_words(k, b, at_b, (depth, columns), width, signs.right, sums)
        return matrix, right, lambda i, j: (*counters, i, j)

    sizes = (rows, columns, word_count(left[-1]))
    gemm(k, batch, sizes, width, result, operands, tile_rows=byte_tile_rows(k))


def _merged_shape(a: Shape, b: Shape, a_zero: Shape) -> Shape:
    """Return the shape of `a` with its batch axes merged with its rows, if possible, otherwise the shape itself.

    Merging is possible if b is a single matrix and `a` has a single zero point.
    """
    return (product(a[:-1]), a[-1]) if len(b) == 2 and not a_zero else a


def _matmul_loops(a: Shape, b: Shape, a_zero: Shape, b_zero: Shape, out: Shape) -> tuple[tuple[int, ...], ...]:
    if len(_merged_shape(a, b, a_zero)) == 2:
        return tuple(range(len(out) - 1)), (len(out) - 1,)
    return one_loop_per_axis(out)


def _numpy_matmul_integer(a: np.ndarray, b: np.ndarray, a_zero: np.ndarray, b_zero: np.ndarray) -> np.ndarray:
    left, right = (x.astype(np.int32) - zero.astype(np.int32) for x, zero in ((a, a_zero), (b, b_zero)))
    return np.matmul(left, right)


@op("matmul_integer", numpy=_numpy_matmul_integer, lower=Contraction(_matmul_integer, _matmul_loops, matrix_operations))
def matmul_integer(a: TensorType, b: TensorType, a_zero: TensorType, b_zero: TensorType) -> TensorType:
    """The matrix product of a - a_zero and b - b_zero, for each element of the batch axes.  The batch axes broadcast.

    a, b: tensors of shapes (..., m, k) and (..., k, n).  The dtype of each is i8 or u8.
    a_zero: the zero points of `a`, of the same dtype: one of rank 0, or one for each row, of shape (..., m, 1).
    b_zero: the zero points of `b`, of the same dtype: one of rank 0, or one for each column, of shape (..., 1, n).
    Result: an i32 tensor of shape (..., m, n).  Sums wrap around.
    Raises RelvmTypeError if an argument has another dtype or rank.  Raises RelvmShapeError if the dimensions k are not
    provably equal, or other dimensions do not broadcast.
    Source: ONNX MatMulInteger-10.

    Examples:

        >>> run(
        ...     "matmul_integer(a, b, a_zero, b_zero)",
        ...     a=np.uint8([[1, 2]]),
        ...     b=np.uint8([[3], [4]]),
        ...     a_zero=np.uint8(1),
        ...     b_zero=np.uint8(0),
        ... )
        [[4]]
    """
    name = "matmul_integer"
    expect_tensor(name, a=a, b=b, a_zero=a_zero, b_zero=b_zero)
    for parameter, type_, zero in (("a", a, a_zero), ("b", b, b_zero)):
        message = "{}: {} has dtype {}, expected i8 or u8"
        expect(type_.dtype in (I8, U8), message, name, parameter, type_.dtype)
        message = "{}: {}_zero has dtype {}, expected the dtype of {}, {}"
        expect(zero.dtype == type_.dtype, message, name, parameter, zero.dtype, parameter, type_.dtype)
        message = "{}: {} has rank {}, expected at least 2"
        expect(type_.rank is None or type_.rank >= 2, message, name, parameter, type_.rank)
        message = "{}: {}_zero has rank {}, expected 0 or at least 2"
        expect(zero.rank != 1, message, name, parameter, zero.rank)
    types = (a, b, a_zero, b_zero)
    if any(type_.shape is None for type_ in types):
        ranks = [type_.rank for type_ in types]
        known = [rank for rank in ranks if rank is not None]
        return TensorType(I32, None, max(known) if len(known) == len(ranks) else None)
    expect_equal_dims(name, "columns of a and rows of b differ", a.known_shape[-1], b.known_shape[-2])
    for parameter, zero, axis, single in (("a", a_zero, -2, -1), ("b", b_zero, -1, -2)):
        if not zero.shape:
            continue
        message = "{}: {}_zero has size {} along axis {}, expected 1"
        expect(zero.shape[single] == 1, message, name, parameter, zero.shape[single], single, error=RelvmShapeError)
        if zero.shape[axis] != 1:
            size = (a if parameter == "a" else b).known_shape[axis]
            expect_equal_dims(name, f"axis {axis} of {parameter}_zero and {parameter} differs", zero.shape[axis], size)
    batch = broadcast_dims(name, [type_.known_shape[:-2] for type_ in types])
    return TensorType(I32, (*batch, a.known_shape[-2], b.known_shape[-1]))


def pack_bytes(b: np.ndarray, b_zero: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pack a matrix for `matmul_integer_packed`.

    Return the packed matrix, the sum of each column, and the zero point of each column.

    If all zero points can be subtracted from the bytes without overflow, the bytes are packed minus their zero points,
    and the array of zero points is empty.  Otherwise, 128 is subtracted from u8 bytes and from their zero points, so
    that the bytes are signed.

    b: an i8 or u8 matrix of shape (depth, columns).
    b_zero: one zero point, or one for each column.
    """
    depth, columns = b.shape
    zeros = np.broadcast_to(b_zero.astype(np.int32).reshape(-1), (columns,))
    fits = (b.min(axis=0) - zeros).min() >= -128 and (b.max(axis=0) - zeros).max() <= 127
    move = zeros if fits else np.full(columns, 128 if b.dtype == np.uint8 else 0)
    filled = np.zeros((-(-depth // 4) * 4, columns), np.int8)
    np.subtract(b.view(np.int8), move.astype(np.int8), out=filled[:depth])  # modulo 256
    sums = filled.sum(axis=0, dtype=np.int32)
    return pack_columns(_combine_rows(filled)), sums, np.zeros(0, np.int32) if fits else (zeros - move).astype(np.int32)


def _combine_rows(filled: np.ndarray) -> np.ndarray:
    """Combine every four rows of an i8 matrix into a row of words.  Return the words as an i32 matrix.

    A word contains four bytes of a column, the first one in the lowest bits.

    filled: the matrix, whose number of rows is a multiple of four.
    """
    parts = filled.view(np.uint8).reshape(-1, 4, filled.shape[1])
    low = parts[:, 0] | parts[:, 1].astype(np.uint16) << 8
    high = parts[:, 2] | parts[:, 3].astype(np.uint16) << 8
    return (low | high.astype(np.uint32) << 16).view(np.int32)


def _unpack_bytes(b: np.ndarray, columns: int) -> np.ndarray:
    """Reverse `pack_bytes`: return, as an i32 matrix, the signed bytes from which `pack_bytes` has computed `b`.

    The matrix has `columns` columns.  Its number of rows is rounded up to a multiple of four, because a word contains
    four bytes.
    """
    words = unpack_columns(b, columns)[:, :, None]
    return words.view(np.int8).swapaxes(1, 2).reshape(-1, columns).astype(np.int32)


def _numpy_packed(
    a: np.ndarray, b: np.ndarray, sums: np.ndarray, a_zero: np.ndarray, b_zero: np.ndarray, *, columns: int
) -> np.ndarray:
    right = _unpack_bytes(b, columns)[: a.shape[-1]] - (b_zero if b_zero.size else np.int32(0))
    return np.matmul(a.astype(np.int32) - a_zero.astype(np.int32), right)


def _packed(k: KernelBuilder, inputs, result: Epilogue, *, columns: int) -> None:
    a, b, sums, a_zero, b_zero = inputs
    depth = a.shape[-1]
    signs = choose_signs(a.dtype, I8)
    zero = k.let("zero", a_zero.flat(Literal(0, I64)).to(I32) + signs.left)
    nothing, deep = Literal(0, I64), k.size((depth,))
    zeros = ZeroPoints(
        left=lambda i: zero,
        right=b_zero.flat if b_zero.shape[0] != 0 else None,
        row_sum=lambda i: sum_row(k, a, i * deep, deep, signs.left),
        column_sum=lambda first, j: sums.flat(first + j),
    )
    sizes = (k.size((product(a.shape[:-1]),)), Literal(columns, I64), word_count(depth))
    left, right = int8_lhs(k, a, nothing, deep, signs, zeros), Prepacked(b, nothing)

    def counters(i: Scalar, j: Scalar) -> tuple[Scalar, ...]:
        return (i, j) if len(a.shape) > 1 else (j,)

    gemm(k, (), sizes, panel_width(columns), result, lambda place: (left, right, counters), tile_rows=byte_tile_rows(k))


@op("matmul_integer_packed", numpy=_numpy_packed, lower=Contraction(_packed, two_loops, matrix_operations))
def matmul_integer_packed(
    a: TensorType, b: TensorType, sums: TensorType, a_zero: TensorType, b_zero: TensorType, *, columns: int
) -> TensorType:
    """The matrix product of a - a_zero and b - b_zero.  b is a constant matrix of signed bytes, packed in advance.

    a: a tensor of dtype i8 or u8 and of shape (..., k).
    b, sums, b_zero: i32 tensors of rank 1, the result of `pack_bytes` for a matrix of shape (k, columns).  b contains
    words of four bytes of a column, in a matrix of shape (k / 4 rounded up, columns) that `pack_columns` has packed.
    sums contains the sum of each column.  b_zero contains the zero point of each column, or is empty if all are 0.
    a_zero: the zero point of `a`, of the same dtype and of rank 0.
    columns: the number of columns of the matrix, at least 1.
    Result: an i32 tensor of shape (..., columns).  Sums wrap around.
    Raises RelvmTypeError if an argument has another dtype or rank.  Raises RelvmShapeError if the shapes do not fit
    together.  Raises RelvmArgumentError if `columns` is below 1.
    Source: the pass pack_weights.
    """
    name = "matmul_integer_packed"
    expect_tensor(name, a=a, b=b, sums=sums, a_zero=a_zero, b_zero=b_zero)
    expect(a.dtype in (I8, U8), "{}: a has dtype {}, expected i8 or u8", name, a.dtype)
    expect(a.rank != 0, "{}: a has rank 0, expected at least 1", name)
    message = "{}: a_zero is {}, expected {} of rank 0"
    expect(a_zero.dtype == a.dtype and a_zero.rank in (None, 0), message, name, a_zero, a.dtype)
    for parameter, type_ in (("b", b), ("sums", sums), ("b_zero", b_zero)):
        known = all(isinstance(dim, int) for dim in type_.shape or ())
        right = type_.dtype == I32 and known and type_.rank in (None, 1)
        expect(right, "{}: {} is {}, expected i32 of rank 1 with known dimensions", name, parameter, type_)
    if None in (b.shape, sums.shape, b_zero.shape):
        return TensorType(I32, None, a.rank)
    groups = packed_row_count(name, b, columns)
    message = "{}: sums has {} elements and b_zero has {}, expected {} and 0 or {}"
    sizes = (sums.known_shape[0], b_zero.known_shape[0])
    right = sizes[0] == columns and sizes[1] in (0, columns)
    expect(right, message, name, *sizes, columns, columns, error=RelvmShapeError)
    if a.shape is None:
        return TensorType(I32, None, a.rank)
    depth = a.shape[-1]
    right = isinstance(depth, int) and -(-depth // 4) == groups
    message = "{}: a has {} columns, but b is packed for {} to {} rows"
    expect(right, message, name, depth, max(0, 4 * groups - 3), 4 * groups, error=RelvmShapeError)
    return TensorType(I32, (*a.shape[:-1], columns))
