"""Converters of operators that make tensors from positions: Range, Trilu, EyeLike, OneHot."""

from __future__ import annotations

import math

import relvm.ops as ops
from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.frontend.onnx.dynamic_sizes import (
    assert_all_false,
    dim_as_operand,
    iota,
    is_known,
    run_time_sizes,
    scalar,
    size_of,
)
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, default_element, input_tensor, shaped_input
from relvm.ir.dtypes import F64, I64, U64
from relvm.ir.expr import Constant, Expr, constant
from relvm.ir.symbolic import AnyDim, dim_op


@converts("Range")
def _range(node: OnnxNode) -> Expr:
    """Computes start + i * delta.  The number of elements need not be known before run time."""
    start, delta, dtype = scalar(node, 0), scalar(node, 2), node.type(0).known_dtype
    if isinstance(delta.expr, Constant) and not delta.expr.value:
        raise RelvmArgumentError("delta must not be 0")
    assert_all_false(delta.apply(ops.equal, 0), "deltas equal to 0")
    count = _range_count(node)
    return (iota(node, count).cast(dtype) * delta + start).expr


def _range_count(node: OnnxNode) -> AnyDim:
    """Return the number of elements of a Range node's result."""
    start, limit, delta = (scalar(node, i) for i in range(3))
    if start.dtype.is_float:
        known = [float(value.expr.value) for value in (start, limit, delta) if isinstance(value.expr, Constant)]
        if len(known) == 3:
            return max(0, math.ceil((known[1] - known[0]) / known[2]))
        start, limit, delta = (value.cast(F64) for value in (start, limit, delta))
        count = ((limit - start) / delta).apply(ops.ceil)
        assert_all_false((count < 2.0**62).apply(ops.logical_not), "infinite or undefined counts")
        return run_time_sizes(count.apply(ops.maximum, 0).cast(I64))[0]
    if all(is_known(node, i) for i in range(3)):
        (first,), (last,), (step,) = (node.dims(i, "a Range bound") for i in range(3))
        if isinstance(step, int):
            apart = last - first if step > 0 else first - last
            return dim_op("max", dim_op("floordiv", apart + (abs(step) - 1), abs(step)), 0)
    start, limit, delta = (value.cast(I64) for value in (start, limit, delta))
    up = delta > 0
    distance, stride = (up.where(a, b).cast(U64) for a, b in ((limit - start, start - limit), (delta, 0 - delta)))
    count = ((distance - 1) / stride + 1).cast(I64)
    return run_time_sizes(up.where(limit > start, start > limit).where(count, 0))[0]


@converts("Trilu")
def _trilu(node: OnnxNode) -> Expr:
    x = shaped_input(node, 0)
    if len(x.shape) < 2:
        raise RelvmShapeError(f"input has rank {len(x.shape)}, expected at least 2")
    diagonal = scalar(node, 1) if node.has(1) else 0
    compare = ops.greater_equal if node.attribute("upper", 1) else ops.less_equal
    return _diagonals(node, *x.shape[-2:]).apply(compare, diagonal).where(x, constant(default_element(x.dtype))).expr


def _diagonals(node: OnnxNode, rows: AnyDim, columns: AnyDim) -> TensorExpr:
    """Return a matrix in which each element is its column number minus its row number."""
    return iota(node, columns) - iota(node, rows, 1)


@converts("EyeLike")
def _eye_like(node: OnnxNode) -> Expr:
    shape = shaped_input(node, 0).shape
    if len(shape) != 2:
        raise RelvmShapeError(f"input has rank {len(shape)}, expected 2")
    wanted = node.attribute("dtype")
    dtype = node.type(0).known_dtype if wanted is None else node.graph.element_type(wanted, "EyeLike")
    return _diagonals(node, *shape).apply(ops.equal, node.attribute("k", 0)).cast(dtype).expr


@converts("OneHot")
def _one_hot(node: OnnxNode) -> Expr:
    """Returns a row for each index, with the on value at the index and the off value elsewhere.

    For an index outside [-depth, depth), the row contains only the off value.
    """
    indices, values = input_tensor(node, 0).cast(I64), input_tensor(node, 2)
    depth = size_of(node, 1, "depth")
    rank = node.type(0).known_rank + 1
    axis = node.axis(-1, rank)
    indices = (indices < 0).where(indices + dim_as_operand(node, depth), indices)
    indices = indices.apply(ops.expand_dims, axes=(axis,))
    classes = iota(node, depth).reshape(depth, *[1] * (rank - 1 - axis))
    off, on = (values.apply(ops.slice, begin=(i,), end=(i + 1,)).reshape() for i in range(2))
    return indices.apply(ops.equal, classes).where(on, off).expr
