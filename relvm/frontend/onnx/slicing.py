"""Slices whose bounds are made of symbolic dimensions."""

from __future__ import annotations

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx.registry import Node
from relvm.frontend.onnx.terms import Term, term
from relvm.ir.bounds import range_of
from relvm.ir.dims import AnyDim, dim_op
from relvm.ir.expr import Expr


def symbolic_slice(node: Node) -> Expr:
    """A Slice of opset 10 or later with steps of 1, some bounds being symbolic: each axis is gathered."""
    begins, ends = (node.dims(i, "the bounds of a Slice") for i in (1, 2))
    axes = node.known(3, "the axes of a Slice").tolist() if node.has(3) else list(range(len(begins)))
    if node.has(4) and any(step != 1 for step in node.known(4, "the steps of a Slice")):
        raise RelvmUnsupportedError("steps other than 1 with symbolic bounds")
    x = term(node, 0)
    if x.type.shape is None:
        raise RelvmUnsupportedError(f"symbolic bounds of a tensor of type {x.type}: its shape must be known")
    for axis, begin, end in zip(axes, begins, ends, strict=True):
        dim = x.shape[axis]
        start, stop = _position(begin, dim), _position(end, dim)
        if (start, stop) != (0, dim):
            x = part(x, axis, start, dim_op("max", stop - start, 0))
    return x.expr


def _position(bound: AnyDim, dim: AnyDim) -> AnyDim:
    """Where a bound is on an axis of that size: counted from the end where negative, and inside."""
    low = bound if isinstance(bound, int) else range_of(bound, {}).low
    if low >= 0:
        return dim_op("min", bound, dim)
    if isinstance(bound, int):
        return dim_op("max", dim + bound, 0)
    raise RelvmUnsupportedError(f"a bound {bound}, which may be negative")


def part(x: Term, axis: int, start: AnyDim, size: AnyDim) -> Term:
    """`size` elements along the axis from position `start` on, which must be there."""
    node = x.node
    places = Term(node, node.emit(ops.iota(node.shape([size]))))
    if start != 0:
        offset = start if isinstance(start, int) else Term(node, node.emit(ops.shape_to_tensor(node.shape([start]))))
        places = places + offset
    return x.apply(ops.gather, places, axis=axis)
