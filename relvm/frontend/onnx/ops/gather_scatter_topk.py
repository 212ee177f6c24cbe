"""Gather, scatter, top-k and other operators that read or write computed positions."""

from __future__ import annotations

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_sizes import (
    dim_as_operand,
    iota,
    run_time_sizes,
    size_of,
)
from relvm.frontend.onnx.ops.slice import dynamic_slice
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor, shaped_input
from relvm.ir.dtypes import BOOL, I64
from relvm.ir.expr import Expr
from relvm.ir.symbolic import AnyDim, dim_op, is_never_negative, product
from relvm.kernels.lowering_rules import strides_of


@converts("GatherElements")
def _gather_elements(node: OnnxNode) -> Expr:
    return ops.gather_elements(node.tensor(0), node.tensor(1), axis=node.attribute("axis", 0))


@converts("Scatter", "ScatterElements")
def _scatter_elements(node: OnnxNode) -> Expr:
    axis, reduction = node.attribute("axis", 0), node.attribute("reduction", "none")
    return ops.scatter_elements(*(node.tensor(i) for i in range(3)), axis=axis, reduction=reduction)


@converts("GatherND")
def _gather_nd(node: OnnxNode) -> Expr:
    """Gathers the slice at each index tuple.

    Batch dimensions are flattened to one axis, and the index along this axis is prepended to each index tuple.
    """
    batch, x, indices = node.attribute("batch_dims", 0), input_tensor(node, 0), input_tensor(node, 1)
    depth = _depth(indices)
    if batch == 0:
        return ops.gather_nd(x.expr, indices.expr, depth=depth)
    x, dims = shaped_input(node, 0), indices.shape
    if not 0 < batch < min(len(x.shape), len(dims)):
        raise RelvmShapeError(
            f"batch_dims is {batch}, but must be less than the ranks of data ({len(x.shape)}) and indices ({len(dims)})"
        )
    numbers = iota(node, *dims[:batch], *[1] * (len(dims) - batch))
    numbers = numbers.apply(ops.broadcast_to, node.shape([*dims[:-1], 1]))
    indices = numbers.apply(ops.concat, indices.cast(I64), axis=-1)
    flat = x.reshape(product(x.shape[:batch]), *x.shape[batch:])
    return ops.gather_nd(flat.expr, indices.expr, depth=depth + 1)


@converts("ScatterND")
def _scatter_nd(node: OnnxNode) -> Expr:
    x, indices, updates = (input_tensor(node, i) for i in range(3))
    reduction = node.attribute("reduction", "none")
    return ops.scatter_nd(x.expr, indices.expr, updates.expr, depth=_depth(indices), reduction=reduction)


@converts("TensorScatter")
def _tensor_scatter(node: OnnxNode) -> Expr:
    """Writes the update into the tensor along an axis.  Each batch element has its own start position.

    In circular mode, positions past the end wrap around to the start of the axis.
    """
    x, update = shaped_input(node, 0), shaped_input(node, 1)
    mode, rank = node.attribute("mode", "linear"), len(x.shape)
    axis = node.axis(-2, rank)
    if axis == 0:
        raise RelvmShapeError("axis must not be the batch axis 0")
    if mode not in ("linear", "circular"):
        raise RelvmUnsupportedError(f"mode {mode!r} is not supported")
    dims = [1] * rank
    at = iota(node, *dims[:axis], update.shape[axis], *dims[axis + 1 :])
    if node.has(2):
        start = shaped_input(node, 2).cast(I64)
        at = at + start.reshape(*start.shape, *dims[1:])
    if mode == "circular":
        size = dim_as_operand(node, x.shape[axis])
        at = at - at / size * size
    at = at.apply(ops.broadcast_to, node.shape(list(update.shape)))
    return x.apply(ops.scatter_elements, at, update, axis=axis).expr


def _depth(indices: TensorExpr) -> int:
    dims = indices.type.shape
    if not dims or not isinstance(dims[-1], int):
        raise RelvmUnsupportedError(f"indices is {indices.type}, expected a known last dimension")
    return dims[-1]


@converts("TopK")
def _top_k(node: OnnxNode) -> tuple[Expr, Expr]:
    """Returns the k largest or smallest elements along an axis, which are always sorted, even if sorted=0."""
    x = shaped_input(node, 0)
    count = node.attribute("k") if node.opset < 10 else size_of(node, 1, "k")
    axis = node.axis(-1, len(x.shape))
    shape = node.shape([*x.shape[:axis], count, *x.shape[axis + 1 :]])
    found = x.apply(ops.argtopk, shape, axis=axis, largest=bool(node.attribute("largest", 1)))
    return x.apply(ops.gather_elements, found, axis=axis).expr, found.expr


@converts("NonZero")
def _non_zero(node: OnnxNode) -> Expr:
    """Returns a row for each axis of x, and a column for each nonzero element."""
    x = shaped_input(node, 0)
    found, count = find_true(x if x.type.dtype == BOOL else x.apply(ops.not_equal, 0))
    if not x.shape:
        return ops.reshape(found.apply(ops.slice, begin=(0,), end=(0,)).expr, node.shape([0, count]))
    rows = [row.reshape(1, count) for row in unravel_indices(found, x.shape)]
    return rows[0].apply(ops.concat, *rows[1:], axis=0).expr


def unravel_indices(positions: TensorExpr, shape: tuple[AnyDim, ...]) -> list[TensorExpr]:
    """Convert row-major positions in a tensor of shape `shape` to indices: one vector for each axis."""
    indices = []
    for dim, stride in zip(shape, strides_of(shape), strict=True):
        above, size = positions / dim_as_operand(positions.node, stride), dim_as_operand(positions.node, dim)
        indices.append(above - above / size * size)
    return indices


def find_true(cond: TensorExpr) -> tuple[TensorExpr, AnyDim]:
    """Return the row-major positions at which the bool tensor `cond` is true, and the number of positions."""
    (count,) = run_time_sizes(cond.cast(I64).apply(ops.sum))
    return cond.apply(ops.nonzero, cond.node.shape([count])), count


@converts("Compress")
def _compress(node: OnnxNode) -> Expr:
    """Selects the elements along an axis at which the condition is true.

    Without an axis, the input is flattened.  The condition can be shorter than the axis.  If it is longer, the excess
    is ignored.
    """
    node.expect_rank(1, 1, "condition")
    if node.attribute("axis") is None:
        x, axis = shaped_input(node, 0), 0
        x = x.reshape(product(x.shape))
    else:
        x = input_tensor(node, 0)
        axis = node.axis(0, node.type(0).known_rank)
    condition, size = TensorExpr(node, node.known_shape(1)), x.shape[axis]
    room = dim_op("sub", size, condition.shape[0])
    if not is_never_negative(room):
        condition = dynamic_slice(condition, 0, 0, dim_op("min", size, condition.shape[0]))
    found, _ = find_true(condition)
    return ops.gather(x.expr, found.expr, axis=axis)


@converts("Gather")
def _gather(node: OnnxNode) -> Expr:
    return ops.gather(node.tensor(0), node.tensor(1), axis=node.attribute("axis", 0))
