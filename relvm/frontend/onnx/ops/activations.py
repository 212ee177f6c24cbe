"""Activation functions: compositions of elementwise operators and reductions."""

from __future__ import annotations

import math

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_sizes import (
    iota,
)
from relvm.frontend.onnx.ops.if_ import unless_empty
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor, per_channel
from relvm.ir.dtypes import F64
from relvm.ir.expr import Expr
from relvm.ir.operator import Operator
from relvm.ir.symbolic import product

_FUNCTIONS: dict[str, Operator] = {
    "Tan": ops.tan,
    "Asin": ops.asin,
    "Acos": ops.acos,
    "Atan": ops.atan,
    "Sinh": ops.sinh,
    "Cosh": ops.cosh,
    "Asinh": ops.asinh,
    "Acosh": ops.acosh,
    "Atanh": ops.atanh,
}


@converts(*_FUNCTIONS)
def _function(node: OnnxNode) -> Expr:
    return _FUNCTIONS[node.proto.op_type](node.tensor(0))


@converts("HardSigmoid")
def _hard_sigmoid(node: OnnxNode) -> Expr:
    return hard_sigmoid(input_tensor(node, 0), node.attribute("alpha", 0.2), node.attribute("beta", 0.5)).expr


def hard_sigmoid(x: TensorExpr, alpha: float, beta: float) -> TensorExpr:
    """Return max(0, min(1, alpha * x + beta))."""
    return (x * alpha + beta).apply(ops.clip, min=0, max=1)


@converts("HardSwish")
def _hard_swish(node: OnnxNode) -> Expr:
    x = input_tensor(node, 0)
    return (x * hard_sigmoid(x, 1 / 6, 0.5)).expr


@converts("PRelu")
def _prelu(node: OnnxNode) -> Expr:
    """Computes slope * x for negative x, and x otherwise.

    The slope is broadcast to x, but x is never broadcast to the slope.  Before opset 7, the slope is one number, or one
    number for each channel.
    """
    x, slope = input_tensor(node, 0), input_tensor(node, 1)
    if node.opset < 7 and slope.type.rank == 1 and node.type(0).known_rank > 1:
        slope = per_channel(node, 1, node.type(0).known_rank)
    if slope.type.rank is not None and slope.type.rank > node.type(0).known_rank:
        raise RelvmUnsupportedError(f"slope {slope.type} has a higher rank than x, {x.type}")
    return (x < 0).where(x * slope, x).expr


@converts("Elu")
def _elu(node: OnnxNode) -> Expr:
    x = input_tensor(node, 0)
    return (x < 0).where(_expm1(x) * node.attribute("alpha", 1.0), x).expr


def _expm1(x: TensorExpr) -> TensorExpr:
    """Return exp(x) - 1 for x below 0, computed as tanh(x / 2) * (exp(x) + 1), which is also precise near 0."""
    return (x * 0.5).apply(ops.tanh) * (x.apply(ops.exp) + 1)


@converts("Selu")
def _selu(node: OnnxNode) -> Expr:
    x = input_tensor(node, 0)
    alpha = node.attribute("alpha", 1.67326319217681884765625)
    below = _expm1(x) * alpha
    return ((x > 0).where(x, below) * node.attribute("gamma", 1.05070102214813232421875)).expr


@converts("Celu")
def _celu(node: OnnxNode) -> Expr:
    """Computes max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    x, alpha = input_tensor(node, 0), node.attribute("alpha", 1.0)
    if alpha < 0:
        below = ((x / alpha).apply(ops.exp) - 1) * alpha
        return (x.apply(ops.relu) + below.apply(ops.clip, max=0)).expr
    return (x < 0).where(_expm1(x / alpha) * alpha, x).expr


@converts("Softplus")
def _softplus(node: OnnxNode) -> Expr:
    return softplus(input_tensor(node, 0)).expr


def softplus(x: TensorExpr) -> TensorExpr:
    """Return log(exp(x) + 1), computed as relu(x) + log1p(exp(-abs(x))), which does not overflow."""
    smallness = x.apply(ops.abs).apply(ops.negative).apply(ops.exp)
    return x.apply(ops.relu) + smallness.apply(ops.log1p)


@converts("Softsign")
def _softsign(node: OnnxNode) -> Expr:
    x = input_tensor(node, 0)
    return (x / (x.apply(ops.abs) + 1)).expr


@converts("Mish")
def _mish(node: OnnxNode) -> Expr:
    x = input_tensor(node, 0)
    return (x * softplus(x).apply(ops.tanh)).expr


@converts("ThresholdedRelu")
def _thresholded_relu(node: OnnxNode) -> Expr:
    x = input_tensor(node, 0)
    return (x > node.attribute("alpha", 1.0)).where(x, 0).expr


@converts("Gelu")
def _gelu(node: OnnxNode) -> Expr:
    return gelu(input_tensor(node, 0), node.attribute("approximate", "none")).expr


def gelu(x: TensorExpr, approximation: str) -> TensorExpr:
    """Return x * P(X <= x), where X has the standard normal distribution.

    approximation: "none" to compute the probability by erf, or "tanh" for the faster approximation by tanh.
    """
    match approximation:
        case "none":
            share = (x * math.sqrt(0.5)).apply(ops.erf)
        case "tanh":
            cubic = x + x * x * x * 0.044715
            share = (cubic * math.sqrt(2 / math.pi)).apply(ops.tanh)
        case _:
            raise RelvmUnsupportedError(f"approximate is {approximation!r}, expected none or tanh")
    return x * 0.5 * (share + 1)


@converts("Swish")
def _swish(node: OnnxNode) -> Expr:
    x, alpha = input_tensor(node, 0), node.attribute("alpha", 1.0)
    return (x * (x if alpha == 1.0 else x * alpha).apply(ops.sigmoid)).expr


@converts("Shrink")
def _shrink(node: OnnxNode) -> Expr:
    """Returns x + bias below -lambd, x - bias above lambd, and 0 between.  Integers are computed in f64."""
    x, own = input_tensor(node, 0), node.type(0).known_dtype
    x = x if own.is_float else x.cast(F64)
    bias, limit = node.attribute("bias", 0.0), node.attribute("lambd", 0.5)
    above = (x > limit).where(x - bias, 0)
    return (x < -limit).where(x + bias, above).cast(own).expr


@converts("LogSoftmax")
def _log_softmax(node: OnnxNode) -> Expr:
    """Computes x - max - log(sum(exp(x - max))), where max is the maximum of x along the axis."""
    x, axes = input_tensor(node, 0), _softmax_axes(node)
    shifted = x - x.apply(ops.max, axes=axes, keepdims=True)
    return (shifted - shifted.apply(ops.exp_ftz).sum(axes).apply(ops.log)).expr


def _softmax_axes(node: OnnxNode) -> tuple[int, ...]:
    """Return the axes along which a LogSoftmax or Hardmax operates.

    Since opset 13, the result is only the attribute `axis`.  Earlier opsets operate along `axis` and all axes after it.
    """
    rank = node.type(0).known_rank
    axis = node.axis(-1 if node.opset >= 13 else 1, rank, end=int(node.opset < 13))
    return (axis,) if node.opset >= 13 else tuple(range(axis, rank))


@converts("Hardmax")
def _hardmax(node: OnnxNode) -> Expr:
    """Returns 1 at the first maximum along the axis, and 0 elsewhere.

    Before opset 13, the input is flattened to a matrix: `axis` and the axes after it become the columns.
    """
    axes, shape = _softmax_axes(node), node.type(0).shape
    if shape is None:
        raise RelvmUnsupportedError(f"Hardmax requires a known shape, got {node.type(0)}")
    columns = product(shape[axis] for axis in axes)
    return unless_empty(node, columns, lambda inner: _hardmax_of_elements(inner, axes))


def _hardmax_of_elements(node: OnnxNode, axes: tuple[int, ...]) -> Expr:
    x, shape = input_tensor(node, 0), node.type(0).known_shape
    if node.opset < 13:
        before = len(shape) - len(axes)
        x, axes = x.reshape(product(shape[:before]), product(shape[before:])), (1,)
    place = x.apply(ops.argmax, axis=axes[0], keepdims=True)
    positions = iota(node, x.shape[axes[0]])
    after = tuple(range(1, len(x.shape) - axes[0] % len(x.shape)))
    chosen = place.apply(ops.equal, positions.apply(ops.expand_dims, axes=after))
    return chosen.cast(x.dtype).reshape(*shape).expr


@converts("Softmax")
def _softmax(node: OnnxNode) -> Expr:
    """Computes the softmax along an axis.

    Before opset 13, the input is flattened to a matrix: `axis` and the axes after it become the columns.
    """
    x, rank = node.tensor(0), node.type(0).known_rank
    axis = node.axis(-1 if node.opset >= 13 else 1, rank, end=int(node.opset < 13))
    if node.opset >= 13 or axis == rank - 1:
        return ops.softmax(x, axis=axis)
    shape = x.tensor_type.shape
    if shape is None:
        raise RelvmUnsupportedError("Softmax before opset 13 requires a known shape")
    matrix = node.emit(ops.reshape(x, node.shape([product(shape[:axis]), product(shape[axis:])])))
    return ops.reshape(node.emit(ops.softmax(matrix, axis=1)), node.shape(list(shape)))
