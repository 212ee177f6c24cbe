"""The converter of Slice, with bounds that are constant, symbolic or only known at run time."""

from __future__ import annotations

from collections.abc import Sequence

import relvm.ops as ops
from relvm.frontend.onnx.dynamic_axes import match_axes, scatter_to_axes
from relvm.frontend.onnx.dynamic_sizes import (
    assert_all_false,
    dim_as_operand,
    iota,
    is_known,
    is_symbolic,
    known_count,
    run_time_sizes,
)
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.shape_folding import INT_MAX, slice_range
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor
from relvm.ir.dtypes import I64
from relvm.ir.expr import Constant, Expr
from relvm.ir.symbolic import AnyDim, dim_op
from relvm.ir.value_ranges import range_of

# Exporters write INT_MAX, or a number such as 10**9, for a slice to the end of an axis.  An end of FAR or more means
# the end, because no axis is that long.
FAR = 10**9
_LAST = 2**63 - 1  # an end after every element
_FARTHEST = 2**60  # larger steps are clamped to this, so that sums do not overflow


def _symbolic_slice(node: OnnxNode) -> Expr:
    """Convert a Slice of opset 10 or later with bounds or steps that are symbolic or only known at run time."""
    x = TensorExpr(node, node.known_shape(0))
    if any(node.has(i) and not is_known(node, i) for i in range(1, 5)):
        return _run_time_slice(x).expr
    begins, ends = (node.dims(i, "the Slice bounds") for i in (1, 2))
    axes = node.known_array(3, "the Slice axes").tolist() if node.has(3) else list(range(len(begins)))
    if node.has(4) and any(step != 1 for step in node.dims(4, "the Slice steps")):
        return _run_time_slice(x).expr
    for axis, begin, end in zip(axes, begins, ends, strict=True):
        dim = x.shape[axis]
        start, stop = _normalize_bound(begin, dim), _normalize_bound(end, dim)
        if (start, stop) != (0, dim):
            x = dynamic_slice(x, axis, start, dim_op("max", stop - start, 0))
    return x.expr


def _normalize_bound(bound: AnyDim, dim: AnyDim) -> AnyDim:
    """Convert a bound of a slice to a position from 0 to `dim`, the size of the axis.

    A negative bound counts from the end of the axis.  A bound beyond the axis is clamped.
    """
    possible = range_of(bound, {})
    if possible.low >= FAR:
        return dim
    if possible.high <= -FAR:
        return 0
    from_end = dim_op("max", dim + bound, 0)
    if possible.low >= 0:
        return dim_op("min", bound, dim)
    if possible.high < 0:
        return from_end
    if possible.high == 0:
        return dim_op("min", -bound, 1) * from_end
    is_negative = dim_op("min", dim_op("max", -bound, 0), 1)  # 1 or 0
    return is_negative * from_end + (1 - is_negative) * dim_op("min", dim_op("max", bound, 0), dim)


def dynamic_slice(x: TensorExpr, axis: int, start: AnyDim, size: AnyDim) -> TensorExpr:
    """Return the slice of x with `size` elements along an axis, from position `start` on.

    The size and the position can be symbolic.  All elements of the slice must exist.
    """
    positions = iota(x.node, size)
    if start != 0:
        positions = positions + dim_as_operand(x.node, start)
    return x.apply(ops.gather, positions, axis=axis)


def _run_time_slice(x: TensorExpr) -> TensorExpr:
    """Convert a Slice of x whose bounds, steps or axes are only known at run time."""
    node = x.node
    begins, ends = (input_tensor(node, i).cast(I64) for i in (1, 2))
    axes, steps = (input_tensor(node, i).cast(I64) if node.has(i) else None for i in (3, 4))
    operands = [operand for operand in (axes, begins, ends, steps) if operand is not None]
    known = [operand for operand in operands if operand.type.shape and isinstance(operand.shape[0], int)]
    count = known_count((known or operands)[0], "the Slice axes")
    if axes is not None:
        axes = TensorExpr(node, node.graph.with_shape(axes.expr, (count,)))
    begins, ends = (TensorExpr(node, node.graph.with_shape(bounds.expr, (count,))) for bounds in (begins, ends))
    if steps is not None:
        steps = TensorExpr(node, node.graph.with_shape(steps.expr, (count,)))
    chosen: Sequence[int]
    if axes is None:
        chosen = range(count)
    elif isinstance(axes.expr, Constant):
        chosen = axes.expr.value.tolist()
    else:
        rank = len(x.shape)
        found = match_axes(axes.reshape(count), rank)
        begins, ends = scatter_to_axes(found, begins, 0), scatter_to_axes(found, ends, _LAST)
        steps, chosen = None if steps is None else scatter_to_axes(found, steps, 1), range(rank)
    for i, axis in enumerate(chosen):
        begin, end = (numbers.apply(ops.slice, begin=(i,), end=(i + 1,)) for numbers in (begins, ends))
        step = 1 if steps is None else _clamp_step(steps.apply(ops.slice, begin=(i,), end=(i + 1,)))
        x = _slice_axis(x, axis, begin, end, step)
    return x


def _clamp_step(step: TensorExpr) -> TensorExpr | int:
    """Clamp a step to the range from -_FARTHEST to _FARTHEST, so that sums with it do not overflow.

    Return an int if the step is known at import time.  A step of 0 is an error.
    """
    assert_all_false(step.apply(ops.equal, 0), "steps equal to 0")
    step = step.apply(ops.maximum, -_FARTHEST).apply(ops.minimum, _FARTHEST)
    return int(step.expr.value.item()) if isinstance(step.expr, Constant) else step


def _slice_axis(x: TensorExpr, axis: int, begin: TensorExpr, end: TensorExpr, step: TensorExpr | int) -> TensorExpr:
    """Return every `step`th element of x along `axis`, from `begin` to `end` (exclusive).

    As in ONNX Slice, negative bounds count from the end, and bounds outside the axis are clamped.
    """
    node, size = x.node, dim_as_operand(x.node, x.shape[axis])
    goes_back = step < 0
    if goes_back is not False:  # an end of INT_MAX means the end of the axis in either direction
        is_last = end.apply(ops.equal, _LAST).apply(ops.logical_or, end.apply(ops.equal, 2**31 - 1))
        is_last = is_last if goes_back is True else is_last.apply(ops.logical_and, goes_back)
        end = is_last.where(-_LAST, end)
    if isinstance(step, int):
        before, high = (0, size) if step > 0 else (-1, size - 1)
        start, stop = (
            _normalize_run_time_bound(begin, size, 0, high),
            _normalize_run_time_bound(end, size, before, high),
        )
        apart = stop - start if step > 0 else start - stop
        count = (apart + (abs(step) - 1)) / abs(step)
    else:
        down = (step < 0).cast(I64)
        high = size - down
        start, stop = (
            _normalize_run_time_bound(begin, size, 0, high),
            _normalize_run_time_bound(end, size, 0 - down, high),
        )
        count = (stop - start + step.apply(ops.sign) * -1 + step) / step
    (many,) = run_time_sizes(count.apply(ops.maximum, 0))
    return x.apply(ops.gather, iota(node, many) * step + start, axis=axis)


def _normalize_run_time_bound(
    bound: TensorExpr, size: TensorExpr | int, low: TensorExpr | int, high: TensorExpr | int
) -> TensorExpr:
    """Convert a slice bound to a position at run time: add `size` to a negative bound, then clamp to [low, high]."""
    counted = (bound < 0).where(bound + size, bound)
    return counted.apply(ops.maximum, low).apply(ops.minimum, high)


@converts("Slice")
def _slice(node: OnnxNode) -> Expr:
    if node.opset < 10:
        begin, end = node.attribute("starts"), node.attribute("ends")
        axes, steps = node.attribute("axes"), None
    elif any(not is_known(node, i) or is_symbolic(node, i) for i in range(1, len(node.inputs)) if node.has(i)):
        return _symbolic_slice(node)
    else:
        begin, end = (node.known_array(i, "the Slice bounds").tolist() for i in (1, 2))
        axes = node.known_array(3, "the Slice axes").tolist() if node.has(3) else None
        steps = node.known_array(4, "the Slice steps").tolist() if node.has(4) else None
    axes = range(len(begin)) if axes is None else axes
    steps = [1] * len(begin) if steps is None else steps
    shape = node.type(0).shape
    for i, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        dim = None if shape is None else shape[axis]
        if isinstance(dim, int):
            taken = slice_range(dim, begin[i], end[i], step)
            stop = taken.stop if taken.stop >= 0 else -_LAST
            begin[i], end[i] = (taken.start, stop) if taken else (0, 0)
            if taken == range(dim):
                begin[i], end[i], steps[i] = 0, _LAST, 1
        elif step < 0 and begin[i] < -1:  # an end before the axis means that the first element is included
            return _symbolic_slice(node)
        elif end[i] >= FAR:
            end[i] = -_LAST if step < 0 and end[i] in INT_MAX else _LAST
    if all(bounds == (0, _LAST, 1) for bounds in zip(begin, end, steps, strict=True)):
        return node.tensor(0)
    return ops.slice(node.tensor(0), begin=tuple(begin), end=tuple(end), axes=tuple(axes), steps=tuple(steps))
