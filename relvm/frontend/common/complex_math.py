"""Functions of complex numbers, which are pairs of their real and their imaginary part in f64."""

from __future__ import annotations

import math

import numpy as np

import relvm.ops as ops
from relvm.frontend.common.node_context import NodeContext
from relvm.ir.expr import Constant, Expr, constant

Complex = tuple[Expr, Expr]


def _number(value: float) -> Constant:
    return constant(np.asarray(value))


def _is_negative(x: Expr) -> Expr:
    """Return whether the sign bit of x is set.  For -0.0, it selects the side of a branch cut."""
    return ops.less(ops.bit_cast(x, to="i64"), 0)


def multiply(node: NodeContext, x: Complex, y: Complex) -> Complex:
    (a, b), (c, d) = x, y
    return (
        node.emit(ops.subtract(ops.multiply(a, c), ops.multiply(b, d))),
        node.emit(ops.add(ops.multiply(a, d), ops.multiply(b, c))),
    )


def divide(node: NodeContext, x: Complex, y: Complex) -> Complex:
    """Divides by Smith's method, which does not overflow where the result does not."""
    (a, b), (c, d) = x, y
    steep = node.emit(ops.less(ops.abs(c), ops.abs(d)))
    small, large = node.emit(ops.where(steep, c, d)), node.emit(ops.where(steep, d, c))
    ratio = node.emit(ops.divide(small, large))
    scale = node.emit(ops.add(large, ops.multiply(small, ratio)))
    first, second = node.emit(ops.where(steep, b, a)), node.emit(ops.where(steep, a, b))
    real = ops.divide(ops.add(first, ops.multiply(second, ratio)), scale)
    up = ops.subtract(second, ops.multiply(first, ratio))
    down = ops.subtract(ops.multiply(first, ratio), second)
    return node.emit(real), node.emit(ops.divide(ops.where(steep, down, up), scale))


def magnitude(node: NodeContext, x: Complex) -> Expr:
    a, b = (node.emit(ops.abs(part)) for part in x)
    large, small = node.emit(ops.maximum(a, b)), node.emit(ops.minimum(a, b))
    ratio = node.emit(ops.divide(small, large))
    size = ops.multiply(large, ops.sqrt(ops.add(ops.multiply(ratio, ratio), 1.0)))
    is_special = ops.logical_or(ops.equal(small, 0.0), ops.equal(large, math.inf))
    return node.emit(ops.where(is_special, large, size))


def exponential(node: NodeContext, x: Complex) -> Complex:
    a, b = x
    size = node.emit(ops.exp(a))
    return ops.multiply(size, ops.cos(b)), ops.multiply(size, ops.sin(b))


def exponential_minus_one(node: NodeContext, x: Complex) -> Complex:
    a, b = x
    half = node.emit(ops.sin(ops.multiply(b, 0.5)))
    versine = ops.multiply(ops.multiply(half, half), -2.0)
    return (
        ops.add(ops.multiply(ops.expm1(a), ops.cos(b)), versine),
        ops.multiply(ops.exp(a), ops.sin(b)),
    )


def log(node: NodeContext, x: Complex) -> Complex:
    return node.emit(ops.log(magnitude(node, x))), node.emit(ops.atan2(x[1], x[0]))


def log_plus_one(node: NodeContext, x: Complex) -> Complex:
    a, b = x
    square = ops.add(ops.multiply(a, ops.add(a, 2.0)), ops.multiply(b, b))
    return node.emit(ops.multiply(ops.log1p(square), 0.5)), node.emit(ops.atan2(b, ops.add(a, 1.0)))


def sqrt(node: NodeContext, x: Complex) -> Complex:
    a, b = x
    root = node.emit(ops.sqrt(ops.multiply(ops.add(ops.abs(a), magnitude(node, x)), 0.5)))
    other = node.emit(ops.divide(ops.abs(b), ops.multiply(root, 2.0)))
    other = node.emit(ops.where(ops.equal(root, 0.0), 0.0, other))
    is_right = node.emit(ops.greater_equal(a, 0.0))
    size = ops.where(is_right, other, root)
    return (
        node.emit(ops.where(is_right, root, other)),
        node.emit(ops.where(_is_negative(b), ops.negative(size), size)),
    )


def cbrt(node: NodeContext, x: Complex) -> Complex:
    size = node.emit(ops.cbrt(magnitude(node, x)))
    angle = node.emit(ops.divide(ops.atan2(x[1], x[0]), 3.0))
    return ops.multiply(size, ops.cos(angle)), ops.multiply(size, ops.sin(angle))


def rsqrt(node: NodeContext, x: Complex) -> Complex:
    one = _number(1.0), _number(0.0)
    return divide(node, one, sqrt(node, x))


def power(node: NodeContext, x: Complex, y: Complex) -> Complex:
    found = exponential(node, multiply(node, log(node, x), y))
    is_zero = node.emit(ops.logical_and(ops.equal(x[0], 0.0), ops.equal(x[1], 0.0)))
    is_one = ops.logical_and(ops.equal(y[0], 0.0), ops.equal(y[1], 0.0))
    at_zero = ops.where(is_one, _number(1.0), _number(0.0))
    return ops.where(is_zero, at_zero, found[0]), ops.where(is_zero, 0.0, found[1])


def logistic(node: NodeContext, x: Complex) -> Complex:
    a, b = exponential(node, (ops.negative(x[0]), ops.negative(x[1])))
    one = _number(1.0), _number(0.0)
    return divide(node, one, (node.emit(ops.add(a, 1.0)), node.emit(b)))


def sine(node: NodeContext, x: Complex) -> Complex:
    a, b = x
    return (
        node.emit(ops.multiply(ops.sin(a), ops.cosh(b))),
        node.emit(ops.multiply(ops.cos(a), ops.sinh(b))),
    )


def cosine(node: NodeContext, x: Complex) -> Complex:
    a, b = x
    return (
        node.emit(ops.multiply(ops.cos(a), ops.cosh(b))),
        node.emit(ops.negative(ops.multiply(ops.sin(a), ops.sinh(b)))),
    )


def tanh(node: NodeContext, x: Complex) -> Complex:
    a, b = x
    t, u = node.emit(ops.tanh(a)), node.emit(ops.tan(b))
    one = _number(1.0)
    return divide(node, (t, u), (one, node.emit(ops.multiply(t, u))))


def square(node: NodeContext, x: Complex) -> Complex:
    return multiply(node, x, x)


def tan(node: NodeContext, x: Complex) -> Complex:
    """Returns -i tanh(i x)."""
    return _times_minus_i(node, tanh(node, _times_i(node, x)))


def sinh(node: NodeContext, x: Complex) -> Complex:
    return _times_minus_i(node, sine(node, _times_i(node, x)))


def cosh(node: NodeContext, x: Complex) -> Complex:
    return cosine(node, _times_i(node, x))


def sign(node: NodeContext, x: Complex) -> Complex:
    size = magnitude(node, x)
    is_zero = ops.equal(size, 0.0)
    real, imaginary = (ops.where(is_zero, 0.0, ops.divide(part, size)) for part in x)
    return real, imaginary


def _times_i(node: NodeContext, x: Complex) -> Complex:
    return node.emit(ops.negative(x[1])), x[0]


def _times_minus_i(node: NodeContext, x: Complex) -> Complex:
    return x[1], node.emit(ops.negative(x[0]))


def asinh(node: NodeContext, x: Complex) -> Complex:
    """Returns -i asin(i x)."""
    return _times_minus_i(node, asin(node, _times_i(node, x)))


def asin(node: NodeContext, x: Complex) -> Complex:
    """Returns the arcsine.  Source: Hull, Fairgrieve and Tang, Implementing the complex arcsine and arccosine, 1997."""
    real, size = _inverse_parts(node, x)
    angle = node.emit(ops.atan2(x[0], real))
    return angle, ops.where(_is_negative(x[1]), ops.negative(size), size)


def acos(node: NodeContext, x: Complex) -> Complex:
    real, size = _inverse_parts(node, x)
    return ops.atan2(real, x[0]), ops.where(_is_negative(x[1]), size, ops.negative(size))


def acosh(node: NodeContext, x: Complex) -> Complex:
    real, size = _inverse_parts(node, x)
    angle = node.emit(ops.atan2(real, x[0]))
    return size, ops.where(_is_negative(x[1]), ops.negative(angle), angle)


def _inverse_parts(node: NodeContext, z: Complex) -> Complex:
    """Return sqrt(a^2 - x^2) and acosh(a), where x is the real part of z, and a is half of |z + 1| + |z - 1|.

    asin(z) has the real part atan2(x, first result), and its imaginary part has the magnitude of the second result.
    """
    x, y = z
    size = node.emit(ops.abs(x))
    r = magnitude(node, (node.emit(ops.add(size, 1.0)), y))
    s = magnitude(node, (node.emit(ops.subtract(size, 1.0)), y))
    a = node.emit(ops.multiply(ops.add(r, s), 0.5))
    square = node.emit(ops.multiply(y, y))
    # a - 1, without cancellation
    left = ops.divide(square, ops.add(r, ops.add(size, 1.0)))
    right_near = ops.divide(square, ops.add(s, ops.subtract(1.0, size)))
    right_far = ops.add(s, ops.subtract(size, 1.0))
    right = node.emit(ops.where(ops.less(size, 1.0), right_near, right_far))
    excess = node.emit(ops.multiply(ops.add(left, right), 0.5))
    acosh = node.emit(ops.log1p(ops.add(excess, ops.sqrt(ops.multiply(excess, ops.add(a, 1.0))))))
    # a^2 - x^2 = (a + |x|) (a - |x|), and a - |x| without cancellation
    gap_near = ops.multiply(ops.add(left, ops.add(s, ops.subtract(1.0, size))), 0.5)
    gap_far = ops.multiply(ops.add(left, ops.divide(square, ops.add(s, ops.subtract(size, 1.0)))), 0.5)
    gap = node.emit(ops.where(ops.less_equal(size, 1.0), gap_near, gap_far))
    side = node.emit(ops.sqrt(ops.multiply(ops.add(a, size), gap)))
    return side, acosh


def atan(node: NodeContext, x: Complex) -> Complex:
    """Returns -i atanh(i x)."""
    return _times_minus_i(node, atanh(node, _times_i(node, x)))


def atanh(node: NodeContext, x: Complex) -> Complex:
    a, b = x
    below = node.emit(ops.subtract(1.0, a))
    square = node.emit(ops.multiply(b, b))
    size = ops.add(ops.multiply(below, below), square)
    real = ops.multiply(ops.log1p(ops.divide(ops.multiply(a, 4.0), size)), 0.25)
    rest = ops.subtract(ops.multiply(below, ops.add(a, 1.0)), square)
    return node.emit(real), node.emit(ops.multiply(ops.atan2(ops.multiply(b, 2.0), rest), 0.5))
