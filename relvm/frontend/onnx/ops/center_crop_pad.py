"""Conversion of CenterCropPad."""

from __future__ import annotations

import relvm.ops as ops
from relvm.errors import RelvmShapeError
from relvm.frontend.onnx.dynamic_sizes import sizes_of
from relvm.frontend.onnx.ops.slice import dynamic_slice
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, pad_axes, shaped_input
from relvm.ir.expr import Expr
from relvm.ir.symbolic import AnyDim, dim_op


@converts("CenterCropPad")
def _center_crop_pad(node: OnnxNode) -> Expr:
    """Crops each axis to its center, or pads it with zeros on both sides.

    If the number of elements to cut or to add is odd, the extra element is cut off or added at the end.
    """
    x = shaped_input(node, 0)
    rank, sizes = len(x.shape), sizes_of(node, 1, "shape")
    axes = node.attribute("axes", list(range(rank)))
    if len(axes) != len(sizes) or not all(-rank <= axis < rank for axis in axes):
        raise RelvmShapeError(
            f"expected one size for each of the axes {axes} of a tensor of rank {rank}, got {len(sizes)}"
        )
    before: list[AnyDim] = [0] * rank
    after: list[AnyDim] = [0] * rank
    target = list(x.shape)
    for axis, size in zip((axis % rank for axis in axes), sizes, strict=True):
        dim, target[axis] = x.shape[axis], size
        x = _crop(x, axis, dim_op("floordiv", dim_op("max", dim - size, 0), 2), dim_op("min", dim, size))
        added = dim_op("max", size - dim, 0)
        before[axis] = dim_op("floordiv", added, 2)
        after[axis] = added - before[axis]
    if all(isinstance(count, int) for count in (*before, *after)):
        x = x.apply(ops.pad, pads=(*before, *after)) if any((*before, *after)) else x
    else:
        zero = TensorExpr(node, x.operand(0))
        x = pad_axes(x, before, after, lambda x, axis, end: zero)
    return node.graph.with_shape(x.expr, tuple(target))


def _crop(x: TensorExpr, axis: int, start: AnyDim, size: AnyDim) -> TensorExpr:
    if size == x.shape[axis]:
        return x
    if isinstance(start, int) and isinstance(size, int):
        return x.apply(ops.slice, begin=(start,), end=(start + size,), axes=(axis,))
    return dynamic_slice(x, axis, start, size)
