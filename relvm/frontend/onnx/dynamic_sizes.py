"""Sizes read from the elements of a tensor: integers, symbolic dimensions, or values known only at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.registry import OnnxNode
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.frontend.onnx.values import SIZE_LIMIT, HostValue
from relvm.ir.dtypes import I64
from relvm.ir.expr import Constant, Expr, MatchCast, constant
from relvm.ir.symbolic import AnyDim, dim_var
from relvm.ir.types import ShapeType


def is_known(node: OnnxNode, index: int) -> bool:
    """Return whether each element of input `index` is known at import time.

    A known element is a number, or an expression of symbolic dimensions.
    """
    return isinstance(node.inputs[index], Constant | HostValue)


def is_symbolic(node: OnnxNode, index: int) -> bool:
    """Return whether input `index` is known at import time and some elements are symbolic dimensions."""
    value = node.inputs[index]
    return isinstance(value, HostValue) and value.is_symbolic


def sizes_of(node: OnnxNode, index: int, what: str, count: int | None = None) -> list[AnyDim]:
    """Return the elements of input `index` of a node as a list of sizes.

    If the elements are not known before run time, each size in the list is a new dimension variable.

    what: a description of the input for error messages.
    count: the number of elements that the node requires, or None if any number is valid.

    Raises
    ------
    RelvmUnsupportedError
        The number of elements is not known at import time, or exceeds SIZE_LIMIT.
    """
    if is_known(node, index):
        return node.dims(index, what)
    tensor = TensorExpr(node, node.tensor(index))
    if count is not None:
        tensor = TensorExpr(node, node.graph.with_shape(tensor.expr, (count,)))
    known_count(tensor, what)
    return list(run_time_sizes(tensor))


def size_of(node: OnnxNode, index: int, what: str) -> AnyDim:
    """Return the only element of input `index` as a size.

    If the element is only known at run time, the size is a new dimension variable.

    what: a description of the input for error messages.
    """
    if not is_known(node, index):
        return run_time_sizes(scalar(node, index))[0]
    sizes = node.dims(index, what)
    if len(sizes) != 1:
        raise RelvmShapeError(f"{what}: expected one number, got {len(sizes)}")
    return sizes[0]


def run_time_sizes(tensor: TensorExpr) -> tuple[AnyDim, ...]:
    """Use the elements of a tensor of rank 0 or 1 as sizes: return a new dimension variable for each element.

    For a constant, return the elements as integers instead.  A negative element raises an error at run time.
    """
    node, count = tensor.node, tensor.shape[0] if tensor.shape else 1
    assert isinstance(count, int)
    shape = tensor.cast(I64).reshape(count).apply(ops.tensor_to_shape)
    if isinstance(shape.expr, Constant):
        return tuple(shape.expr.value.tolist())
    sizes = tuple(dim_var(f"size{i}") for i in range(count))
    node.graph.add_own_dims(sizes)
    node.graph.bindings.append(MatchCast(node.graph.var("sizes", ShapeType(sizes)), shape.expr, node.here))
    return sizes


def assert_all_false(is_wrong: TensorExpr, what: str) -> None:
    """Check that every element of `is_wrong` is false, at import time if possible, otherwise at run time.

    what: what a true element means, in the plural, for the error message: for example, "duplicate axes".
    """
    (count,) = run_time_sizes(is_wrong.cast(I64).apply(ops.sum))
    is_wrong.node.require_equal(count, 0, f"{what}: {{}} found, expected {{}}")


def known_count(tensor: TensorExpr, what: str) -> int:
    """Return the number of elements of a tensor of rank 0 or 1.

    Raise RelvmUnsupportedError if the number is only known at run time or exceeds SIZE_LIMIT.

    what: a description of the tensor for the error message.
    """
    dims = tensor.type.shape
    count = dims[0] if dims else 1
    if dims is None or len(dims) > 1 or not isinstance(count, int):
        raise RelvmUnsupportedError(f"{what}: expected a known number of elements, got {tensor.type}")
    if count > SIZE_LIMIT:
        raise RelvmUnsupportedError(f"{what}: expected at most {SIZE_LIMIT} elements, got {tensor.type}")
    return count


def dims_as_tensor(node: OnnxNode, dims: Sequence[AnyDim]) -> TensorExpr:
    """Return the values of dimensions, which can be symbolic, as a tensor of type i64[len(dims)]."""
    return TensorExpr(node, node.graph.integers(tuple(dims)))


def dim_as_operand(node: OnnxNode, dim: AnyDim) -> TensorExpr | int:
    """Convert a dimension to an operand of elementwise operators.

    A known dimension becomes an integer, and a symbolic one a tensor of rank 0.  Both broadcast to any shape.
    """
    return dim if isinstance(dim, int) else dims_as_tensor(node, [dim]).reshape()


def iota(node: OnnxNode, *dims: AnyDim) -> TensorExpr:
    """Return a tensor of shape `dims` with the elements 0, 1, 2... in row-major order."""
    return TensorExpr(node, node.emit(ops.iota(node.shape(list(dims)))))


def scalar(node: OnnxNode, index: int) -> TensorExpr:
    """Reshape input `index`, a tensor of one element, to rank 0."""
    return TensorExpr(node, node.tensor(index)).reshape()


def filled(node: OnnxNode, value: np.generic | np.ndarray, *dims: AnyDim) -> Expr:
    """Return a tensor of shape `dims` filled with `value`."""
    return ops.broadcast_to(constant(value), node.shape(list(dims)))
