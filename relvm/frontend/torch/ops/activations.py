"""Activation functions."""

from __future__ import annotations

import math
from typing import Any

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.torch.ops.elementwise import clamped
from relvm.frontend.torch.ops.shapes import sliced
from relvm.frontend.torch.registry import Node, axis_of, converts, refuses, shape_of
from relvm.ir.dtypes import BOOL
from relvm.ir.expr import Expr


@converts("relu")
def _relu(node: Node, self: Expr) -> Expr:
    return ops.relu(self)


@converts("relu6")
def _relu6(node: Node, self: Expr) -> Expr:
    return clamped(node, node.wide(self), 0, 6)


@converts("hardtanh")
def _hardtanh(node: Node, self: Expr, min_val: Any = -1, max_val: Any = 1) -> Expr:
    return clamped(node, node.wide(self), min_val, max_val)


@converts("hardsigmoid")
def _hardsigmoid(node: Node, self: Expr) -> Expr:
    return ops.divide(clamped(node, ops.add(node.wide(self), 3), 0, 6), 6)


@converts("hardswish")
def _hardswish(node: Node, self: Expr) -> Expr:
    x = node.emit(node.wide(self))
    return ops.divide(ops.multiply(x, clamped(node, ops.add(x, 3), 0, 6)), 6)


@converts("silu")
def _silu(node: Node, self: Expr) -> Expr:
    x = node.emit(node.wide(self))
    return ops.multiply(x, ops.sigmoid(x))


@converts("gelu")
def _gelu(node: Node, self: Expr, *, approximate: str = "none") -> Expr:
    x = node.emit(node.wide(self))
    if approximate == "tanh":
        inner = ops.multiply(
            ops.add(x, ops.multiply(ops.multiply(ops.multiply(x, x), x), 0.044715)), math.sqrt(2 / math.pi)
        )
        return ops.multiply(ops.multiply(x, 0.5), ops.add(ops.tanh(inner), 1))
    return ops.multiply(ops.multiply(x, 0.5), ops.add(ops.erf(ops.multiply(x, math.sqrt(0.5))), 1))


@converts("elu")
def _elu(node: Node, self: Expr, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Expr:
    x = node.emit(node.wide(self))
    negative = ops.multiply(ops.expm1(ops.multiply(x, float(input_scale))), float(alpha))
    return ops.multiply(ops.where(ops.greater(x, 0), x, negative), float(scale))


@converts("selu")
def _selu(node: Node, self: Expr) -> Expr:
    return _elu(node, self, 1.6732632423543772, 1.0507009873554805)


@converts("celu")
def _celu(node: Node, self: Expr, alpha: Any = 1.0) -> Expr:
    return _elu(node, self, alpha, 1, 1 / alpha)


@converts("leaky_relu")
def _leaky_relu(node: Node, self: Expr, negative_slope: Any = 0.01) -> Expr:
    x = node.emit(node.wide(self))
    return ops.where(ops.greater(x, 0), x, ops.multiply(x, float(negative_slope)))


@converts("prelu", "_prelu_kernel")
def _prelu(node: Node, self: Expr, weight: Expr) -> Expr:
    x, w = node.emit(self), node.emit(weight)
    rank = len(shape_of(x))
    if len(shape_of(w)) == 1 and rank != 1:
        w = node.reshaped(w, (shape_of(w)[0], *(1,) * max(rank - 2, 0))) if rank >= 2 else node.reshaped(w, ())
    return ops.where(ops.greater(x, 0), x, ops.multiply(x, w))


@converts("softplus")
def _softplus(node: Node, self: Expr, beta: Any = 1, threshold: Any = 20) -> Expr:
    x = node.emit(node.wide(self))
    scaled = node.emit(ops.multiply(x, float(beta)))
    return ops.where(ops.greater(scaled, float(threshold)), x, ops.divide(ops.log1p(ops.exp(scaled)), float(beta)))


@converts("softshrink")
def _softshrink(node: Node, self: Expr, lambd: Any = 0.5) -> Expr:
    x = node.emit(node.wide(self))
    below = ops.where(ops.less(x, -float(lambd)), ops.add(x, float(lambd)), ops.multiply(x, 0))
    return ops.where(ops.greater(x, float(lambd)), ops.subtract(x, float(lambd)), below)


@converts("hardshrink")
def _hardshrink(node: Node, self: Expr, lambd: Any = 0.5) -> Expr:
    x = node.emit(node.wide(self))
    inside = ops.logical_and(ops.greater_equal(x, -float(lambd)), ops.less_equal(x, float(lambd)))
    return ops.where(inside, 0, x)


@converts("threshold")
def _threshold(node: Node, self: Expr, threshold: Any, value: Any) -> Expr:
    x = node.emit(self)
    dtype = x.known_element_type
    low, other = node.number(threshold, dtype), node.number(value, dtype)
    return ops.where(ops.less_equal(x, low), other, x)


def softplus(node: Node, x: Expr) -> Expr:
    """Return log(1 + exp(x)) without overflow."""
    x = node.emit(x)
    return ops.add(ops.maximum(x, node.number(0, x.known_element_type)), ops.log1p(ops.exp(ops.negative(ops.abs(x)))))


@converts("mish")
def _mish(node: Node, self: Expr) -> Expr:
    x = node.emit(node.wide(self))
    return ops.multiply(x, ops.tanh(softplus(node, x)))


@converts("log_sigmoid")
def _log_sigmoid(node: Node, self: Expr) -> Expr:
    x = node.wide(self)
    return ops.negative(softplus(node, ops.negative(x)))


@converts("log_sigmoid_forward")
def _log_sigmoid_forward(node: Node, self: Expr) -> tuple[Expr, Expr]:
    x = node.emit(node.wide(self))
    names = node.output_names()
    shape = node.out_shape(1) if len(names) > 1 else ()
    return ops.negative(softplus(node, ops.negative(x))), node.full(0, shape, x.known_element_type)


@converts("glu")
def _glu(node: Node, self: Expr, dim: int = -1) -> Expr:
    x = node.emit(node.wide(self))
    axis = axis_of(dim, len(shape_of(x)))
    size = shape_of(x)[axis]
    half = node.exact_quotient(size, 2, f"the size of axis {axis}")
    return ops.multiply(sliced(node, x, axis, 0, half), ops.sigmoid(sliced(node, x, axis, half, size)))


@converts("softsign")
def _softsign(node: Node, self: Expr) -> Expr:
    x = node.emit(node.wide(self))
    return ops.divide(x, ops.add(ops.abs(x), 1))


@converts("tanhshrink")
def _tanhshrink(node: Node, self: Expr) -> Expr:
    x = node.emit(node.wide(self))
    return ops.subtract(x, ops.tanh(x))


@converts("rrelu")
def _rrelu(
    node: Node, self: Expr, lower: Any = 0.125, upper: Any = 1 / 3, training: bool = False, generator: Any = None
) -> Expr:
    if training:
        raise RelvmUnsupportedError("random numbers are not supported (training is true)")
    return _leaky_relu(node, self, (lower + upper) / 2)


@converts("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
def _dropout(node: Node, input: Expr, p: float, train: bool) -> Expr:
    """Supported only in inference, or with probability 0, where it returns its argument."""
    if train and p != 0:
        raise RelvmUnsupportedError("random numbers are not supported (train is true)")
    return input


@converts("native_dropout")
def _native_dropout(node: Node, input: Expr, p: float, train: bool | None) -> tuple[Expr, Expr]:
    if train and p != 0:
        raise RelvmUnsupportedError("random numbers are not supported (train is true)")
    return input, node.full(True, shape_of(input), BOOL)


refuses(
    "random numbers are not supported",
    *("rand", "randn", "randint", "randint.low", "rand_like", "randn_like", "randint_like", "randint_like.low_dtype"),
    *("bernoulli", "bernoulli.p", "normal_functional", "multinomial", "poisson", "randperm", "uniform", "normal"),
    *("rrelu_with_noise", "bernoulli.Tensor", "normal.Tensor_float", "normal.Tensor_Tensor", "binomial"),
    *("exponential", "cauchy", "geometric", "log_normal", "rand.generator", "randn.generator", "_standard_gamma"),
    *("rrelu_with_noise_functional", "randint_like.Tensor", "normal.float_Tensor", "random"),
)
