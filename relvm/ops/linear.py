"""Matrix products."""

from __future__ import annotations

import numpy as np

from relvm.ir.dims import AnyDim, product
from relvm.ir.operator import expect, op
from relvm.ir.types import TensorType
from relvm.lir.kernel import Buffer, KernelBuilder, Literal, Scalar
from relvm.ops.lowering import Axis, Loops, flat_index, loop_nest, merge, strides_of
from relvm.ops.panel import ROWS, fill_from_columns, fill_from_rows, matrix_product
from relvm.ops.rules import broadcast_dims, expect_equal_dims, expect_numeric, expect_same_dtype

Shape = tuple[AnyDim, ...]


def _matmul(k: KernelBuilder, inputs, outputs, *, transpose_a: bool, transpose_b: bool) -> None:
    """One product for each place of the batch; a batch that only `a` has is just more rows of it."""
    (a, b), (out,) = inputs, outputs
    left: Shape = a.shape if len(a.shape) > 1 else (1, *a.shape)
    right: Shape = b.shape if len(b.shape) > 1 else (*b.shape, 1)
    if len(right) == 2 and not transpose_a:
        left = (product(left[:-1]), left[-1])
    rows, depth = left[-2:][::-1] if transpose_a else left[-2:]
    columns = right[-2] if transpose_b else right[-1]
    batch = broadcast_dims("matmul", (left[:-2], right[:-2]))
    axes = _batch_axes(batch, (left, right, (*batch, rows, columns)))
    rows_, columns_, depth_ = (k.size((size,)) for size in (rows, columns, depth))
    with loop_nest(k, [axis.extent for axis in axes]) as counters:
        at_a, at_b, at_out = (k.declare("start", flat_index(axes, operand, counters)) for operand in range(3))

        def element(i: Scalar, p: Scalar) -> Scalar:
            return a.flat(at_a + (p * rows_ + i if transpose_a else i * depth_ + p))

        if transpose_b and isinstance(rows, int) and rows < ROWS:
            _dot_products(k, (rows_, columns_, depth_), element, b, at_b, out, at_out)
        else:
            fill = fill_from_columns(k, b, at_b, depth_) if transpose_b else fill_from_rows(k, b, at_b, columns_)
            matrix_product(k, (rows_, columns_, depth_), element, fill, out, at_out)


def _dot_products(k: KernelBuilder, sizes, element, b: Buffer, at_b: Scalar, out: Buffer, at_out: Scalar) -> None:
    """Few rows times the rows of b: both are read in order as they are."""
    rows, columns, depth = sizes
    with k.loop(rows, name="i") as i, k.loop(columns, name="j") as j:
        total = k.declare("total", Literal(0, out.dtype))
        with k.loop(depth, name="p", simd=True, reduce=[("+", total)]) as p:
            k.assign(total, total + element(i, p) * b.flat(at_b + j * depth + p))
        k.store(out, (at_out + i * columns + j,), total)


def _batch_axes(batch: Shape, shapes: tuple[Shape, ...]) -> list[Axis]:
    """The loops over the batch, with each shape's stride; the last two dimensions of a shape are the matrices'."""
    axes = []
    for position, extent in enumerate(batch):
        strides = []
        for shape in shapes:
            axis = position - len(batch) + len(shape) - 2
            broadcast = axis < 0 or shape[axis] == 1
            strides.append(0 if broadcast else strides_of(shape)[axis])
        axes.append(Axis(extent, tuple(strides)))
    return merge(axes)


def _numpy_matmul(a: np.ndarray, b: np.ndarray, *, transpose_a: bool, transpose_b: bool) -> np.ndarray:
    return np.matmul(np.swapaxes(a, -1, -2) if transpose_a else a, np.swapaxes(b, -1, -2) if transpose_b else b)


@op("matmul", numpy=_numpy_matmul, lower=Loops(_matmul))
def matmul(a: TensorType, b: TensorType, *, transpose_a: bool = False, transpose_b: bool = False) -> TensorType:
    """The matrix product of the last two axes, for each place of the others, which broadcast.

    a, b: the same integer or float dtype, rank >= 1, (..., m, k) and (..., k, n).  A 1-d `a` is a row, a 1-d `b` a
    column, and that axis is left out of the result.   transpose_a, transpose_b: the matrices are given as (..., k,
    m), (..., n, k); not for 1-d.   Result: that dtype, (..., m, n).
    Raises RelvmTypeError: other dtypes, rank 0, a transposed vector.  RelvmShapeError: dimensions k that are not
    provably equal, or others that do not broadcast.   Source: numpy.matmul, ONNX MatMul-13.
    """
    expect_numeric("matmul", a=a, b=b)
    expect_same_dtype("matmul", a=a, b=b)
    for name, type_, transposed in (("a", a, transpose_a), ("b", b, transpose_b)):
        expect(type_.rank != 0, "matmul: {} has rank 0, expected at least 1", name)
        expect(not transposed or type_.rank != 1, "matmul: {} has rank 1 and is not transposed", name)
    if a.rank is None or b.rank is None:
        return TensorType(a.dtype)
    if a.shape is None or b.shape is None:
        vectors = (a.rank == 1) + (b.rank == 1)
        return TensorType(a.dtype, None, max(a.rank, b.rank, 2) - vectors)
    left = _matrix(a.shape if a.rank > 1 else (1, *a.shape), transpose_a)
    right = _matrix(b.shape if b.rank > 1 else (*b.shape, 1), transpose_b)
    expect_equal_dims("matmul", "columns of a and rows of b differ", left[-1], right[-2])
    batch = broadcast_dims("matmul", (left[:-2], right[:-2]))
    matrix = (*(left[-2:-1] if a.rank > 1 else ()), *(right[-1:] if b.rank > 1 else ()))
    return TensorType(a.dtype, (*batch, *matrix))


def _matrix(shape: Shape, transposed: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if transposed else shape
