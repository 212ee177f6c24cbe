"""Matrix products."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relvm.ir.dtypes import F32, I64
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, as_scalar, minimum
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim, product
from relvm.ir.type_rules import broadcast_dims, expect_equal_dims, expect_numeric, expect_same_dtype
from relvm.ir.types import TensorType
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.flop_count import matrix_operations
from relvm.kernels.gemm.gemm import (
    ROWS,
    STEP,
    Counters,
    Lhs,
    PackOnTheFly,
    Prepacked,
    RowMajor,
    batch_indices,
    gemm,
    pack_from_column_major,
    pack_from_row_major,
    panel_width,
    run_time_panel_width,
)
from relvm.kernels.gemm.packing import packed_row_count, unpack_columns
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import Contraction, loop_nest, strides_of
from relvm.kernels.plain_loops import Factors, multiply_plainly

Shape = tuple[AnyDim, ...]

_BLOCK = 512  # columns that a product of one row computes together
_FEW = 4  # if `a` has fewer rows, a transposed matrix b is read in place instead of packed


def _matmul(k: KernelBuilder, inputs, result: Epilogue, *, transpose_a: bool, transpose_b: bool) -> None:
    """Generate the kernel of `matmul`, which computes one matrix product for each batch element."""
    a, b = inputs
    left: Shape = a.shape if len(a.shape) > 1 else (1, *a.shape)
    right: Shape = b.shape if len(b.shape) > 1 else (*b.shape, 1)
    if len(b.shape) == 2 and not transpose_a:
        left = (product(left[:-1]), left[-1])
    rows, depth = left[-2:][::-1] if transpose_a else left[-2:]
    columns = right[-2] if transpose_b else right[-1]
    batch = broadcast_dims("matmul", (left[:-2], right[:-2]))
    sizes = rows_, columns_, depth_ = k.size((rows,)), k.size((columns,)), k.size((depth,))
    vectors = (len(a.shape) == 1, len(b.shape) == 1)
    width = run_time_panel_width(k, columns)
    is_row_major = not transpose_b and result.dtype == F32
    is_wide = isinstance(columns, int) and columns > 0 and columns % STEP == 0
    in_one_tile = isinstance(rows, int) and rows <= ROWS and is_wide and is_row_major

    def starts(counters: tuple[Scalar, ...]) -> tuple[Lhs, Scalar]:
        at_a, at_b = (k.let("start", batch_start(counters, batch, shape)) for shape in (left, right))
        one = Literal(1, I64)
        return Lhs(a, at_a, *((one, rows_) if transpose_a else (depth_, one))), at_b

    def indices(counters: tuple[Scalar, ...], i: Scalar, j: Scalar) -> tuple[Scalar, ...]:
        return (*counters, *(() if vectors[0] else (i,)), *(() if vectors[1] else (j,)))

    def operands(counters: tuple[Scalar, ...]) -> tuple[Lhs, RowMajor | PackOnTheFly, Counters]:
        matrix, at_b = starts(counters)
        read: RowMajor | PackOnTheFly
        if in_one_tile:
            read = RowMajor(b, at_b)
        elif transpose_b:
            read = pack_from_column_major(k, b, at_b, depth_)
        else:
            read = pack_from_row_major(k, b, at_b, columns_)
        return matrix, read, lambda i, j: indices(counters, i, j)

    reads_in_place = transpose_b and isinstance(rows, int) and rows < _FEW
    is_narrow = isinstance(columns, int) and columns < STEP
    is_gemv = rows == 1 and is_row_major and not is_narrow
    is_vector = columns == 1 and not transpose_a
    if k.is_small and not (reads_in_place or is_vector):

        def plain_operands(counters: tuple[Scalar, ...]) -> tuple[Callable[[Scalar, Scalar], Factors], Counters]:
            matrix, at_b = starts(counters)

            def factors(i: Scalar, j: Scalar) -> Factors:
                at = (lambda p: j * depth_ + p) if transpose_b else (lambda p: p * columns_ + j)
                return lambda p: (matrix.element(i, p), b.flat(at_b + at(p)))

            return factors, lambda i, j: indices(counters, i, j)

        multiply_plainly(k, batch, sizes, result, plain_operands)
        return
    if is_gemv:
        _gemv(k, batch, (columns_, depth_), starts, b, result, indices)
        return
    if not (reads_in_place or is_vector):
        gemm(k, batch, sizes, width, result, operands)
        return
    with loop_nest(k, list(batch)) as loops:
        counters = tuple(loops)
        matrix, at_b = starts(counters)
        if is_vector:  # the transposed product: the vector, as a row, times the rows of `a`
            vector, turned = Lhs(b, at_b, depth_, Literal(1, I64)), (columns_, rows_, depth_)
            _dot_products(k, turned, vector, matrix.start, a, result, lambda i, j: indices(counters, j, i))
        else:
            _dot_products(k, sizes, matrix, at_b, b, result, lambda i, j: indices(counters, i, j))


def _dot_products(k: KernelBuilder, sizes, left: Lhs, at_b: Scalar, b: Buffer, result: Epilogue, indices) -> None:
    """Generate the dot products of all rows of `left` with all rows of b.

    Both matrices are read sequentially, without packing, which is faster if `left` has few rows.

    sizes: the number of rows of `left`, the number of rows of b, and the length of a row.
    at_b: the flat position in b at which its first row begins.
    indices: a function of i and j that returns the indices in `result` for row i of `left` and row j of b.
    """
    rows, columns, depth = sizes
    with (
        k.parallel(columns, rows * depth) as (first, last),
        k.loop(rows, name="i") as i,
        k.loop(last, start=first, name="j") as j,
    ):
        total = k.variable("total", Literal(0, result.dtype))
        with k.loop(depth, name="p", simd=True, reduce=[("add", total)]) as p:
            k.assign(total, total + left.buffer.flat(left.position(i, p)) * b.flat(at_b + j * depth + p))
        result.store(k, indices(i, j), total)


def _gemv(
    k: KernelBuilder,
    batch: Shape,
    sizes: tuple[Scalar, Scalar],
    starts: Callable[[tuple[Scalar, ...]], tuple[Lhs, Scalar]],
    b: Buffer,
    result: Epilogue,
    indices: Callable[[tuple[Scalar, ...], Scalar, Scalar], tuple[Scalar, ...]],
) -> None:
    """Generate a batch of products of one row and a matrix, which is read in memory order, without packing.

    batch: the batch dimensions.
    sizes: the number of columns of the matrix, and the number of its rows.
    starts(counters): returns the row, and the flat position in b at which the matrix of a batch element begins.
    indices(counters, 0, j): returns the indices in `result` for column j of a batch element.
    """
    columns, depth = sizes
    blocks = k.let("blocks", (columns + (_BLOCK - 1)) / _BLOCK)
    with k.parallel(blocks * k.size(tuple(batch)), depth * _BLOCK) as (first, last):
        sums = k.allocate("sums", result.dtype, (_BLOCK,))
        with k.loop(last, start=first, name="number") as number:
            counters = batch_indices(k, number / blocks, batch)
            row, at_b = starts(counters)
            column = k.let("column", number % blocks * _BLOCK)
            count = k.let("count", minimum(columns - column, _BLOCK))
            k.invoke(
                "rvm_gemv_f32",
                columns=count,
                depth=depth,
                a=Address(row.buffer, row.start),
                b=Address(b, at_b + column),
                b_stride=columns,
                sums=Address(sums, Literal(0, I64)),
                accumulates=0,
            )
            with k.loop(count, name="j", simd=True) as j:
                result.store(k, indices(counters, Literal(0, I64), column + j), sums[j])


def batch_start(counters: Sequence[Scalar], batch: Shape, shape: Shape) -> Scalar:
    """Return the flat position at which the matrix of a batch element starts in an operand.

    counters: the indices of the batch element.
    batch: the broadcast batch dimensions.
    shape: the shape of the operand.  Its last two dimensions are those of the matrix.
    """
    start: Scalar = Literal(0, I64)
    for axis, stride in enumerate(strides_of(shape)[:-2]):
        if shape[axis] != 1:
            start = start + counters[axis + len(batch) - (len(shape) - 2)] * as_scalar(stride, I64)
    return start


def _matmul_loops(
    a: Shape, b: Shape, out: Shape, *, transpose_a: bool, transpose_b: bool
) -> tuple[tuple[int, ...], ...]:
    """Return the loops over the result of `matmul`, each as a tuple of the axes over which it runs.

    Each axis has its own loop, with one exception.  If only `a` has batch axes, and `a` is not transposed, one loop
    runs over the batch axes and the rows.
    """
    if len(b) == 2 and len(a) > 2 and not transpose_a:
        return tuple(range(len(out) - 1)), (len(out) - 1,)
    return one_loop_per_axis(out)


def one_loop_per_axis(*shapes: Shape, **attributes) -> tuple[tuple[int, ...], ...]:
    """Return the loops over the result, each as a tuple of the axes over which it runs: one axis for each loop.

    shapes: the shapes of the inputs, then the shape of the result.
    """
    return tuple((axis,) for axis in range(len(shapes[-1])))


def _numpy_matmul(a: np.ndarray, b: np.ndarray, *, transpose_a: bool, transpose_b: bool) -> np.ndarray:
    return np.matmul(np.swapaxes(a, -1, -2) if transpose_a else a, np.swapaxes(b, -1, -2) if transpose_b else b)


@op("matmul", numpy=_numpy_matmul, lower=Contraction(_matmul, _matmul_loops, matrix_operations))
def matmul(a: TensorType, b: TensorType, *, transpose_a: bool = False, transpose_b: bool = False) -> TensorType:
    """The matrix product over the last two axes, for each element of the batch axes.  The batch axes broadcast.

    a, b: tensors of the same integer or float dtype, of shapes (..., m, k) and (..., k, n), and of rank >= 1.  A 1-d
    `a` is treated as a row and a 1-d `b` as a column.  The result omits that axis.
    transpose_a: whether `a` has shape (..., k, m) instead.
    transpose_b: whether `b` has shape (..., n, k) instead.  A 1-d argument cannot be transposed.
    Result: a tensor of the same dtype and of shape (..., m, n).
    Raises RelvmTypeError if an argument has another dtype or rank 0, or a 1-d argument is transposed.  Raises
    RelvmShapeError if the dimensions k are not provably equal, or other dimensions do not broadcast.
    Source: numpy.matmul, ONNX MatMul-13.

    Examples:

        >>> run("matmul(a, b)", a=[[1.0, 2.0], [3.0, 4.0]], b=[[1.0], [10.0]])
        [[21.]
         [43.]]
    """
    expect_numeric("matmul", a=a, b=b)
    expect_same_dtype("matmul", a=a, b=b)
    for name, type_, transposed in (("a", a, transpose_a), ("b", b, transpose_b)):
        expect(type_.rank != 0, "matmul: {} has rank 0, expected at least 1", name)
        expect(not transposed or type_.rank != 1, "matmul: {} has rank 1 and cannot be transposed", name)
    if a.rank is None or b.rank is None:
        return TensorType(a.dtype)
    if a.shape is None or b.shape is None:
        vectors = (a.rank == 1) + (b.rank == 1)
        return TensorType(a.dtype, None, max(a.rank, b.rank, 2) - vectors)
    left = _matrix_shape(a.shape if a.rank > 1 else (1, *a.shape), transpose_a)
    right = _matrix_shape(b.shape if b.rank > 1 else (*b.shape, 1), transpose_b)
    expect_equal_dims("matmul", "columns of a and rows of b differ", left[-1], right[-2])
    batch = broadcast_dims("matmul", (left[:-2], right[:-2]))
    matrix = (*(left[-2:-1] if a.rank > 1 else ()), *(right[-1:] if b.rank > 1 else ()))
    return TensorType(a.dtype, (*batch, *matrix))


def _matrix_shape(shape: Shape, transposed: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if transposed else shape


def _matmul_packed(k: KernelBuilder, inputs, result: Epilogue, *, columns: int) -> None:
    a, b = inputs
    depth, rows = a.shape[-1], product(a.shape[:-1])
    zero, deep = Literal(0, I64), k.size((depth,))
    left, right = Lhs(a, zero, deep, Literal(1, I64)), Prepacked(b, zero)
    sizes = (k.size((rows,)), Literal(columns, I64), deep)

    def counters(i: Scalar, j: Scalar) -> tuple[Scalar, ...]:
        return (i, j) if len(a.shape) > 1 else (j,)

    gemm(k, (), sizes, panel_width(columns), result, lambda place: (left, right, counters))


def two_loops(*shapes: Shape, **attributes) -> tuple[tuple[int, ...], ...]:
    """Return two loops over the result, each as a tuple of the axes over which it runs.

    The first loop runs over all axes except the last, and the second over the last axis.

    shapes: the shapes of the inputs, then the shape of the result.
    """
    last = len(shapes[-1]) - 1
    return (tuple(range(last)), (last,)) if last else ((0,),)


def _numpy_matmul_packed(a: np.ndarray, b: np.ndarray, *, columns: int) -> np.ndarray:
    return np.matmul(a, unpack_columns(b, columns))


@op("matmul_packed", numpy=_numpy_matmul_packed, lower=Contraction(_matmul_packed, two_loops, matrix_operations))
def matmul_packed(a: TensorType, b: TensorType, *, columns: int) -> TensorType:
    """The product of one or more matrices and a constant matrix.  The constant matrix is packed in panels.  A panel is
    a group of adjacent columns that the kernel reads sequentially.

    a: a tensor of an integer or float dtype, of shape (..., k).
    b: a tensor of the same dtype and of rank 1, the result of `pack_columns` for a matrix of shape (k, columns).
    columns: the number of columns of the constant matrix, at least 1.
    Result: a tensor of the same dtype and of shape (..., columns).
    Raises RelvmTypeError if an argument has another dtype or rank.  Raises RelvmShapeError if the dimensions k are not
    provably equal, or the size of b does not fit.  Raises RelvmArgumentError if `columns` is below 1.
    Source: the pass pack_weights.
    """
    expect_numeric("matmul_packed", a=a, b=b)
    expect_same_dtype("matmul_packed", a=a, b=b)
    expect(a.rank != 0, "matmul_packed: a has rank 0, expected at least 1")
    expect(b.rank in (None, 1), "matmul_packed: b has rank {}, expected 1", b.rank)
    if b.shape is None:
        return TensorType(a.dtype, None, a.rank)
    known = all(isinstance(dim, int) for dim in b.shape)
    expect(known, "matmul_packed: b is {}, expected known dimensions", b)
    depth = packed_row_count("matmul_packed", b, columns)
    if a.shape is None:
        return TensorType(a.dtype, None, a.rank)
    expect_equal_dims("matmul_packed", "columns of a and rows of b differ", a.shape[-1], depth)
    return TensorType(a.dtype, (*a.shape[:-1], columns))
