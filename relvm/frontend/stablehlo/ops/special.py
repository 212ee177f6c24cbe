"""Special functions: error functions, gamma functions and Bessel functions.

Floats narrower than f32 are computed in f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import relvm.ops as ops
from relvm.frontend.common.special_functions import Emit, bessel_i1e, digamma, erf_inv, lgamma
from relvm.frontend.stablehlo.registry import Node, converts
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
