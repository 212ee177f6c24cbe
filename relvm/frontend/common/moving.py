"""Padding in its general form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import relvm.ops as ops
from relvm.frontend.common.indexed_kernels import pad_kernel
from relvm.frontend.common.node_context import NodeContext
from relvm.ir.dtypes import BOOL
from relvm.ir.expr import Constant, Expr, Shape, constant
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType

Emit = Callable[[Expr], Expr]


def padded(emit: Emit, x: Expr, value: Expr, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Expr:
    """Return x with padding before, after and between its elements.

    Parameters
    ----------
    emit
        Binds an expression to a variable.
    value
        The element that is added, a tensor of rank 0.
    low, high
        The number of elements to add before and after each axis.  A negative number removes elements.
    interior
        The number of elements to add between two elements of each axis, at least 0.

    Notes
    -----
    Source: StableHLO pad; jax.lax.pad.
    """
    if not any(low) and not any(high) and not any(interior):
        return x
    if isinstance(value, Constant) and _is_representable(value):
        return _padded_with(emit, x, value.value.item(), low, high, interior)
    is_bool = x.known_element_type == BOOL
    inside = emit(ops.broadcast_to(constant(np.array(True)), Shape(x.tensor_type.known_shape)))
    mask = emit(_padded_with(emit, inside, False, low, high, interior))
    moved = emit(_padded_with(emit, x, False if is_bool else 0, low, high, interior))
    return ops.where(mask, moved, value)


def _is_representable(value: Constant) -> bool:
    return isinstance(value.value.item(), bool | int | float)


def _padded_with(
    emit: Emit, x: Expr, value: float, low: Sequence[int], high: Sequence[int], interior: Sequence[int]
) -> Expr:
    """Return x padded with a number."""
    for axis, count in enumerate(interior):
        if count:
            x = emit(dilated(emit, x, axis, count + 1, value))
    if not any(low) and not any(high):
        return x
    return ops.pad(x, pads=(*low, *high), value=value)


def dilated(emit: Emit, x: Expr, axis: int, step: int, value: float = 0) -> Expr:
    """Return x with `step - 1` elements `value` between two elements of an axis."""
    shape = x.tensor_type.known_shape
    size = shape[axis]
    if size in (0, 1) or step == 1:
        return x
    split = emit(ops.expand_dims(x, axes=(axis + 1,)))
    pads = [0] * (2 * len(shape) + 2)
    pads[len(shape) + 1 + axis + 1] = step - 1
    spread = emit(ops.pad(split, pads=tuple(pads), value=value))
    dims: list[AnyDim] = [*shape[:axis], size * step, *shape[axis + 1 :]]
    merged = emit(ops.reshape(spread, Shape(tuple(dims))))
    return ops.slice(merged, begin=(0,), end=(-(step - 1),), axes=(axis,))


def padded_dynamically(
    node: NodeContext,
    x: Expr,
    value: Expr,
    low: Sequence[AnyDim],
    high: Sequence[AnyDim],
    interior: Sequence[AnyDim],
) -> Expr:
    """Return x padded with the element `value`.

    The numbers of added elements can be symbolic.   low, high, interior: as for `padded`.
    """
    sizes = [
        size + before + after + (size - 1) * between
        for size, before, after, between in zip(x.tensor_type.known_shape, low, high, interior, strict=True)
    ]
    result = TensorType(x.known_element_type, tuple(sizes))
    first, between = node.vector(low), node.vector(interior)
    name = node.importer.unique_name("pad")
    kernel = pad_kernel(name, x.tensor_type, value.tensor_type, first.tensor_type, between.tensor_type, result)
    return node.call_kernel(kernel, [x, value, first, between], [result])
