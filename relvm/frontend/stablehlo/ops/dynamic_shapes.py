"""Operations whose shapes are only known at run time."""

from __future__ import annotations

from collections.abc import Sequence

import relvm.ops as ops
from relvm.errors import RelvmFormatError, counted
from relvm.frontend.common.indexed_kernels import slice_kernel
from relvm.frontend.common.moving import padded_dynamically
from relvm.frontend.stablehlo.ops.shapes import broadcast_in_dim, iota_along
from relvm.frontend.stablehlo.registry import Node, converts, refuses
from relvm.ir.expr import DimValue, Expr
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType


@converts("get_dimension_size")
def _get_dimension_size(node: Node) -> Expr:
    axis, shape = node.integer("dimension"), node.shape()
    if not 0 <= axis < len(shape):
        raise RelvmFormatError(f"dimension is {axis}, expected 0 to {len(shape) - 1}")
    size = shape[axis]
    dtype = node.result_dtype()
    if isinstance(size, int):
        return node.number(size, dtype)
    return ops.to_tensor(DimValue(size), dtype=dtype.name)


@converts("dynamic_reshape")
def _dynamic_reshape(node: Node) -> Expr:
    return node.reshaped(node.operands[0], _declared_sizes(node, node.sizes(1)))


def _declared_sizes(node: Node, sizes: Sequence[AnyDim]) -> tuple[AnyDim, ...]:
    """Return the sizes of the result: those that its type declares, and otherwise `sizes`."""
    declared = node.declared().shape
    if declared is None or len(declared) != len(sizes):
        raise RelvmFormatError(f"the result has type {node.declared()}, expected rank {len(sizes)}")
    return tuple(size if dim is None else dim for dim, size in zip(declared, sizes, strict=True))


@converts("dynamic_broadcast_in_dim")
def _dynamic_broadcast_in_dim(node: Node) -> Expr:
    shape = _declared_sizes(node, node.sizes(1))
    axes = node.integers("broadcast_dimensions")
    sizes = node.shape()
    known = node.integers("known_nonexpanding_dimensions")
    if len(axes) != len(sizes) or not all(0 <= axis < len(shape) for axis in axes):
        raise RelvmFormatError(
            f"broadcast_dimensions is {list(axes)}, expected {counted(len(sizes), 'axis')} below {len(shape)}"
        )
    same = [
        shape[axis] if position in known else size
        for position, (size, axis) in enumerate(zip(sizes, axes, strict=True))
    ]
    x = node.importer.with_shape(node.operands[0], same)
    return broadcast_in_dim(node, x, axes, shape)


@converts("dynamic_iota")
def _dynamic_iota(node: Node) -> Expr:
    return iota_along(node, node.integer("iota_dimension"), _declared_sizes(node, node.sizes(0)))


@converts("real_dynamic_slice")
def _real_dynamic_slice(node: Node) -> Expr:
    node.expect_operands(4)
    rank = len(node.shape())
    starts, limits, strides = (node.sizes(i) for i in (1, 2, 3))
    if not len(starts) == len(limits) == len(strides) == rank:
        raise RelvmFormatError(f"expected {rank} starts, limits and strides")
    sizes = [
        limit - start if stride == 1 else (limit - start + stride - 1) // stride
        for start, limit, stride in zip(starts, limits, strides, strict=True)
    ]
    result = TensorType(node.dtype(), _declared_sizes(node, sizes))
    first, step = node.vector(starts), node.vector(strides)
    kernel = slice_kernel(node.importer.unique_name("slice"), node.type(), first.tensor_type, step.tensor_type, result)
    return node.call_kernel(kernel, [node.operands[0], first, step], [result])


@converts("dynamic_pad")
def _dynamic_pad(node: Node) -> Expr:
    """Pads by numbers of elements that can be known only at run time.  These must not be negative."""
    node.expect_operands(5)
    x, value = node.operands[:2]
    low, high, interior = (node.sizes(i) for i in (2, 3, 4))
    if not len(low) == len(high) == len(interior) == len(node.shape()):
        raise RelvmFormatError(f"expected {counted(len(node.shape()), 'number')} of elements before, after and between")
    return node.importer.with_shape(
        padded_dynamically(node, x, value, low, high, interior),
        _declared_sizes(
            node,
            [
                size + before + after + (size - 1) * between
                for size, before, after, between in zip(node.shape(), low, high, interior, strict=True)
            ],
        ),
    )


refuses("Shape arguments cannot be set; only the static part of a type is supported", "set_dimension_size")
