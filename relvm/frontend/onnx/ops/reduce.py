"""Reductions, ArgMin and ArgMax."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import relvm.ops as ops
from relvm.frontend.onnx.dynamic_axes import axis_mask, split_axes, unmasked_elements
from relvm.frontend.onnx.dynamic_sizes import dim_as_operand, dims_as_tensor, is_known, known_count, run_time_sizes
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor
from relvm.ir.dtypes import BOOL, F64, U8
from relvm.ir.expr import Expr
from relvm.ir.operator import Operator
from relvm.ir.symbolic import dim_op, product
from relvm.ir.value_ranges import range_of


def _sum(x: TensorExpr, **axes) -> TensorExpr:
    return x.apply(ops.sum, **axes)


def _mean(x: TensorExpr, **axes) -> TensorExpr:
    """Return the mean along axes, where the mean of no elements is 0.

    ONNX does not define the mean of no elements.  ONNX Runtime returns 0, too.
    """
    chosen = range(len(x.shape)) if axes["axes"] is None else axes["axes"]
    count = product(x.shape[axis] for axis in chosen)
    if x.dtype.is_float and range_of(count, {}).low >= 1:
        return x.apply(ops.mean, **axes)
    size = dim_as_operand(x.node, dim_op("max", count, 1))
    return _sum(x, **axes) / (size.cast(x.dtype) if isinstance(size, TensorExpr) else size)


def _of_bools_too(op: Operator) -> Callable[..., TensorExpr]:
    def reduced(x: TensorExpr, **axes) -> TensorExpr:
        if x.type.dtype != BOOL:
            return x.apply(op, **axes)
        return x.cast(U8).apply(op, **axes).cast(BOOL)

    return reduced


def _through_floats(function: Callable[..., TensorExpr]) -> Callable[..., TensorExpr]:
    """Make a reduction of floats accept integers, too: convert the integers to f64, and convert the result back."""

    def reduced(x: TensorExpr, **axes) -> TensorExpr:
        own = x.dtype
        return function(x if own.is_float else x.cast(F64), **axes).cast(own)

    return reduced


def _log_sum_exp(x: TensorExpr, **axes) -> TensorExpr:
    """Return log(sum(exp(x))).

    To avoid an overflow of exp, the largest element is subtracted first and added to the result, unless it is infinite.
    """
    largest = x.apply(ops.max, axes=axes["axes"], keepdims=True)
    infinite = largest.apply(ops.abs).apply(ops.equal, np.inf)
    largest = infinite.where(0, largest)
    total = _sum((x - largest).apply(ops.exp_ftz), **axes).apply(ops.log)
    return total + (largest if axes["keepdims"] else largest.reshape(*total.shape))


# For each reduction, the function, and the first opset in which the axes are an input.
_REDUCTIONS: dict[str, tuple[Callable[..., TensorExpr], int]] = {
    "ReduceSum": (_sum, 13),
    "ReduceMean": (_mean, 18),
    "ReduceMax": (_of_bools_too(ops.max), 18),
    "ReduceMin": (_of_bools_too(ops.min), 18),
    "ReduceProd": (lambda x, **axes: x.apply(ops.prod, **axes), 18),
    "ReduceL1": (lambda x, **axes: _sum(x.apply(ops.abs), **axes), 18),
    "ReduceL2": (_through_floats(lambda x, **axes: _sum(x * x, **axes).apply(ops.sqrt)), 18),
    "ReduceSumSquare": (lambda x, **axes: _sum(x * x, **axes), 18),
    "ReduceLogSum": (_through_floats(lambda x, **axes: _sum(x, **axes).apply(ops.log)), 18),
    "ReduceLogSumExp": (_through_floats(_log_sum_exp), 18),
}


@converts(*_REDUCTIONS)
def _reduce(node: OnnxNode) -> Expr:
    """Reduces the given axes.

    Without axes, it reduces all axes.  If noop_with_empty_axes is set, it instead applies the reduction to each single
    element.
    """
    function, axes_are_input = _REDUCTIONS[node.proto.op_type]
    x = input_tensor(node, 0)
    if node.opset < axes_are_input:
        axes = node.attribute("axes")
    elif node.has(1) and not is_known(node, 1) and node.type(1).shape != (0,):
        return _reduced_at_run_time(node, function).expr
    else:
        if node.has(1):
            node.expect_rank(1, 1, "axes")
        axes = node.known_array(1, "axes").tolist() if node.has(1) and is_known(node, 1) else None
    chosen = tuple(axes) if axes else () if node.attribute("noop_with_empty_axes", 0) else None
    return function(x, axes=chosen, keepdims=bool(node.attribute("keepdims", 1))).expr


def _reduced_at_run_time(node: OnnxNode, function: Callable[..., TensorExpr]) -> TensorExpr:
    """Convert a reduction along axes that are only known at run time.

    If keepdims is 0, the number of axes must be known, because it determines the rank of the result.

    function: the reduction.
    """
    node.expect_rank(1, 1, "axes")
    x, axes = TensorExpr(node, node.known_shape(0)), TensorExpr(node, node.known_shape(1))
    (count,), rank = axes.shape, len(x.shape)
    is_chosen = axis_mask(axes, rank)
    if not isinstance(count, int) and not node.attribute("noop_with_empty_axes", 0):
        is_chosen = dims_as_tensor(node, [count]).reshape().apply(ops.equal, 0).apply(ops.logical_or, is_chosen)
    pairs = split_axes(x, is_chosen)
    result = function(pairs.x, axes=pairs.axes, keepdims=False)
    if node.attribute("keepdims", 1):
        return result
    remaining = rank - known_count(axes, "axes without keepdims")
    return result.reshape(*run_time_sizes(unmasked_elements(pairs.kept_sizes, is_chosen, remaining)))


@converts("ArgMax", "ArgMin")
def _extreme_position(node: OnnxNode) -> Expr:
    """Returns the position of the first extreme element along an axis.

    If select_last_index is set, it returns the position of the last one.
    """
    op = ops.argmax if node.proto.op_type == "ArgMax" else ops.argmin
    axis, keepdims = node.attribute("axis", 0), bool(node.attribute("keepdims", 1))
    x = input_tensor(node, 0)
    if not node.attribute("select_last_index", 0):
        return op(x.expr, axis=axis, keepdims=keepdims)
    found = x.reverse(axis).apply(op, axis=axis, keepdims=keepdims)
    return (dim_as_operand(node, x.shape[axis] - 1) - found).expr
