"""Grouped matrix products, with which a mixture of experts multiplies each row by the matrix of its expert."""

from __future__ import annotations

from relvm.frontend.common.kernel_parts import buffer, clamped, index_of, larger, loops, size
from relvm.ir.dtypes import I64
from relvm.ir.kernel_def import KernelDef
from relvm.ir.loop_ir import Buffer, Literal, select
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder


def grouped_product_kernel(name: str, x: TensorType, matrices: TensorType, ends: TensorType) -> KernelDef:
    """Return the kernel that multiplies consecutive groups of rows by one matrix each.

    Its result has the shape (m, n).  Rows behind the last group are 0.

    x: the type of the rows, of shape (m, k).
    matrices: the type of the matrices, one for each group, of shape (groups, k, n) and the dtype of x.
    ends: the type of a vector of integers: for each group, the index of the row behind its last one.
    """
    k = KernelBuilder()
    rows, factors, limits = buffer("x", x), buffer("matrices", matrices), buffer("ends", ends)
    height, depth, width = rows.shape[0], factors.shape[1], factors.shape[2]
    out = Buffer("out", rows.dtype, (height, width), True)
    zero = Literal(0, I64)
    with loops(k, (height, width)) as at:
        k.store(out, at, Literal(0.0, rows.dtype))
    with k.loop(size(limits.shape[0]), name="group") as group:
        before = k.let("before", clamped(index_of(limits[(larger(group - 1, zero),)]), size(height)))
        start = k.let("start", select(group.eq(zero), zero, before))
        end = k.let("end", clamped(index_of(limits[(group,)]), size(height)))
        with k.loop(end, start=start, name="row") as row, k.loop(size(depth), name="inner") as inner:
            factor = k.let("factor", rows[(row, inner)])
            with k.loop(size(width), name="column") as column:
                k.store(out, (row, column), out[(row, column)] + factor * factors[(group, inner, column)])
    return KernelDef(name, (rows, factors, limits), (out,), k.finish())
