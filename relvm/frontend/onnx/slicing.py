"""Slices whose bounds are not numbers: made of symbolic dimensions, or only known when the program runs."""

from __future__ import annotations

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx.registry import Node
from relvm.frontend.onnx.sizes import is_known, number_of, places, run_time_sizes
from relvm.frontend.onnx.terms import Term, term
from relvm.ir.bounds import range_of
from relvm.ir.dims import AnyDim, dim_op
from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr

# Exporters write INT_MAX, or a number such as 10**9, where a slice goes to the end of an axis: an end of FAR or more is
# taken to mean that, since no axis is so long.
FAR = 10**9


def symbolic_slice(node: Node) -> Expr:
    """A Slice of opset 10 or later, some bounds being no numbers: each axis is gathered."""
    x = term(node, 0)
    if x.type.shape is None:
        raise RelvmUnsupportedError(f"symbolic bounds of a tensor of type {x.type}: its shape must be known")
    count = _count(node)
    axes = node.known(3, "the axes of a Slice").tolist() if node.has(3) else list(range(count))
    steps = node.known(4, "the steps of a Slice").tolist() if node.has(4) else [1] * count
    if not is_known(node, 1) or not is_known(node, 2) or any(step != 1 for step in steps):
        return _run_time_slice(x, axes, steps).expr
    begins, ends = (node.dims(i, "the bounds of a Slice") for i in (1, 2))
    for axis, begin, end in zip(axes, begins, ends, strict=True):
        dim = x.shape[axis]
        start, stop = _position(begin, dim), _position(end, dim)
        if (start, stop) != (0, dim):
            x = part(x, axis, start, dim_op("max", stop - start, 0))
    return x.expr


def _count(node: Node) -> int:
    """How many axes there are bounds for."""
    shape = node.type(1).shape
    if not shape or not isinstance(shape[0], int):
        raise RelvmUnsupportedError(f"bounds of type {node.type(1)}: how many there are must be known")
    return shape[0]


def _position(bound: AnyDim, dim: AnyDim) -> AnyDim:
    """Where a bound is on an axis of that size: counted from the end where negative, and inside."""
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


def part(x: Term, axis: int, start: AnyDim, size: AnyDim) -> Term:
    """`size` elements along the axis from position `start` on, which must be there."""
    positions = places(x.node, size)
    if start != 0:
        positions = positions + number_of(x.node, start)
    return x.apply(ops.gather, positions, axis=axis)


def _run_time_slice(x: Term, axes: list[int], steps: list[int]) -> Term:
    """The bounds are brought inside of each axis, and its elements counted, when the program runs."""
    node = x.node
    begins, ends = (Term(node, node.tensor(i)).cast(I64) for i in (1, 2))
    for i, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        if step == 0:
            raise RelvmUnsupportedError("a step of 0")
        size = number_of(node, x.shape[axis])
        before, high = (0, size) if step > 0 else (-1, size - 1)  # a negative step may stop before the first element
        begin, end = (bounds.apply(ops.slice, begin=(i,), end=(i + 1,)) for bounds in (begins, ends))
        start, stop = _inside(begin, size, 0, high), _inside(end, size, before, high)
        apart = stop - start if step > 0 else start - stop
        (count,) = run_time_sizes(((apart + (abs(step) - 1)) / abs(step)).apply(ops.maximum, 0))
        x = x.apply(ops.gather, places(node, count) * step + start, axis=axis)
    return x


def _inside(bound: Term, size: Term | int, low: int, high: Term | int) -> Term:
    counted = (bound < 0).chosen(bound + size, bound)
    return counted.apply(ops.maximum, low).apply(ops.minimum, high)
