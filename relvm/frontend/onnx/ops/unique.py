"""Unique: the distinct elements, or the distinct slices along an axis."""

from __future__ import annotations

import relvm.ops as ops
from relvm.frontend.common.runs import begins_of_runs
from relvm.frontend.onnx.dynamic_sizes import dims_as_tensor, iota
from relvm.frontend.onnx.ops.gather_scatter_topk import find_true
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, shaped_input
from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr
from relvm.ir.symbolic import AnyDim, product


@converts("Unique")
def _unique(node: OnnxNode) -> tuple[Expr, ...]:
    """Finds distinct rows by sorting, so that equal rows are adjacent.

    The sort is stable, so the first row of each run of equal rows is the one that comes first in the input.
    """
    x = shaped_input(node, 0)
    if node.attribute("axis") is None:
        x = x.reshape(product(x.shape))
    rank = len(x.shape)
    axis = node.axis(0, rank)
    size, others = x.shape[axis], (*x.shape[:axis], *x.shape[axis + 1 :])
    front = x.apply(ops.transpose, perm=(axis, *(i for i in range(rank) if i != axis))) if axis else x
    rows = front.reshape(size, product(others))
    order = rows.apply(ops.lexsort_rows)
    starts, run, count = _find_runs(node, rows.apply(ops.gather, order, axis=0))
    firsts = order.apply(ops.gather, starts, axis=0)
    ends = starts.apply(ops.concat, dims_as_tensor(node, [size]), axis=0)
    counts = ends.apply(ops.gather, iota(node, count) + 1, axis=0) - starts
    run_of = order.apply(ops.scatter_elements, order, run, axis=0)
    if not node.attribute("sorted", 1):
        by_place = firsts.apply(ops.argtopk, node.shape([count]), axis=0, largest=False)
        rank_of = by_place.apply(ops.scatter_elements, by_place, iota(node, count), axis=0)
        firsts, counts = (each.apply(ops.gather, by_place, axis=0) for each in (firsts, counts))
        run_of = rank_of.apply(ops.gather, run_of, axis=0)
    return x.apply(ops.gather, firsts, axis=axis).expr, firsts.expr, run_of.expr, counts.expr


def _find_runs(node: OnnxNode, rows: TensorExpr) -> tuple[TensorExpr, TensorExpr, AnyDim]:
    """Find the runs of equal rows in a sorted matrix.  NaN equals NaN.

    Return the index of the first row of each run, the index of the run that each row belongs to, and the number of
    runs.

    rows: the matrix.
    """
    begins = TensorExpr(node, begins_of_runs(node.emit, rows.expr, nan_equals_nan=True))
    starts, count = find_true(begins)
    return starts, begins.cast(I64).apply(ops.cumsum, axis=0) - 1, count
