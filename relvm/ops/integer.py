"""Products of quantised matrices: bytes times bytes, added up in 32 bits."""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmShapeError
from relvm.ir.dims import AnyDim, product
from relvm.ir.dtypes import I8, I32, U8
from relvm.ir.operator import expect, op
from relvm.ir.types import TensorType
from relvm.lir.kernel import Buffer, KernelBuilder, Local, Scalar
from relvm.ops.linear import batch_start
from relvm.ops.lowering import Product
from relvm.ops.panel import Computed, Copied, Counters, matrix_product, panel_width
from relvm.ops.products import Result
from relvm.ops.rules import broadcast_dims, expect_equal_dims, expect_tensor

Shape = tuple[AnyDim, ...]


def _matmul_integer(k: KernelBuilder, inputs, result: Result) -> None:
    """One product for each place of the batch; a batch that only `a` has is just more rows of it."""
    a, b, a_zero, b_zero = inputs
    left = _rows_of(a.shape, b.shape, a_zero.shape)
    rows, columns, depth = (k.size((dim,)) for dim in (left[-2], b.shape[-1], left[-1]))
    batch = broadcast_dims("matmul_integer", (left[:-2], b.shape[:-2], a_zero.shape[:-2], b_zero.shape[:-2]))
    width = panel_width(b.shape[-1])

    def operands(counters: tuple[Scalar, ...]) -> tuple[Computed, Copied, Counters]:
        at_a, at_b, at_a_zero, at_b_zero = (
            k.declare("start", batch_start(counters, batch, shape))
            for shape in (left, b.shape, a_zero.shape, b_zero.shape)
        )

        def element(i: Scalar, p: Scalar) -> Scalar:
            zero = a_zero.flat(at_a_zero + i if a_zero.shape and a_zero.shape[-2] != 1 else at_a_zero)
            return a.flat(at_a + i * depth + p).to(I32) - zero.to(I32)

        def fill(panel: Buffer, first: Local, span: Local, column: Local, count: Local) -> None:
            with k.loop(span, name="p") as p:
                source = k.declare("source", at_b + (first + p) * columns + column)
                with k.loop(count, name="j", simd=True) as j:
                    zero = b_zero.flat(at_b_zero + column + j if b_zero.shape and b_zero.shape[-1] != 1 else at_b_zero)
                    k.store(panel, (p * width + j,), b.flat(source + j).to(I32) - zero.to(I32))
                with k.loop(width, start=count, name="j", simd=True) as j:
                    k.store(panel, (p * width + j,), 0)

        return Computed(element), Copied(fill), lambda i, j: (*counters, i, j)

    matrix_product(k, batch, (rows, columns, depth), width, result, operands)


def _rows_of(a: Shape, b: Shape, a_zero: Shape) -> Shape:
    """The shape of `a` as the kernel sees it."""
    return (product(a[:-1]), a[-1]) if len(b) == 2 and not a_zero else a


def _walked(a: Shape, b: Shape, a_zero: Shape, b_zero: Shape, out: Shape) -> tuple[tuple[int, ...], ...]:
    if len(_rows_of(a, b, a_zero)) == 2:
        return tuple(range(len(out) - 1)), (len(out) - 1,)
    return tuple((axis,) for axis in range(len(out)))


def _numpy_matmul_integer(a: np.ndarray, b: np.ndarray, a_zero: np.ndarray, b_zero: np.ndarray) -> np.ndarray:
    left, right = (x.astype(np.int32) - zero.astype(np.int32) for x, zero in ((a, a_zero), (b, b_zero)))
    return np.matmul(left, right)


@op("matmul_integer", numpy=_numpy_matmul_integer, lower=Product(_matmul_integer, _walked))
def matmul_integer(a: TensorType, b: TensorType, a_zero: TensorType, b_zero: TensorType) -> TensorType:
    """(a - a_zero) times (b - b_zero), for each place of the axes before the last two, which broadcast.

    a, b: i8 or u8 each, rank >= 2, (..., m, k) and (..., k, n).   a_zero: the dtype of a, of rank 0, or a number for
    each row, (..., m, 1).   b_zero: the dtype of b, of rank 0, or a number for each column, (..., 1, n).
    Result: i32, (..., m, n); sums wrap around.
    Raises RelvmTypeError: other dtypes or ranks.  RelvmShapeError: dimensions k that are not provably equal, others
    that do not broadcast.   Source: ONNX MatMulInteger-10.
    """
    name = "matmul_integer"
    expect_tensor(name, a=a, b=b, a_zero=a_zero, b_zero=b_zero)
    for parameter, type_, zero in (("a", a, a_zero), ("b", b, b_zero)):
        message = "{}: {} has dtype {}, expected i8 or u8"
        expect(type_.dtype in (I8, U8), message, name, parameter, type_.dtype)
        message = "{}: {}_zero has dtype {}, expected that of {}, {}"
        expect(zero.dtype == type_.dtype, message, name, parameter, zero.dtype, parameter, type_.dtype)
        message = "{}: {} has rank {}, expected at least 2"
        expect(type_.rank is None or type_.rank >= 2, message, name, parameter, type_.rank)
        message = "{}: {}_zero has rank {}, expected 0, or at least 2"
        expect(zero.rank != 1, message, name, parameter, zero.rank)
    types = (a, b, a_zero, b_zero)
    if any(type_.shape is None for type_ in types):
        ranks = [type_.rank for type_ in types]
        return TensorType(I32, None, None if None in ranks else max(ranks))
    expect_equal_dims(name, "columns of a and rows of b differ", a.shape[-1], b.shape[-2])
    for parameter, zero, axis, single in (("a", a_zero, -2, -1), ("b", b_zero, -1, -2)):
        if not zero.shape:
            continue
        message = "{}: {}_zero has {} numbers along axis {}, expected 1"
        expect(zero.shape[single] == 1, message, name, parameter, zero.shape[single], single, error=RelvmShapeError)
        if zero.shape[axis] != 1:
            size = (a if parameter == "a" else b).shape[axis]
            expect_equal_dims(name, f"axis {axis} of {parameter}_zero and {parameter} differs", zero.shape[axis], size)
    batch = broadcast_dims(name, [type_.shape[:-2] for type_ in types])
    return TensorType(I32, (*batch, a.shape[-2], b.shape[-1]))
