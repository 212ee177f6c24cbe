"""Gaussian elimination."""

from __future__ import annotations

import numpy as np

from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Literal, Operation, as_scalar, select
from relvm.ir.operator import expect, op
from relvm.ir.type_rules import expect_equal_dims, expect_float
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel, parallel_loop_nest


def _numpy_row_echelon(x: np.ndarray) -> np.ndarray:
    result = x.copy()
    for matrix in result.reshape(-1, *x.shape[-2:]) if x.size else ():
        for i in range(len(matrix)):
            pivot = i + int(np.argmax(np.abs(matrix[i:, i])))
            if pivot != i:
                matrix[[i, pivot]] = matrix[pivot], -matrix[i]
            factors = matrix[i + 1 :, i] / matrix[i, i] if matrix[i, i] != 0 else 0 * matrix[i + 1 :, i]
            matrix[i + 1 :] -= factors[:, None] * matrix[i]
            matrix[i + 1 :, i] = 0
    return result


def _row_echelon(k: KernelBuilder, inputs, outputs) -> None:
    """Generate the kernel of `row_echelon`: Gaussian elimination in place in the result.

    Multiples of the pivot row are subtracted from the rows below it.
    """
    (x,), (out,) = inputs, outputs
    size, dtype = as_scalar(x.shape[-1], I64), x.dtype
    zero = Literal(0.0, dtype)
    with parallel_loop_nest(k, [k.size(x.shape[:-2])], size * size * size) as (matrix,):
        start = k.let("start", matrix * size * size)
        with k.loop(size * size, name="i", simd=True) as i:
            k.store(out, (start + i,), x.flat(start + i))
        with k.loop(size, name="i") as i:
            pivot, largest = k.variable("pivot", i), k.variable("largest", Literal(-1.0, dtype))
            with k.loop(size, start=i, name="row") as row:
                found = k.let("found", Operation("abs", (out.flat(start + row * size + i),), dtype))
                k.assign(pivot, select(found > largest, row, pivot))
                k.assign(largest, select(found > largest, found, largest))
            upper, lower = k.let("upper", start + i * size), k.let("lower", start + pivot * size)
            with k.branch(pivot.ne(i)), k.loop(size, name="j") as j:
                held = k.let("held", out.flat(upper + j))
                k.store(out, (upper + j,), out.flat(lower + j))
                k.store(out, (lower + j,), -held)
            divisor = k.let("divisor", out.flat(upper + i))
            with k.loop(size, start=i + 1, name="row") as row:
                target = k.let("target", start + row * size)
                factor = k.let("factor", select(divisor.ne(0), out.flat(target + i) / divisor, zero))
                with k.loop(size, start=i + 1, name="j", simd=True) as j:
                    k.store(out, (target + j,), out.flat(target + j) - factor * out.flat(upper + j))
                k.store(out, (target + i,), zero)


@op("row_echelon", numpy=_numpy_row_echelon, lower=CustomKernel(_row_echelon))
def row_echelon(x: TensorType) -> TensorType:
    """For each matrix, an upper triangular matrix with the same determinant.

    x: a tensor of shape (..., n, n) and of a float dtype.
    Result: a tensor of the same type as x.  In each column, the pivot is the element with the largest absolute value on
    or below the diagonal.  If it is below the diagonal, its row is exchanged with the row of the diagonal, and one of
    the two rows is negated, which preserves the determinant.  Then multiples of the pivot's row are subtracted from the
    rows below.
    Raises RelvmTypeError if x has another dtype or a rank below 2.  Raises RelvmShapeError if the matrices are not
    square.
    Source: Gaussian elimination with partial pivoting, as in ONNX Det-22.

    Examples:

        >>> run("row_echelon(x)", x=[[1.0, 2.0], [2.0, 6.0]])
        [[2. 6.]
         [0. 1.]]
    """
    expect_float("row_echelon", x=x)
    expect(x.rank is None or x.rank >= 2, "row_echelon: x has rank {}, expected at least 2", x.rank)
    if x.shape is not None:
        expect_equal_dims("row_echelon", "the matrices must be square", *x.shape[-2:])
    return x
