"""Operations that move elements: shapes, slices, padding, concatenation."""

from __future__ import annotations

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError
from relvm.frontend.common.moving import padded
from relvm.frontend.stablehlo.program import Elements
from relvm.frontend.stablehlo.registry import Node, converts
from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr, Shape
from relvm.ir.symbolic import AnyDim


@converts("constant")
def _constant(node: Node) -> Expr:
    value = node.attribute("value")
    if not isinstance(value, Elements):
        raise RelvmFormatError(f"the value is {value!r}, expected dense elements")
    return node.importer.constant(value)


@converts("iota")
def _iota(node: Node) -> Expr:
    shape = node.static_shape()
    return iota_along(node, node.integer("iota_dimension"), shape)


def iota_along(node: Node, axis: int, shape: tuple[AnyDim, ...]) -> Expr:
    """Return a tensor in which each element is equal to its own position along an axis."""
    if not 0 <= axis < len(shape):
        raise RelvmFormatError(f"iota_dimension is {axis}, expected 0 to {len(shape) - 1}")
    numbers = node.emit(ops.iota(Shape((shape[axis],))))
    dtype = node.result_dtype()
    if dtype != I64:
        numbers = node.emit(ops.cast(numbers, to=dtype.name))
    ones: list[AnyDim] = [1] * len(shape)
    ones[axis] = shape[axis]
    return node.broadcast(node.reshaped(numbers, ones), shape)


@converts("reshape")
def _reshape(node: Node) -> Expr:
    declared = node.declared().shape
    if declared is not None and None not in declared:
        return node.reshaped(node.operands[0], node.static_shape())
    return node.operands[0]


@converts("broadcast_in_dim")
def _broadcast_in_dim(node: Node) -> Expr:
    return broadcast_in_dim(node, node.operands[0], node.integers("broadcast_dimensions"), node.static_shape())


def broadcast_in_dim(node: Node, x: Expr, axes: tuple[int, ...], shape: tuple[AnyDim, ...]) -> Expr:
    """Return x broadcast to `shape`.   axes: for each axis of x, the axis of the result."""
    sizes = x.tensor_type.known_shape
    if len(axes) != len(sizes) or len(set(axes)) != len(axes) or not all(0 <= axis < len(shape) for axis in axes):
        raise RelvmFormatError(
            f"broadcast_dimensions is {list(axes)}, expected {len(sizes)} distinct axes below {len(shape)}"
        )
    for size, axis in zip(sizes, axes, strict=True):
        if isinstance(size, int) and isinstance(shape[axis], int) and size not in (1, shape[axis]):
            raise RelvmFormatError(f"an axis of size {size} cannot be broadcast to the size {shape[axis]}")
    order = tuple(int(i) for i in np.argsort(axes))
    if order != tuple(range(len(order))):
        x = node.emit(ops.transpose(x, perm=order))
    ones: list[AnyDim] = [1] * len(shape)
    for position, axis in enumerate(sorted(axes)):
        ones[axis] = sizes[order[position]]
    x = node.reshaped(x, ones)
    may_differ = any(size not in (1, other) for size, other in zip(ones, shape, strict=True))
    return node.emit(ops.expand(x, Shape(shape))) if may_differ else node.broadcast(x, shape)


@converts("broadcast")
def _broadcast(node: Node) -> Expr:
    """Adds axes in front.  StableHLO has replaced this operation by `broadcast_in_dim`."""
    sizes = node.integers("broadcast_sizes")
    return node.broadcast(node.operands[0], (*sizes, *node.shape()))


@converts("transpose")
def _transpose(node: Node) -> Expr:
    return ops.transpose(node.operands[0], perm=node.integers("permutation", len(node.shape())))


@converts("reverse")
def _reverse(node: Node) -> Expr:
    axes = node.integers("dimensions")
    if not axes:
        return node.operands[0]
    return reversed_along(node.operands[0], axes)


def reversed_along(x: Expr, axes: tuple[int, ...]) -> Expr:
    """Return x with its elements in reverse order along some axes."""
    count = len(axes)
    return ops.slice(x, begin=(-1,) * count, end=(-(1 << 31),) * count, axes=axes, steps=(-1,) * count)


@converts("slice")
def _slice(node: Node) -> Expr:
    shape = node.shape()
    starts, limits = (node.integers(name, len(shape)) for name in ("start_indices", "limit_indices"))
    strides = node.integers("strides", len(shape), 1)
    for axis, (start, limit, stride) in enumerate(zip(starts, limits, strides, strict=True)):
        size = shape[axis]
        if not 0 <= start <= limit or (isinstance(size, int) and limit > size) or stride < 1:
            raise RelvmFormatError(f"the range {start}:{limit}:{stride} is not inside axis {axis} of size {size}")
    if not shape:
        return node.operands[0]
    return ops.slice(node.operands[0], begin=starts, end=limits, steps=strides)


@converts("pad")
def _pad(node: Node) -> Expr:
    """Supports interior padding, and negative padding, which removes elements."""
    rank = len(node.shape())
    low, high, interior = (
        node.integers(name, rank) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    if any(size < 0 for size in interior):
        raise RelvmFormatError(f"interior_padding is {list(interior)}, expected no negative number")
    return padded(node.importer.emit, node.operands[0], node.operands[1], low, high, interior)


@converts("concatenate")
def _concatenate(node: Node) -> Expr:
    axis, rank = node.integer("dimension"), len(node.shape())
    if not 0 <= axis < rank:
        raise RelvmFormatError(f"dimension is {axis}, expected 0 to {rank - 1}")
    operands = list(node.operands)
    shapes = [node.shape(i) for i in range(len(operands))]
    for other in range(rank):
        if other != axis:
            size = next((shape[other] for shape in shapes if isinstance(shape[other], int)), shapes[0][other])
            shapes = [(*shape[:other], size, *shape[other + 1 :]) for shape in shapes]
    operands = [node.importer.with_shape(x, shape) for x, shape in zip(operands, shapes, strict=True)]
    return operands[0] if len(operands) == 1 else ops.concat(*operands, axis=axis)
