"""Reshape and related operators, including shapes that are only known at run time."""

from __future__ import annotations

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.broadcasting import common_dim, require_broadcast
from relvm.frontend.onnx.dynamic_axes import axis_mask
from relvm.frontend.onnx.dynamic_sizes import (
    assert_all_false,
    dims_as_tensor,
    is_known,
    known_count,
    run_time_sizes,
)
from relvm.frontend.onnx.ops.concat_split_tile import repeat_axes
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor
from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr
from relvm.ir.symbolic import AnyDim, difference, dim_op, exact_quotient, product
from relvm.ir.types import TensorType
from relvm.ir.value_ranges import range_of


@converts("Reshape")
def _reshape(node: OnnxNode) -> Expr:
    if node.opset >= 5 and not is_known(node, 1):
        return _reshaped_at_run_time(node).expr
    x = node.graph.known_shape(node.tensor(0))
    target = list(node.attribute("shape")) if node.opset < 5 else node.dims(1, "shape")
    return ops.reshape(x, node.shape(_resolve_shape(node, x.tensor_type, target, bool(node.attribute("allowzero", 0)))))


def _resolve_shape(node: OnnxNode, type_: TensorType, target: list[AnyDim], allow_zero: bool) -> list[AnyDim]:
    """Replace the special sizes in `target`, the new shape that a Reshape specifies.

    A 0 stands for the dimension of the input at the same index, and -1 for the size that keeps the number of elements.
    A symbolic size is taken as it is.  If the size turns out at run time to be 0 or -1, and the special meaning of this
    number would require another size, an error is raised.

    type_: the type of the input.   allow_zero: whether 0 is an ordinary size.
    """
    if type_.shape is None:
        raise RelvmUnsupportedError(f"the shape of the input must be known, got {type_}")
    dims: list[AnyDim] = []
    for i, dim in enumerate(target):
        copies = isinstance(dim, int) and dim == 0 and not allow_zero
        if copies and i >= len(type_.shape):
            raise RelvmShapeError(f"shape {target} has a 0 at index {i}, but the input has rank {len(type_.shape)}")
        dims.append(type_.shape[i] if copies else dim)
        if isinstance(dim, int) or range_of(dim, {}).low > 0 or (i < len(type_.shape) and dim == type_.shape[i]):
            continue
        if allow_zero or i >= len(type_.shape):
            node.require_at_most(int(not allow_zero), dim, f"size {i} must be at least {{}}, got {{}}")
        else:
            node.require_at_most(0, dim, f"size {i} must be at least {{}}, got {{}}")
            copied = (1 - dim_op("min", dim_op("max", dim, 0), 1)) * type_.shape[i]
            node.require_equal(copied, 0, f"size {i} is 0, which means {{}} (copied from the input), not {{}}")
    inferred = [i for i, dim in enumerate(dims) if isinstance(dim, int) and dim == -1]
    if not inferred:
        return dims
    if len(inferred) > 1:
        raise RelvmShapeError(f"shape {target} has more than one -1")
    others = product(dim for i, dim in enumerate(dims) if i != inferred[0])
    total = product(type_.shape)
    if not isinstance(others, int):
        node.require_at_most(
            1, others, "-1 cannot be inferred: the product of the other sizes must be at least {}, got {}"
        )
    left = exact_quotient(total, others)
    if left is None and others != 0:
        left = total // others
    if left is None:
        raise RelvmShapeError(f"-1 in shape {target} cannot be inferred for an input of type {type_}")
    dims[inferred[0]] = left
    return dims


def _reshaped_at_run_time(node: OnnxNode) -> TensorExpr:
    """Convert a Reshape whose target shape is only known at run time."""
    x, target = TensorExpr(node, node.known_shape(0)), input_tensor(node, 1).cast(I64)
    rank, count = len(x.shape), known_count(target, "shape")
    if not node.attribute("allowzero", 0):
        copies = target.apply(ops.equal, 0)
        if count > rank:
            assert_all_false(copies.apply(ops.slice, begin=(rank,), end=(count,)), "zeros beyond the rank of the input")
        target = copies.where(dims_as_tensor(node, (*x.shape, *[0] * count)[:count]), target)
    is_inferred = target.apply(ops.equal, -1)
    assert_all_false(is_inferred.cast(I64).apply(ops.sum) > 1, "repeated -1")
    others = is_inferred.where(1, target).apply(ops.prod)
    assert_all_false(
        others.apply(ops.equal, 0).apply(ops.logical_and, is_inferred),
        "sizes of -1 beside a 0, which cannot be inferred",
    )
    inferred = dims_as_tensor(node, [product(x.shape)]) / others.apply(ops.maximum, 1)
    return x.reshape(*run_time_sizes(is_inferred.where(inferred, target)))


@converts("Flatten")
def _flatten(node: OnnxNode) -> Expr:
    x = TensorExpr(node, node.known_shape(0))
    shape, axis = x.shape, node.axis(1, len(x.shape), end=1)
    return ops.reshape(x.expr, node.shape([product(shape[:axis]), product(shape[axis:])]))


@converts("Unsqueeze")
def _unsqueeze(node: OnnxNode) -> Expr:
    if node.opset >= 13 and not is_known(node, 1):
        return _unsqueezed_at_run_time(node).expr
    axes = node.attribute("axes") if node.opset < 13 else node.known_array(1, "axes").reshape(-1).tolist()
    return ops.expand_dims(node.tensor(0), axes=tuple(axes))


def _unsqueezed_at_run_time(node: OnnxNode) -> TensorExpr:
    """Convert an Unsqueeze with axes that are only known at run time.

    The new axes have size 1, and the other axes have the sizes of the input.
    """
    x, axes = TensorExpr(node, node.known_shape(0)), input_tensor(node, 1)
    count = known_count(axes, "axes")
    rank = len(x.shape) + count
    new = axis_mask(axes.reshape(count), rank)
    if count == rank:
        return x.reshape(*[1] * rank)
    source = new.apply(ops.logical_not).cast(I64).apply(ops.cumsum, axis=0) - 1
    own = dims_as_tensor(node, x.shape).apply(ops.gather, source, axis=0)
    return x.reshape(*run_time_sizes(new.where(1, own)))


@converts("Expand")
def _expand(node: OnnxNode) -> Expr:
    """Broadcasts the input to its common shape with the target shape.

    A 1 in the target shape therefore keeps the dimension of the input.
    """
    if not is_known(node, 1):
        return _expanded_at_run_time(node).expr
    x, target = node.known_shape(0), node.dims(1, "shape")
    shape = x.tensor_type.known_shape
    rank = max(len(shape), len(target))
    own = [1] * (rank - len(shape)) + list(shape)
    asked = [1] * (rank - len(target)) + target
    dims = [_expanded_dim(have, want) for have, want in zip(own, asked, strict=True)]
    for have, want, dim in zip(own, asked, dims, strict=True):
        require_broadcast(node, have, dim)
        require_broadcast(node, want, dim)
    is_known_to_fit = all(have == 1 or difference(have, dim) == 0 for have, dim in zip(own, dims, strict=True))
    return (ops.broadcast_to if is_known_to_fit else ops.expand)(x, node.shape(dims))


def _expanded_dim(have: AnyDim, want: AnyDim) -> AnyDim:
    found = common_dim(have, want)
    return (have if want == 1 else want) if found is None else found


def _expanded_at_run_time(node: OnnxNode) -> TensorExpr:
    """Convert an Expand whose target shape is only known at run time."""
    x, target = TensorExpr(node, node.known_shape(0)), input_tensor(node, 1).cast(I64)
    count = known_count(target, "shape")
    rank = max(len(x.shape), count)
    x = x.reshape(*[1] * (rank - len(x.shape)), *x.shape)
    if count < rank:
        target = dims_as_tensor(node, [1] * (rank - count)).apply(ops.concat, target.reshape(count), axis=0)
    target, own = target.reshape(rank), dims_as_tensor(node, x.shape)
    single = own.apply(ops.equal, 1)
    fits = single.apply(ops.logical_or, target.apply(ops.equal, 1)).apply(ops.logical_or, target.apply(ops.equal, own))
    assert_all_false(fits.apply(ops.logical_not), "sizes that cannot be broadcast")
    repeats = run_time_sizes(single.where(target, 1))
    known = [isinstance(dim, int) and dim != 1 for dim in x.shape]
    return repeat_axes(x, [1 if once else repeat for once, repeat in zip(known, repeats, strict=True)])


@converts("Transpose")
def _transpose(node: OnnxNode) -> Expr:
    perm = node.attribute("perm")
    perm = reversed(range(node.type(0).known_rank)) if perm is None else perm
    return ops.transpose(node.tensor(0), perm=tuple(perm))
