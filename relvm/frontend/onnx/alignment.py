"""Operators of two tensors as they were before opset 7, where attributes said how the second one is broadcast."""

from __future__ import annotations

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmShapeError
from relvm.frontend.onnx.registry import Node
from relvm.ir.expr import Expr


def operands(node: Node) -> list[Expr]:
    """The inputs, so that NumPy's broadcasting does the same.

    The attribute `axis` is that of the first at which the second begins; without it, their last axes are the same.
    """
    inputs, axis, broadcast = node.tensors(), node.attribute("axis"), node.attribute("broadcast", 0)
    if node.opset >= 7 and (broadcast or axis is not None):
        raise RelvmFormatError("broadcasting by attribute, which there is before opset 7 only")
    if axis is None or not broadcast:
        return inputs
    first, second = (node.type(i).rank for i in range(2))
    behind = first - second - (axis + first if axis < 0 else axis)
    if behind < 0:
        raise RelvmShapeError(f"axis {axis} for tensors of rank {first} and {second}")
    expanded = ops.expand_dims(inputs[1], axes=tuple(range(second, second + behind)))
    return [inputs[0], node.emit(expanded) if behind else inputs[1]]
