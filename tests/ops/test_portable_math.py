"""The functions of csrc/codegen/portable_math.h: errors, special values, and signs of zeros.

The errors of f64 are measured with the 80-bit floats of x86-64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from relvm import vm
from relvm.frontend.text import parse_module
from relvm.ir.portable_random import PortableRandom

UNARY = {
    "acos": (np.arccos, (-1, 1)),
    "acosh": (np.arccosh, (1, 40)),
    "asin": (np.arcsin, (-1, 1)),
    "asinh": (np.arcsinh, (-40, 40)),
    "atan": (np.arctan, (-9, 9)),
    "atanh": (np.arctanh, (-1, 1)),
    "cbrt": (np.cbrt, (-9, 9)),
    "cos": (np.cos, (-99, 99)),
    "cosh": (np.cosh, (-700, 700)),
    "erf": (np.vectorize(math.erf, otypes=[float]), (-6, 6)),
    "erfc": (np.vectorize(math.erfc, otypes=[float]), (-6, 26)),
    "exp": (np.exp, (-708, 709)),
    "expm1": (np.expm1, (-40, 709)),
    "log": (np.log, (0, 9)),
    "log1p": (np.log1p, (-1, 9)),
    "sin": (np.sin, (-99, 99)),
    "sinh": (np.sinh, (-700, 700)),
    "tan": (np.tan, (-99, 99)),
    "tanh": (np.tanh, (-20, 20)),
}
BINARY = {"power": np.power, "atan2": np.arctan2}
IN_F32 = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cosh", "erfc", "expm1", "sinh", "tan")
UNITS = {"erfc": 6, "erf": 3}  # of f64, including an error of the reference; others: 2.5
has_long_doubles = np.finfo(np.longdouble).nmant > 60

SPECIAL = [0.0, -0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 709.8, 745.2, 2.0**53, 1e22, 1e300, 5e-324, 2.2e-308, math.inf]
SPECIAL = np.array([*SPECIAL, *(-x for x in SPECIAL), math.nan, 6381956970095103 * 2.0**797])

_TEXTS = [f"def {name}_{t}(x: {t}[n]) -> {t}[n] = {name}(x)" for name in UNARY for t in ("f32", "f64")]
_TEXTS += [f"def {name}_{t}(x: {t}[n], y: {t}[n]) -> {t}[n] = {name}(x, y)" for name in BINARY for t in ("f32", "f64")]
MACHINE = vm.VirtualMachine(vm.build(parse_module("\n".join(_TEXTS)), target="bytecode"))


def computed(name: str, *arrays: np.ndarray) -> np.ndarray:
    return MACHINE[f"{name}_{'f32' if arrays[0].dtype == np.float32 else 'f64'}"](*arrays).numpy()


def exactly(function: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return function(*(x.astype(np.longdouble) for x in arrays))


def worst(got: np.ndarray, exact: np.ndarray) -> float:
    """Return the largest error in units in the last place, of the elements with a finite result."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        is_normal = np.isfinite(rounded) & (np.abs(rounded) >= np.finfo(got.dtype).tiny)
        errors = np.abs(got.astype(np.longdouble) - exact)[is_normal] / np.spacing(np.abs(rounded[is_normal]))
    return float(errors.max())


def numbers(low: float, high: float) -> np.ndarray:
    """Return numbers between two bounds: even ones, small ones of every exponent, and some near the bounds."""
    rng = PortableRandom(5)
    even = low + (high - low) * rng.random(20000)
    small = np.clip(np.ldexp(rng.standard_normal(4000), rng.integers(-60, 1, 4000)), low, high)
    return np.concatenate([even, small, low + small**2, high - small**2]).clip(low, high)


@pytest.mark.skipif(not has_long_doubles, reason="no floats of 80 bits")
@pytest.mark.parametrize("name", UNARY)
def test_errors_of_f64_are_small(name: str) -> None:
    function, bounds = UNARY[name]
    x = numbers(*bounds)
    assert worst(computed(name, x), exactly(function, x)) <= UNITS.get(name, 2.5)


@pytest.mark.parametrize("name", IN_F32)
def test_errors_of_f32_are_less_than_0_51_units(name: str) -> None:
    function, (low, high) = UNARY[name]
    x = numbers(max(low, -80), min(high, 80)).astype(np.float32)
    assert worst(computed(name, x), exactly(function, x)) <= 0.51


@pytest.mark.skipif(not has_long_doubles, reason="no floats of 80 bits")
def test_errors_of_functions_of_two_operands() -> None:
    rng = PortableRandom(6)
    base = np.concatenate([np.exp(rng.standard_normal(20000) * 100), 1 + np.ldexp(rng.standard_normal(20000), -27)])
    limit = 700 / np.maximum(np.abs(np.log(base)), 1e-300)
    y = (2 * rng.random(base.size) - 1) * np.minimum(limit, 1e11)
    assert worst(computed("power", base, y), exactly(np.power, base, y)) <= 2
    x = rng.standard_normal(20000) * np.ldexp(1.0, rng.integers(-20, 20, 20000))
    z = rng.standard_normal(20000)
    assert worst(computed("atan2", x, z), exactly(np.arctan2, x, z)) <= 2
    for name, function in BINARY.items():
        u, v = (np.float32(rng.standard_normal(20000) * 9) for _ in range(2))
        u = np.abs(u) if name == "power" else u
        assert worst(computed(name, u, v), exactly(function, u, v)) <= 0.51


def expect_specials(got: np.ndarray, want: np.ndarray) -> None:
    """Check which elements are NaN, infinities and zeros, and the signs of all that are no NaN."""
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    is_special = np.isinf(want) | (want == 0)
    np.testing.assert_array_equal(got[is_special], want[is_special])
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(want)]), np.signbit(want[~np.isnan(want)]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", UNARY)
def test_special_values_are_those_of_c(name: str, dtype: type) -> None:
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(dtype)
        reference = UNARY[name][0](x.astype(np.float64)).astype(dtype)
    expect_specials(computed(name, x), reference)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", BINARY)
def test_special_values_of_two_operands_are_those_of_c(name: str, dtype: type) -> None:
    with np.errstate(all="ignore"):
        x, y = (grid.ravel().astype(dtype) for grid in np.meshgrid(SPECIAL, SPECIAL))
        reference = BINARY[name](x.astype(np.float64), y.astype(np.float64)).astype(dtype)
    expect_specials(computed(name, x, y), reference)


def test_large_angles_are_reduced_exactly() -> None:
    """The double closest to a multiple of pi / 2 (Muller, Elementary Functions, 2006)."""
    x = np.array([6381956970095103 * 2.0**797])
    assert computed("cos", x)[0] == -4.68716592425462761112e-19
    assert computed("sin", x)[0] == 1.0
