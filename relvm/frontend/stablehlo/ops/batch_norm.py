"""Batch normalization.  Floats narrower than f32 are computed in f32, and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import relvm.ops as ops
from relvm.errors import RelvmFormatError
from relvm.frontend.stablehlo.registry import Node, converts
from relvm.ir.dtypes import F32
from relvm.ir.expr import Expr
from relvm.ir.symbolic import AnyDim, known_sizes


class _Norm:
    """The operands of a batch normalization, in the dtype in which it is computed.

    x: the tensor to normalize.
    vectors: the operands with one element for each feature, reshaped to broadcast to x.
    """

    def __init__(self, node: Node, tensors: Sequence[int], vectors: Sequence[int]) -> None:
        self.node = node
        shape = node.shape(0)
        self.axis = node.integer("feature_index")
        if not 0 <= self.axis < len(shape):
            raise RelvmFormatError(f"feature_index is {self.axis}, expected 0 to {len(shape) - 1}")
        self.epsilon = float(node.attribute("epsilon", 0.0))
        self.others = tuple(axis for axis in range(len(shape)) if axis != self.axis)
        self.dtype = node.dtype(0)
        features = (shape[self.axis],)
        row: list[AnyDim] = [1] * len(shape)
        row[self.axis] = shape[self.axis]
        self.row = tuple(row)
        self.tensors = [self._wide(node.importer.with_shape(node.operands[i], shape)) for i in tensors]
        self.vectors = [
            node.reshaped(self._wide(node.importer.with_shape(node.operands[i], features)), self.row) for i in vectors
        ]

    def _wide(self, x: Expr) -> Expr:
        return self.node.cast(x, F32) if self.dtype.is_narrow_float else x

    def rounded(self, x: Expr) -> Expr:
        return self.node.cast(self.node.emit(x), self.dtype)

    def vector(self, x: Expr) -> Expr:
        """Reshape x, which has one element for each feature, to a vector, and round it to the dtype of the result."""
        return self.node.reshaped(self.rounded(x), (self.row[self.axis],))

    def over_others(self, reduce: Callable[..., Expr], x: Expr) -> Expr:
        """Reduce all axes but that of the features."""
        if not self.others:
            return x
        return self.node.emit(reduce(self.node.emit(x), axes=self.others, keepdims=True))

    def deviation(self, variance: Expr) -> Expr:
        return self.node.emit(ops.sqrt(ops.add(variance, self.epsilon)))


@converts("batch_norm_inference")
def _batch_norm_inference(node: Node) -> Expr:
    """Returns (x - mean) / sqrt(variance + epsilon) * scale + offset."""
    node.expect_operands(5)
    norm = _Norm(node, (0,), (1, 2, 3, 4))
    (x,), (scale, offset, mean, variance) = norm.tensors, norm.vectors
    scaled = ops.multiply(scale, ops.divide(ops.subtract(x, mean), norm.deviation(variance)))
    return norm.rounded(ops.add(scaled, offset))


@converts("batch_norm_training")
def _batch_norm_training(node: Node) -> tuple[Expr, ...]:
    """Returns the normalized tensor, the mean and the variance."""
    node.expect_operands(3)
    norm = _Norm(node, (0,), (1, 2))
    (x,), (scale, offset) = norm.tensors, norm.vectors
    mean = norm.over_others(ops.mean, x)
    centered = node.emit(ops.subtract(x, mean))
    variance = norm.over_others(ops.mean, ops.multiply(centered, centered))
    result = ops.add(ops.multiply(scale, ops.divide(centered, norm.deviation(variance))), offset)
    return norm.rounded(result), norm.vector(mean), norm.vector(variance)


@converts("batch_norm_grad")
def _batch_norm_grad(node: Node) -> tuple[Expr, ...]:
    """Returns the gradients of the operand, the scale and the offset."""
    node.expect_operands(5)
    norm = _Norm(node, (0, 4), (1, 2, 3))
    (x, gradient), (scale, mean, variance) = norm.tensors, norm.vectors
    sizes = known_sizes(node.shape())
    if sizes is None:
        raise RelvmFormatError(f"the operand has type {node.type()}, expected known dimensions")
    count = float(math.prod(sizes[axis] for axis in norm.others))
    centered, deviation = node.emit(ops.subtract(x, mean)), norm.deviation(variance)
    total = norm.over_others(ops.sum, gradient)
    product = norm.over_others(ops.sum, ops.multiply(gradient, centered))
    slope = ops.divide(ops.multiply(product, centered), ops.add(variance, norm.epsilon))
    inner = ops.subtract(ops.subtract(ops.multiply(gradient, count), total), slope)
    result = ops.multiply(ops.divide(ops.divide(scale, deviation), count), inner)
    return norm.rounded(result), norm.vector(ops.divide(product, deviation)), norm.vector(total)
