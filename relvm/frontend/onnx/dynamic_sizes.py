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
    """Return whether the elements of input `index` are known at import time, as integers or symbolic dimensions."""
    return isinstance(node.inputs[index], Constant | HostValue)


def is_symbolic(node: OnnxNode, index: int) -> bool:
    """Return whether input `index` is known at import time and contains symbolic dimensions."""
    value = node.inputs[index]
    return isinstance(value, HostValue) and value.is_symbolic


def sizes_of(node: OnnxNode, index: int, what: str, count: int | None = None) -> list[AnyDim]:
    """Return input `index` as a list of sizes, with a new variable for each size that is only known at run time.

    what: the name of the input in messages.   count: the expected number of sizes, if it is known.

    Raises
    ------
    RelvmUnsupportedError
        The number of sizes is not known at import time, or exceeds SIZE_LIMIT.
    """
    if is_known(node, index):
        return node.dims(index, what)
    tensor = TensorExpr(node, node.tensor(index))
    if count is not None:
        tensor = TensorExpr(node, node.graph.checked(tensor.expr, (count,)))
    count_of(tensor, what)
    return list(run_time_sizes(tensor))


def size_of(node: OnnxNode, index: int, what: str) -> AnyDim:
    """Return input `index`, a single number, as a size.  A size that is only known at run time becomes a new variable.

    what: the name of the input in messages.
    """
    if not is_known(node, index):
        return run_time_sizes(scalar(node, index))[0]
    sizes = node.dims(index, what)
    if len(sizes) != 1:
        raise RelvmShapeError(f"{what}: expected one number, got {len(sizes)}")
    return sizes[0]


def run_time_sizes(tensor: TensorExpr) -> tuple[AnyDim, ...]:
    """Return a new dimension variable for each element of a tensor of rank 0 or 1.

    The elements of a constant are returned as integers.  Negative elements are rejected at run time.
    """
    node, count = tensor.node, tensor.shape[0] if tensor.shape else 1
    assert isinstance(count, int)
    shape = tensor.cast(I64).reshape(count).apply(ops.tensor_to_shape)
    if isinstance(shape.expr, Constant):
        return tuple(shape.expr.value.tolist())
    sizes = tuple(dim_var(f"size{i}") for i in range(count))
    node.graph.own(sizes)
    node.graph.bindings.append(MatchCast(node.graph.var("sizes", ShapeType(sizes)), shape.expr, node.here))
    return sizes


def assert_none(wrong: TensorExpr, what: str) -> None:
    """Check that every element of `wrong` is false, at import time if possible, otherwise at run time.

    what: the meaning of a true element, in the plural for the message, such as "duplicate axes".
    """
    (count,) = run_time_sizes(wrong.cast(I64).apply(ops.sum))
    wrong.node.require_equal(count, 0, f"{what}: {{}} found, expected {{}}")


def count_of(numbers: TensorExpr, what: str) -> int:
    """Return the number of elements of a tensor of rank 0 or 1.

    Raise RelvmUnsupportedError if the number is only known at run time or exceeds SIZE_LIMIT.   what: the name of the
    tensor in messages.
    """
    dims = numbers.type.shape
    count = dims[0] if dims else 1
    if dims is None or len(dims) > 1 or not isinstance(count, int):
        raise RelvmUnsupportedError(f"{what}: expected a known number of elements, got {numbers.type}")
    if count > SIZE_LIMIT:
        raise RelvmUnsupportedError(f"{what}: expected at most {SIZE_LIMIT} elements, got {numbers.type}")
    return count


def numbers_of(node: OnnxNode, dims: Sequence[AnyDim]) -> TensorExpr:
    """Return dimensions as a tensor of type i64[len(dims)]."""
    return TensorExpr(node, node.emit(ops.shape_to_tensor(node.shape(list(dims)))))


def number_of(node: OnnxNode, dim: AnyDim) -> TensorExpr | int:
    """Return a dimension as an operand: an integer if it is known, otherwise a tensor of rank 0.

    Broadcasting with such an operand does not change the shape of the other operand.
    """
    return dim if isinstance(dim, int) else numbers_of(node, [dim]).reshape()


def iota(node: OnnxNode, *dims: AnyDim) -> TensorExpr:
    """Return a tensor of shape `dims` with the elements 0, 1, 2... in row-major order."""
    return TensorExpr(node, node.emit(ops.iota(node.shape(list(dims)))))


def scalar(node: OnnxNode, index: int) -> TensorExpr:
    """Reshape input `index`, a tensor of one element, to rank 0."""
    return TensorExpr(node, node.tensor(index)).reshape()


def filled(node: OnnxNode, value: np.generic | np.ndarray, *dims: AnyDim) -> Expr:
    """Return a tensor of shape `dims` filled with `value`."""
    return ops.broadcast_to(constant(value), node.shape(list(dims)))
