"""Gathers, and slices at positions that are known at run time."""

from __future__ import annotations

from relvm.errors import RelvmFormatError
from relvm.frontend.common.indexed_kernels import (
    GatherDimensions,
    dynamic_slice_kernel,
    dynamic_update_slice_kernel,
    gather_kernel,
    gather_shape,
)
from relvm.frontend.stablehlo.registry import Node, converts
from relvm.ir.expr import Expr
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType


@converts("gather", "dynamic_gather")
def _gather(node: Node) -> Expr | tuple[Expr, ...]:
    """Gathers slices at positions that are clamped so that each slice is inside the operand."""
    x, indices = node.operands[:2]
    dims = GatherDimensions(
        node.integers("offset_dims"),
        node.integers("collapsed_slice_dims"),
        node.integers("operand_batching_dims"),
        node.integers("start_indices_batching_dims"),
        node.integers("start_index_map"),
        node.integer("index_vector_dim", 0),
    )
    sizes: tuple[AnyDim, ...]
    if node.operation.name == "stablehlo.dynamic_gather":
        node.expect_operands(3)
        sizes = node.sizes(2)
    else:
        sizes = node.integers("slice_sizes", len(node.shape()))
    shape = gather_shape(x.tensor_type, indices.tensor_type, dims, sizes)
    result = TensorType(node.dtype(), shape)
    name = node.importer.unique_name("gather")
    kernel = gather_kernel(name, x.tensor_type, indices.tensor_type, result, dims, sizes)
    return node.call_kernel(kernel, [x, indices], [result])


def _positions(node: Node, first: int) -> list[Expr]:
    """Return the positions of a slice: tensors of rank 0, one for each axis of the first operand."""
    positions = node.operands[first:]
    rank = len(node.shape())
    if len(positions) != rank:
        raise RelvmFormatError(f"expected {rank} positions, got {len(positions)}")
    for i in range(rank):
        if node.shape(first + i) != ():
            raise RelvmFormatError(f"position {i} has type {node.type(first + i)}, expected rank 0")
    return positions


@converts("dynamic_slice")
def _dynamic_slice(node: Node) -> Expr | tuple[Expr, ...]:
    """The position is clamped so that the slice is inside the operand."""
    x, positions = node.operands[0], _positions(node, 1)
    sizes = node.integers("slice_sizes", len(positions))
    for axis, (length, extent) in enumerate(zip(sizes, node.shape(), strict=True)):
        if length < 0 or (isinstance(extent, int) and length > extent):
            raise RelvmFormatError(f"slice_sizes[{axis}] is {length}, expected 0 to {extent}")
    result = TensorType(node.dtype(), sizes)
    types = [position.tensor_type for position in positions]
    kernel = dynamic_slice_kernel(node.importer.unique_name("dynamic_slice"), x.tensor_type, types, result)
    return node.call_kernel(kernel, [x, *positions], [result])


@converts("dynamic_update_slice")
def _dynamic_update_slice(node: Node) -> Expr | tuple[Expr, ...]:
    """The position is clamped so that the slice is inside the operand."""
    x, update, positions = node.operands[0], node.operands[1], _positions(node, 2)
    for axis, (length, extent) in enumerate(zip(node.shape(1), node.shape(), strict=True)):
        if isinstance(length, int) and isinstance(extent, int) and length > extent:
            raise RelvmFormatError(f"the update has size {length} along axis {axis}, expected at most {extent}")
    types = [position.tensor_type for position in positions]
    name = node.importer.unique_name("dynamic_update_slice")
    kernel = dynamic_update_slice_kernel(name, x.tensor_type, update.tensor_type, types)
    return node.call_kernel(kernel, [x, update, *positions], [x.tensor_type])
