"""Special functions: error functions, gamma functions and Bessel functions.

Floats narrower than f32 are computed in f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import relvm.ops as ops
from relvm.frontend.common.special_functions import Emit, bessel_i1e, digamma, erf_inv, lgamma, zeta
from relvm.frontend.stablehlo.registry import Node, converts
from relvm.ir.dtypes import F64
from relvm.ir.expr import Expr

_LOG_HALF = math.log(0.5)


def _declare(name: str, function: Callable[[Emit, Expr], Expr]) -> None:
    """Register a function of one number as a converter.   function: takes a tensor of dtype f32 or f64."""

    @converts(name)
    def convert(node: Node) -> Expr:
        node.expect_operands(1)
        return node.rounded(lambda x: function(node.emit, node.emit(x)), node.operands[0])


def _cosh(emit: Emit, x: Expr) -> Expr:
    """Return e^(x + log(1/2)) + e^(log(1/2) - x), which does not overflow where the result is finite."""
    return ops.add(ops.exp(ops.add(x, _LOG_HALF)), ops.exp(ops.subtract(_LOG_HALF, x)))


def _sinh(emit: Emit, x: Expr) -> Expr:
    """Return e^(x + log(1/2)) - e^(log(1/2) - x), or a formula with expm1 where |x| < 1."""
    large = ops.subtract(ops.exp(ops.add(x, _LOG_HALF)), ops.exp(ops.subtract(_LOG_HALF, x)))
    m = emit(ops.expm1(x))
    small = ops.multiply(ops.add(m, ops.divide(m, ops.add(m, 1.0))), 0.5)
    return ops.where(ops.less(ops.abs(x), 1.0), small, large)


for _name, _function in (
    ("erf_inv", erf_inv),
    ("lgamma", lgamma),
    ("digamma", digamma),
    ("cosh", _cosh),
    ("sinh", _sinh),
    ("bessel_i1e", bessel_i1e),
):
    _declare(f"chlo.{_name}", _function)


@converts("chlo.zeta")
def _zeta(node: Node) -> Expr:
    """Returns the Hurwitz zeta function, computed in f64."""
    return _of_two(node, _signed_zeta)


@converts("chlo.polygamma")
def _polygamma(node: Node) -> Expr:
    """Returns the derivative of the digamma function whose order is the first operand, computed in f64."""
    return _of_two(node, _digamma_derivative)


def _of_two(node: Node, function: Callable[[Emit, Expr, Expr], Expr]) -> Expr:
    node.expect_operands(2)
    x, y = (node.emit(node.cast(operand, F64)) for operand in node.operands)
    return node.cast(node.emit(function(node.emit, x, y)), node.dtype())


def _signed_zeta(emit: Emit, s: Expr, q: Expr) -> Expr:
    """Return the Hurwitz zeta function.  It is NaN at poles where the sign changes: those for s > 1 that is not
    even.
    """
    is_pole = ops.logical_and(ops.less_equal(q, 0.0), ops.equal(q, ops.floor(q)))
    is_odd = ops.logical_and(ops.not_equal(ops.modulo(s, 2.0), 0.0), ops.not_equal(s, 1.0))
    changes = ops.logical_and(is_pole, is_odd)
    return ops.where(changes, math.nan, zeta(emit, s, q))


def _digamma_derivative(emit: Emit, n: Expr, x: Expr) -> Expr:
    """Return the derivative of order n of the digamma function, or NaN where n is negative or not an integer."""
    order = emit(ops.add(n, 1.0))
    size = emit(ops.multiply(ops.exp(lgamma(emit, order)), _signed_zeta(emit, order, x)))
    is_even = ops.equal(ops.modulo(n, 2.0), 0.0)
    found = ops.where(is_even, ops.negative(size), size)
    found = ops.where(ops.equal(n, 0.0), digamma(emit, x), found)
    is_order = ops.logical_and(ops.greater_equal(n, 0.0), ops.equal(n, ops.floor(n)))
    return ops.where(is_order, found, math.nan)
