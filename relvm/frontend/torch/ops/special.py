"""Special functions: error functions, gamma functions, Bessel functions and orthogonal polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.common.bessel_functions import (
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_k0e,
    bessel_k1e,
    bessel_y0,
    bessel_y1,
)
from relvm.frontend.common.incomplete_gamma import incomplete_gamma_kernel
from relvm.frontend.common.special_functions import (
    bessel_i0e,
    bessel_i1e,
    digamma,
    erf_inv,
    erfcx,
    hurwitz_zeta,
    lgamma,
    zeta,
)
from relvm.frontend.torch.ops.elementwise import float_argument, truncated, wide_operands
from relvm.frontend.torch.registry import Node, converts
from relvm.ir.dtypes import F64
from relvm.ir.expr import Expr, Tuple
from relvm.ir.types import TensorType, TupleType


def _declare(function: Callable[..., Expr], *names: str, in_f64: bool = False) -> None:
    """Register a function of one tensor as the converter of the operators `names`.

    in_f64: whether f32 is computed in f64, because the formula is too inexact in f32.
    """

    @converts(*names)
    def convert(node: Node, self: Expr | None = None, x: Expr | None = None) -> Expr:
        (argument,) = (each for each in (self, x) if each is not None)
        argument = float_argument(node, argument)
        return function(node.emit, node.emit(node.cast(argument, F64) if in_f64 else argument))


def _digamma(emit: Callable[[Expr], Expr], x: Expr) -> Expr:
    """Return the digamma function.  As in PyTorch, the result at 0 is the infinity of the opposite sign."""
    return ops.where(ops.equal(x, 0.0), ops.negative(ops.reciprocal(x)), digamma(emit, x))


_declare(erf_inv, "erfinv", "special_erfinv")
_declare(lgamma, "lgamma", "special_gammaln", in_f64=True)
_declare(_digamma, "digamma", "special_digamma", "special_psi", in_f64=True)
_declare(bessel_i1e, "special_i1e", in_f64=True)


def _i1(emit: Callable[[Expr], Expr], x: Expr) -> Expr:
    return ops.multiply(bessel_i1e(emit, x), ops.exp(ops.abs(x)))


def _i0(emit: Callable[[Expr], Expr], x: Expr) -> Expr:
    return ops.multiply(bessel_i0e(emit, x), ops.exp(ops.abs(x)))


_declare(_i1, "special_i1", "special_modified_bessel_i1", in_f64=True)
_declare(bessel_i0e, "special_i0e", in_f64=True)
_declare(_i0, "i0", "special_i0", "special_modified_bessel_i0", in_f64=True)


@converts("special_zeta", "special_zeta.self_scalar", "special_zeta.other_scalar")
def _zeta(node: Node, self: Any, other: Any) -> Expr:
    """Returns the Hurwitz zeta function, which is less exact where q is negative and not an integer."""
    s, q = (node.emit(node.number(each, F64)) for each in (self, other))
    return zeta(node.emit, s, q)


@converts("polygamma", "special_polygamma")
def _polygamma(node: Node, n: int, self: Expr) -> Expr:
    """Returns the derivative of order n of the digamma function.  Less exact below -32, except for n = 1."""
    x = node.emit(node.cast(float_argument(node, self), F64))
    if n == 0:
        return _digamma(node.emit, x)
    if n == 1:
        return _trigamma(node, x)
    s = node.number(n + 1, F64)
    factor = (-1.0) ** (n + 1) * math.factorial(n)
    shifted, extra = _positive(node, x, s)
    total = ops.add(hurwitz_zeta(node.emit, s, shifted), extra)
    result = node.emit(ops.multiply(total, factor))
    pole = ops.logical_and(ops.less_equal(x, 0.0), ops.equal(x, ops.floor(x)))
    return ops.where(pole, math.nan if n % 2 == 0 else math.inf, result)


_MOST_SHIFTS = 32  # the number of negative integers from which polygamma is continued


def _positive(node: Node, x: Expr, s: Expr) -> tuple[Expr, Expr]:
    """Add 1 to negative elements of x until they are not negative, at most _MOST_SHIFTS times.

    Return the result, and for each element the sum of x ** -s over the numbers that were passed.
    """
    extra: Expr = node.emit(ops.multiply(x, 0.0))
    for _ in range(_MOST_SHIFTS):
        is_negative = node.emit(ops.less(x, 0.0))
        base = node.emit(ops.where(is_negative, ops.abs(x), 1.0))
        even = ops.equal(ops.modulo(s, 2.0), 0.0)
        term = ops.power(base, ops.negative(s))
        extra = node.emit(ops.add(extra, ops.where(is_negative, ops.where(even, term, ops.negative(term)), 0.0)))
        x = node.emit(ops.where(is_negative, ops.add(x, 1.0), x))
    return x, extra


def _trigamma(node: Node, x: Expr) -> Expr:
    """Return the trigamma function, by the reflection pi^2 / sin^2(pi x) - trigamma(1 - x) for x < 0.5."""
    reflects = node.emit(ops.less(x, 0.5))
    z = node.emit(ops.where(reflects, ops.subtract(1.0, x), x))
    value = node.emit(hurwitz_zeta(node.emit, node.number(2, F64), z))
    sine = node.emit(ops.sin(ops.multiply(x, math.pi)))
    reflected = ops.subtract(ops.divide(math.pi * math.pi, ops.multiply(sine, sine)), value)
    return ops.where(reflects, reflected, value)


@converts("special_ndtr")
def _ndtr(node: Node, self: Expr) -> Expr:
    x = float_argument(node, self)
    return ops.multiply(ops.erfc(ops.multiply(x, -math.sqrt(0.5))), 0.5)


@converts("special_ndtri")
def _ndtri(node: Node, self: Expr) -> Expr:
    x = node.emit(node.cast(float_argument(node, self), F64))
    found = ops.multiply(erf_inv(node.emit, node.emit(ops.subtract(ops.multiply(x, 2.0), 1.0))), math.sqrt(2))
    outside = ops.logical_or(ops.less(x, 0.0), ops.greater(x, 1.0))
    return ops.where(outside, math.nan, found)


@converts("special_entr")
def _entr(node: Node, self: Expr) -> Expr:
    x = node.emit(float_argument(node, self))
    below = ops.where(ops.equal(x, 0), 0, node.number(-math.inf, x.known_element_type))
    positive = ops.where(ops.greater(x, 0), ops.negative(ops.multiply(x, ops.log(x))), below)
    return ops.where(ops.not_equal(x, x), x, positive)


# The polynomial of order 1 of each kind, a x + b.
_CHEBYSHEV = {"t": (1.0, 0.0), "u": (2.0, 0.0), "v": (2.0, -1.0), "w": (2.0, 1.0)}


def _polynomial(node: Node, x: Any, n: Any, first: Callable[[Expr], Expr], following: Callable[..., Expr]) -> Expr:
    """Return the orthogonal polynomials of the orders n at x, by their three-term recurrence.

    first: returns the polynomial of order 1.
    following: returns the polynomial of order k + 1, from x, k, and those of the orders k and k - 1.
    """
    builder = node.importer.builder
    shape = node.out_shape()
    x, n = (node.broadcast(node.emit(each), shape) for each in wide_operands(node, x, n))
    dtype = x.known_element_type
    n = node.emit(truncated(n))
    one = node.full(1, shape, dtype)
    highest = ops.max(n) if shape else n
    limit = node.emit(ops.minimum(highest, 200.0))
    type_, scalar = TensorType(dtype, shape), TensorType(dtype, ())
    state = TupleType((scalar, type_, type_, type_))

    def loop(recurse: Expr, k: Expr, before: Expr, current: Expr, found: Expr) -> Expr:
        go = builder.emit(ops.to_scalar(builder.emit(ops.less(k, limit))))

        def again() -> Expr:
            value = builder.emit(following(x, k, current, before))
            order = builder.emit(ops.add(k, 1.0))
            chosen = builder.emit(ops.where(ops.equal(n, order), value, found))
            return builder.call(recurse, order, current, value, chosen)

        return builder.if_(go, again, lambda: Tuple((k, before, current, found)))

    p1 = node.emit(first(x))
    start = ops.where(ops.less(n, 0.0), 0.0, ops.where(ops.equal(n, 0.0), one, p1))
    names = [("k", scalar), ("before", type_), ("current", type_), ("found", type_)]
    function = builder.local_function(names, loop, state, name="polynomial", recursive=True)
    result = node.items(builder.call(function, node.number(1, dtype), one, p1, node.emit(start)))
    return result[3]


def _declare_polynomial(
    name: str, first: Callable[[Expr], Expr], following: Callable[..., Expr], *, shifts: bool = False
) -> None:
    @converts(name, f"{name}.n_scalar", f"{name}.x_scalar")
    def convert(node: Node, x: Any, n: Any) -> Expr:
        if shifts:
            (y,) = wide_operands(node, x)
            x = node.emit(ops.subtract(ops.multiply(y, 2.0), 1.0))
        return _polynomial(node, x, n, first, following)


def _linear(a: float, b: float) -> Callable[[Expr], Expr]:
    return lambda x: ops.add(ops.multiply(x, a), b) if b else ops.multiply(x, a)


def _twice(x: Expr, k: Expr, current: Expr, before: Expr) -> Expr:
    return ops.subtract(ops.multiply(ops.multiply(x, 2.0), current), before)


for _letter, (_a, _b) in _CHEBYSHEV.items():
    _declare_polynomial(f"special_chebyshev_polynomial_{_letter}", _linear(_a, _b), _twice)
    _declare_polynomial(f"special_shifted_chebyshev_polynomial_{_letter}", _linear(_a, _b), _twice, shifts=True)
_declare_polynomial(
    "special_hermite_polynomial_h",
    _linear(2.0, 0.0),
    lambda x, k, current, before: ops.multiply(ops.subtract(ops.multiply(x, current), ops.multiply(k, before)), 2.0),
)
_declare_polynomial(
    "special_hermite_polynomial_he",
    _linear(1.0, 0.0),
    lambda x, k, current, before: ops.subtract(ops.multiply(x, current), ops.multiply(k, before)),
)
_declare_polynomial(
    "special_laguerre_polynomial_l",
    _linear(-1.0, 1.0),
    lambda x, k, current, before: ops.divide(
        ops.subtract(
            ops.multiply(ops.subtract(ops.add(ops.multiply(k, 2.0), 1.0), x), current), ops.multiply(k, before)
        ),
        ops.add(k, 1.0),
    ),
)
_declare_polynomial(
    "special_legendre_polynomial_p",
    _linear(1.0, 0.0),
    lambda x, k, current, before: ops.divide(
        ops.subtract(
            ops.multiply(ops.multiply(ops.add(ops.multiply(k, 2.0), 1.0), x), current), ops.multiply(k, before)
        ),
        ops.add(k, 1.0),
    ),
)


@converts("mvlgamma", "special_multigammaln")
def _mvlgamma(node: Node, self: Expr, p: int) -> Expr:
    if not 1 <= p <= 64:
        raise RelvmUnsupportedError(f"p is {p}, expected 1 to 64")
    x = node.emit(node.cast(float_argument(node, self), F64))
    total: Expr = ops.add(ops.multiply(x, 0.0), p * (p - 1) / 4 * math.log(math.pi))
    for i in range(p):
        total = node.emit(ops.add(total, lgamma(node.emit, node.emit(ops.subtract(x, i / 2)))))
    return total


_declare(bessel_j0, "special_bessel_j0", in_f64=True)
_declare(bessel_j1, "special_bessel_j1", in_f64=True)
_declare(bessel_y0, "special_bessel_y0", in_f64=True)
_declare(bessel_y1, "special_bessel_y1", in_f64=True)
_declare(bessel_k0e, "special_scaled_modified_bessel_k0", in_f64=True)
_declare(bessel_k1e, "special_scaled_modified_bessel_k1", in_f64=True)
_declare(airy_ai, "special_airy_ai", in_f64=True)
_declare(erfcx, "special_erfcx", in_f64=True)


def _unscaled(function: Callable[..., Expr]) -> Callable[..., Expr]:
    """Return the function without the factor exp(x)."""

    def k(emit: Callable[[Expr], Expr], x: Expr) -> Expr:
        value = emit(ops.multiply(function(emit, x), ops.exp(ops.negative(x))))
        return ops.where(ops.equal(x, math.inf), 0.0, value)

    return k


_declare(_unscaled(bessel_k0e), "special_modified_bessel_k0", in_f64=True)
_declare(_unscaled(bessel_k1e), "special_modified_bessel_k1", in_f64=True)


def _spherical_j0(emit: Callable[[Expr], Expr], x: Expr) -> Expr:
    """Return sin(x) / x, which is 1 where x is 0, and 0 where x is infinite."""
    found = ops.where(ops.equal(x, 0.0), 1.0, ops.divide(ops.sin(x), x))
    return ops.where(ops.equal(ops.abs(x), math.inf), 0.0, found)


_declare(_spherical_j0, "special_spherical_bessel_j0", in_f64=True)


def _log_ndtr(emit: Callable[[Expr], Expr], x: Expr) -> Expr:
    t = emit(ops.multiply(x, math.sqrt(0.5)))
    scaled = ops.multiply(erfcx(emit, emit(ops.negative(t))), 0.5)
    tail = ops.subtract(ops.log(scaled), ops.multiply(t, t))
    return ops.where(ops.less(x, -1.0), tail, ops.log1p(ops.multiply(ops.erfc(t), -0.5)))


_declare(_log_ndtr, "special_log_ndtr", in_f64=True)


def _declare_incomplete_gamma(*names: str, is_upper: bool) -> None:
    @converts(*names)
    def convert(node: Node, self: Expr, other: Expr) -> Expr:
        shape = node.out_shape()
        a, x = (node.broadcast(node.emit(node.cast(each, F64)), shape) for each in (self, other))
        kernel = incomplete_gamma_kernel(node.kernel_name("incomplete_gamma"), a.tensor_type, is_upper=is_upper)
        return node.call_kernel(kernel, [a, x, node.emit(lgamma(node.emit, a))], [a.tensor_type])


_declare_incomplete_gamma("igamma", "special_gammainc", is_upper=False)
_declare_incomplete_gamma("igammac", "special_gammaincc", is_upper=True)
