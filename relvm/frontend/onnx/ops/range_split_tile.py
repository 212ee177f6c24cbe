"""Tensors made from sizes and positions: Range, Split, Tile, masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmArgumentError, RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_sizes import (
    assert_all_false,
    dim_as_operand,
    iota,
    is_known,
    run_time_sizes,
    scalar,
    size_of,
    sizes_of,
)
from relvm.frontend.onnx.ops.slice import dynamic_slice
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, default_element, input_tensor
from relvm.frontend.onnx.values import HostValue
from relvm.ir.dtypes import F64, I64, U64
from relvm.ir.expr import Constant, Expr, constant
from relvm.ir.symbolic import AnyDim, dim_op, exact_quotient, known_sizes, product
from relvm.ir.type_rules import expect_equal_dims


def shaped_input(node: OnnxNode, index: int) -> TensorExpr:
    """Return input `index`, a tensor of known rank, with a name for each size.

    If the sizes are only known at run time, each size becomes a new dimension variable.
    """
    return TensorExpr(node, node.known_shape(index))


@converts("Size")
def _size(node: OnnxNode) -> Any:
    value = node.inputs[0]
    shape = value.array.shape if isinstance(value, HostValue) else node.tensor(0).tensor_type.shape
    if shape is None:
        return ops.prod(node.emit(ops.shape_to_tensor(node.emit(ops.shape_of(node.tensor(0))))))
    return HostValue(np.asarray(product(shape), dtype=object), I64)


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


@converts("Tile")
def _tile(node: OnnxNode) -> Expr:
    x = TensorExpr(node, node.known_shape(0))
    repeats = sizes_of(node, 1, "repeats", len(x.shape))
    if len(repeats) != len(x.shape):
        raise RelvmShapeError(f"repeats has {len(repeats)} elements, expected {len(x.shape)}, the rank of the input")
    return repeat_axes(x, repeats).expr


def repeat_axes(x: TensorExpr, repeats: Sequence[AnyDim]) -> TensorExpr:
    """Repeat x along each axis.

    To repeat an axis, insert a new axis before it, broadcast the new axis to the number of repeats, and merge both
    axes.

    repeats: the number of repeats for each axis.
    """
    apart: list[AnyDim] = []
    wide: list[AnyDim] = []
    for dim, repeat in zip(x.shape, repeats, strict=True):
        new = repeat != 1
        apart += [1, dim] if new else [dim]
        wide += [repeat, dim] if new else [dim]
    if wide == list(x.shape):
        return x
    many = x.reshape(*apart).apply(ops.broadcast_to, x.node.shape(wide))
    return many.reshape(*(dim * repeat for dim, repeat in zip(x.shape, repeats, strict=True)))


@converts("Split")
def _split(node: OnnxNode) -> tuple:
    """Splits an axis into parts of given sizes, or into equal parts.

    Since opset 18, num_outputs is the number of equal parts, and the last part can be shorter.
    """
    value = node.inputs[0]
    if isinstance(value, HostValue):
        return _split_on_host(node, value)
    x = TensorExpr(node, node.known_shape(0))
    shape = x.shape
    axis = node.axis(0, len(shape))
    sizes = _split_sizes(node, shape[axis], len(node.proto.output))
    if node.has(1) and not is_known(node, 1):
        x = TensorExpr(node, node.graph.with_shape(x.expr, (*shape[:axis], sum(sizes), *shape[axis + 1 :])))
    else:
        expect_equal_dims("Split", _PARTS_DIFFER, shape[axis], sum(sizes))
    start: AnyDim = 0
    results = []
    for size in sizes:
        if isinstance(start, int) and isinstance(size, int):
            results.append(x.apply(ops.slice, begin=(start,), end=(start + size,), axes=(axis,)).expr)
        else:
            results.append(dynamic_slice(x, axis, start, size).expr)
        start = start + size
    return tuple(results)


_PARTS_DIFFER = "size of the axis and sum of the part sizes differ"


def _split_on_host(node: OnnxNode, value: HostValue) -> tuple[HostValue, ...]:
    shape = value.array.shape
    axis = node.axis(0, len(shape))
    sizes = _split_sizes(node, shape[axis], len(node.proto.output))
    expect_equal_dims("Split", _PARTS_DIFFER, shape[axis], sum(sizes))
    known = known_sizes(sizes)
    if known is None:
        raise RelvmUnsupportedError(f"the part sizes must be known, got {', '.join(map(str, sizes))}")
    ends = np.cumsum(known[:-1], dtype=np.int64)
    return tuple(HostValue(array, value.dtype) for array in np.split(value.array, ends, axis))


def _split_sizes(node: OnnxNode, size: AnyDim, count: int) -> list[AnyDim]:
    """Return the sizes of the parts into which a Split node splits an axis.

    size: the size of the axis.   count: the number of parts.
    """
    if node.opset < 13:
        given = node.attribute("split")
    else:
        given = sizes_of(node, 1, "split", count) if node.has(1) else None
    if given is not None:
        if len(given) != count:
            raise RelvmShapeError(f"split has {len(given)} elements, expected {count}, the number of outputs")
        return list(given)
    wanted = node.attribute("num_outputs", count)
    if wanted != count:
        raise RelvmShapeError(f"num_outputs is {wanted}, but the node has {count} outputs")
    equal = exact_quotient(size, count)
    if equal is not None:
        return [equal] * count
    if node.opset < 18:
        if isinstance(size, int):
            raise RelvmShapeError(f"cannot split an axis of size {size} into {count} equal parts")
        return [size // count] * count  # the caller checks that there is no remainder
    longest = dim_op("floordiv", size + (count - 1), count)
    message = (
        f"{count} parts, of which only the last may be shorter, need at least {{}} elements, but the axis has {{}}"
    )
    node.require_at_most(longest * (count - 1), size, message)
    return [longest] * (count - 1) + [size - longest * (count - 1)]


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
