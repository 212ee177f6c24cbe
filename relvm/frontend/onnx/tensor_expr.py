"""Tensor expressions with Python's operators, with which most converters are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.data_classes import record
from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.registry import OnnxNode
from relvm.ir.dtypes import DType
from relvm.ir.expr import Constant, Expr, constant
from relvm.ir.operator import Operator
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType


@record
class TensorExpr:
    """A tensor expression on which Python's operators, such as `+`, can be used.

    A Python number as the other operand becomes a constant of the tensor's dtype.  The result of each operation is
    bound to a variable immediately.

    node: the ONNX node that is being converted.   expr: the expression.
    """

    node: OnnxNode
    expr: Expr

    @property
    def type(self) -> TensorType:
        return self.expr.tensor_type

    @property
    def dtype(self) -> DType:
        return self.type.known_dtype

    @property
    def shape(self) -> tuple[AnyDim, ...]:
        if self.type.shape is None:
            raise RelvmUnsupportedError(f"{self.node.here}: the shape of the tensor must be known, got {self.type}")
        return self.type.shape

    def apply(self, op: Operator, *others: Any, **attributes: Any) -> TensorExpr:
        """Apply the operator `op` to this tensor and the other operands, which are tensors or numbers."""
        return TensorExpr(self.node, self.node.emit(op(self.expr, *map(self.operand, others), **attributes)))

    def operand(self, value: Any) -> Expr:
        """Convert an operand to an expression.

        A number becomes a constant of this tensor's dtype.  An expression, such as a shape, is returned unchanged.
        """
        match value:
            case TensorExpr(expr=expr):
                return expr
            case Expr():
                return value
        return constant(np.asarray(value, dtype=self.dtype.numpy))

    def cast(self, dtype: DType) -> TensorExpr:
        return self if self.type.dtype == dtype else self.apply(ops.cast, to=dtype.name)

    def reshape(self, *dims: AnyDim) -> TensorExpr:
        return self if self.type.shape == dims else self.apply(ops.reshape, self.node.shape(list(dims)))

    def mean(self, axes: tuple[int, ...]) -> TensorExpr:
        """Return the mean along `axes`, which remain in the result with size 1."""
        return self.apply(ops.mean, axes=axes, keepdims=True)

    def sum(self, axes: tuple[int, ...]) -> TensorExpr:
        """Return the sum along `axes`, which remain in the result with size 1."""
        return self.apply(ops.sum, axes=axes, keepdims=True)

    def select(self, index: int, axis: int) -> TensorExpr:
        """Return the slice at position `index` along an axis, without that axis."""
        return self.apply(ops.slice, begin=(index,), end=(index + 1,), axes=(axis,)).apply(ops.squeeze, axes=(axis,))

    def reverse(self, axis: int) -> TensorExpr:
        """Return the tensor with the order of its elements along an axis reversed."""
        far = 2**63 - 1
        return self.apply(ops.slice, begin=(far,), end=(-far,), axes=(axis,), steps=(-1,))

    def where(self, then: Any, orelse: Any) -> TensorExpr:
        """Select elements by this bool tensor: those of `then` where it is true, otherwise those of `orelse`.

        One of `then` and `orelse` can be a number.  The other must be a TensorExpr.
        """
        like = then if isinstance(then, TensorExpr) else orelse
        return TensorExpr(self.node, self.node.emit(ops.where(self.expr, like.operand(then), like.operand(orelse))))

    def power(self, exponent: float) -> TensorExpr:
        """Return the elements raised to a constant power.

        For some exponents, the result is computed by square roots or products, which are faster than the operator
        `power`.
        """
        match exponent:
            case 1:
                return self
            case 2:
                return self * self
            case 0.5:
                return self.apply(ops.sqrt)
            case 0.75:
                root = self.apply(ops.sqrt)
                return root * root.apply(ops.sqrt)
        return self.apply(ops.power, exponent)

    def __add__(self, other: Any) -> TensorExpr:
        return self.apply(ops.add, other)

    def __sub__(self, other: Any) -> TensorExpr:
        return self.apply(ops.subtract, other)

    def __mul__(self, other: Any) -> TensorExpr:
        return self.apply(ops.multiply, other)

    def __truediv__(self, other: Any) -> TensorExpr:
        return self.apply(ops.divide, other)

    def __radd__(self, other: Any) -> TensorExpr:
        return TensorExpr(self.node, self.operand(other)) + self

    def __rsub__(self, other: Any) -> TensorExpr:
        return TensorExpr(self.node, self.operand(other)) - self

    def __rmul__(self, other: Any) -> TensorExpr:
        return TensorExpr(self.node, self.operand(other)) * self

    def __rtruediv__(self, other: Any) -> TensorExpr:
        return TensorExpr(self.node, self.operand(other)) / self

    def __lt__(self, other: Any) -> TensorExpr:
        return self.apply(ops.less, other)

    def __gt__(self, other: Any) -> TensorExpr:
        return self.apply(ops.greater, other)


def default_element(dtype: DType) -> np.ndarray:
    """Return the default element of a dtype, as an array of rank 0: 0, false, or the empty string."""
    return np.array("" if dtype.is_string else 0, dtype.numpy)


def input_tensor(node: OnnxNode, index: int) -> TensorExpr:
    """Return input `index` of the node as a TensorExpr."""
    return TensorExpr(node, node.tensor(index))


def per_channel(node: OnnxNode, index: int, rank: int) -> TensorExpr:
    """Reshape input `index`, a vector with one element for each channel, to broadcast with a tensor of rank `rank`.

    The channels of that tensor are its axis 1.
    """
    vector = input_tensor(node, index)
    return vector.apply(ops.expand_dims, axes=(0, *range(2, rank)))


def aligned_operands(node: OnnxNode) -> list[Expr]:
    """Return the inputs of an elementwise operator, aligned at their last axes for broadcasting.

    Before opset 7, the attribute `axis` states which axis of the first input corresponds to the first axis of the
    second input.  In this case, append axes of size 1 to the second input.
    """
    inputs, axis, broadcast = node.tensors(), node.attribute("axis"), node.attribute("broadcast", 0)
    if axis is None or not broadcast:
        return inputs
    first, second = node.type(0).known_rank, node.type(1).known_rank
    behind = first - (axis % first if first else 0) - second
    if not -first <= axis < first or behind < 0:
        raise RelvmShapeError(
            f"cannot broadcast the second input, of rank {second}, to the first, of rank {first}, starting at axis"
            f" {axis}"
        )
    after = tuple(range(second, second + behind))
    return [inputs[0], node.emit(ops.expand_dims(inputs[1], axes=after)) if after else inputs[1]]


def pad_axes(
    x: TensorExpr,
    before: Sequence[AnyDim],
    after: Sequence[AnyDim],
    margin: Callable[[TensorExpr, int, int], TensorExpr],
) -> TensorExpr:
    """Pad x along each axis with copies of slices.

    before, after: for each axis, the number of copies to add at its start and at its end.
    margin: a function that is called as margin(x, axis, end), and returns the slice to copy.  Its argument `end` is 0
    for the padding at the start of the axis, and 1 for the padding at the end.

    Raises
    ------
    RelvmUnsupportedError
        A number of copies is negative.
    """
    for axis, counts in enumerate(zip(before, after, strict=True)):
        parts = [x]
        for end, count in enumerate(counts):
            if count == 0:
                continue
            if isinstance(count, int) and count < 0:
                raise RelvmUnsupportedError(
                    f"a negative pad, {count}, is not supported together with pads that are not known at import"
                )
            dims = [*x.shape[:axis], count, *x.shape[axis + 1 :]]
            part = margin(x, axis, end).apply(ops.broadcast_to, x.node.shape(dims))
            parts.insert(end * len(parts), part)
        if len(parts) > 1:
            x = parts[0].apply(ops.concat, *parts[1:], axis=axis)
    return x


def shaped_input(node: OnnxNode, index: int) -> TensorExpr:
    """Return input `index`, a tensor of known rank, with a name for each size.

    If the sizes are only known at run time, each size becomes a new dimension variable.
    """
    return TensorExpr(node, node.known_shape(index))


def constant_like(value: Any, like: Expr) -> Constant:
    """Return a scalar constant of the dtype of `like`."""
    return constant(np.asarray(value, dtype=like.known_element_type.numpy))
