"""Converters of Concat, Split and Tile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.dynamic_sizes import (
    is_known,
    sizes_of,
)
from relvm.frontend.onnx.ops.slice import dynamic_slice
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.frontend.onnx.values import HostValue
from relvm.ir.expr import Expr
from relvm.ir.symbolic import AnyDim, dim_op, exact_quotient, known_sizes
from relvm.ir.type_rules import expect_equal_dims


@converts("Concat")
def _concat(node: OnnxNode) -> Expr:
    return ops.concat(*node.tensors(), axis=node.attribute("axis"))


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
            raise RelvmShapeError(
                f"split has {counted(len(given), 'element')}, expected {count}, the number of outputs"
            )
        return list(given)
    wanted = node.attribute("num_outputs", count)
    if wanted != count:
        raise RelvmShapeError(f"num_outputs is {wanted}, but the node has {counted(count, 'output')}")
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


@converts("Tile")
def _tile(node: OnnxNode) -> Expr:
    x = TensorExpr(node, node.known_shape(0))
    repeats = sizes_of(node, 1, "repeats", len(x.shape))
    if len(repeats) != len(x.shape):
        raise RelvmShapeError(
            f"repeats has {counted(len(repeats), 'element')}, expected {len(x.shape)}, the rank of the input"
        )
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
