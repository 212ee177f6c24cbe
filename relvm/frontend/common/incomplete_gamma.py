"""The regularized incomplete gamma functions."""

from __future__ import annotations

import math

from relvm.frontend.common.kernel_parts import buffers, loops
from relvm.ir.dtypes import F64, I64
from relvm.ir.kernel_def import KernelDef
from relvm.ir.loop_ir import Literal, Operation, Scalar, select
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder

_LARGE = 1e4  # from this a on, the uniform asymptotic expansion has 9 digits
_TINY = 1e-290


def _f64(value: float) -> Scalar:
    return Literal(value, F64)


def _call(name: str, *arguments: Scalar) -> Scalar:
    return Operation(name, arguments, F64)


def incomplete_gamma_kernel(name: str, type_: TensorType, *, is_upper: bool) -> KernelDef:
    """Return the kernel of P(a, x), the regularized lower incomplete gamma function, or of Q(a, x) = 1 - P(a, x).

    The operands are a, x and the logarithm of the gamma function of a, which are all of the type `type_` of f64.

    is_upper: return Q instead of P.

    Notes
    -----
    Source: a power series for x < a + 1 and a continued fraction above, as in Press et al., Numerical Recipes, 6.2;
    and for large a, the first terms of Temme's expansion, DLMF 8.12.
    """
    k = KernelBuilder()
    a_in, x_in, log_in = buffers("operand", [type_] * 3)
    (out,) = buffers("out", [type_], is_output=True)
    lowest, highest = (_f64(1.0), _f64(0.0)) if is_upper else (_f64(0.0), _f64(1.0))
    with loops(k, out.shape) as at:
        a, x, log_gamma = (k.let(stem, each[at]) for stem, each in (("a", a_in), ("x", x_in), ("log_gamma", log_in)))
        found = k.variable("found", _f64(math.nan))
        inside = k.let("inside", (a > _f64(0)).logical_and(x > _f64(0)).logical_and(a + x < _f64(math.inf)))
        with k.branch(inside.logical_and(a <= _f64(_LARGE))):
            scale = k.let("scale", _call("exp", a * _call("log", x) - x - log_gamma))
            count = k.let("count", (_call("sqrt", a) * _f64(9) + _f64(100)).to(I64))
            is_series = k.let("is_series", x < a + _f64(1))
            with k.branch(is_series):
                lower = k.let("lower", _series(k, a, x, count) * scale)
                k.assign(found, _f64(1) - lower if is_upper else lower)
            with k.branch(is_series.logical_not()):
                upper = k.let("upper", _fraction(k, a, x, count) * scale)
                k.assign(found, upper if is_upper else _f64(1) - upper)
        with k.branch(inside.logical_and(a > _f64(_LARGE))):
            k.assign(found, _expansion(k, a, x, is_upper=is_upper))
        both = k.let("both", (a >= _f64(0)).logical_and(x >= _f64(0)).logical_and((a + x).eq(a + x)))
        with k.branch(both.logical_and(inside.logical_not())):
            infinite_a, infinite_x = a.eq(_f64(math.inf)), x.eq(_f64(math.inf))
            edge = select(infinite_x.logical_or(a.eq(_f64(0))), highest, lowest)
            undefined = infinite_a.logical_and(infinite_x).logical_or(a.eq(_f64(0)).logical_and(x.eq(_f64(0))))
            k.assign(found, select(undefined, _f64(math.nan), select(infinite_a, lowest, edge)))
        k.store(out, at, found)
    return KernelDef(name, (a_in, x_in, log_in), (out,), k.finish())


def _series(k: KernelBuilder, a: Scalar, x: Scalar, count: Scalar) -> Scalar:
    """Return the sum of x^n / (a (a + 1) ... (a + n)) over n from 0 to `count`."""
    term = k.variable("term", _f64(1) / a)
    total = k.variable("total", term)
    with k.loop(count, name="n") as n:
        k.assign(term, term * x / (a + n.to(F64) + _f64(1)))
        k.assign(total, total + term)
    return total


def _fraction(k: KernelBuilder, a: Scalar, x: Scalar, count: Scalar) -> Scalar:
    """Return `count` steps of the continued fraction for the upper function, by Lentz's method."""

    def away_from_zero(value: Scalar) -> Scalar:
        return select(_call("abs", value) < _f64(_TINY), _f64(_TINY), value)

    b = k.variable("b", x + _f64(1) - a)
    c = k.variable("c", _f64(1 / _TINY))
    d = k.variable("d", _f64(1) / away_from_zero(b))
    h = k.variable("h", d)
    with k.loop(count, name="n") as n:
        step = k.let("step", n.to(F64) + _f64(1))
        factor = k.let("factor", step * (a - step))
        k.assign(b, b + _f64(2))
        k.assign(d, factor * d + b)
        k.assign(d, _f64(1) / away_from_zero(d))
        k.assign(c, b + factor / c)
        k.assign(c, away_from_zero(c))
        k.assign(h, h * (d * c))
    return h


def _expansion(k: KernelBuilder, a: Scalar, x: Scalar, *, is_upper: bool) -> Scalar:
    """Return P(a, x), or Q(a, x) if `is_upper`, for large a."""
    mu = k.let("mu", (x - a) / a)
    powers = _f64(2 / 3) - mu * (_f64(1 / 2) - mu * (_f64(2 / 5) - mu * _f64(1 / 3)))
    is_near = k.let("is_near", _call("abs", mu) < _f64(1e-3))
    square = select(is_near, mu * mu * (_f64(1) - mu * powers), _f64(2) * (mu - _call("log", _f64(1) + mu)))
    size = k.let("size", _call("sqrt", square))
    eta = k.let("eta", select(mu < _f64(0), -size, size))
    divisor = k.let("divisor", select(is_near, _f64(1), eta))
    excess = k.let("excess", select(is_near, _f64(1), mu))
    near = _f64(-1 / 3) + eta * (_f64(1 / 12) - eta * _f64(2 / 135))
    first = k.let("first", select(is_near, near, _f64(1) / excess - _f64(1) / divisor))
    decay = _call("exp", _f64(-0.5) * a * eta * eta)
    rest = k.let("rest", decay * first / _call("sqrt", _f64(2 * math.pi) * a))
    z = k.let("z", eta * _call("sqrt", _f64(0.5) * a))
    if is_upper:
        return _f64(0.5) * (_f64(1) - _call("erf", z)) + rest
    return _f64(0.5) * (_f64(1) + _call("erf", z)) - rest
