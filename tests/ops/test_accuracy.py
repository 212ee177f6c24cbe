"""The f32 functions of csrc/codegen/kernel_math.h have an error of at most 2 units in the last place.

The tests cover the whole range of floats and the special values.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from relvm import vm
from relvm._native import lib
from relvm.frontend.text import parse_module
from relvm.tables import CPU_FEATURES

FUNCTIONS = {
    "exp": np.exp,
    "exp_ftz": lambda x: np.where(x < np.float32(-86.9), 0, np.exp(x)),
    "log": np.log,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "sin": np.vectorize(lambda x: math.sin(x) if math.isfinite(x) else math.nan, otypes=[np.float64]),
    "cos": np.vectorize(lambda x: math.cos(x) if math.isfinite(x) else math.nan, otypes=[np.float64]),
}
UNITS = 2

# Baseline x86-64 has no fused multiply-add.  Results are rounded differently, and some functions have other C code.
IS_X86 = any(lib.rvm_cpu_features() >> row.index & 1 for row in CPU_FEATURES)
PROCESSORS = ["c", *(["x86-64"] if IS_X86 else [])]

SHARES = """
def softmax_of(x: f32[m, n]) -> f32[m, n] = softmax(x, axis=1)
def shares_of(x: f32[m, n]) -> object {
  powers = exp(subtract(x, max(x, axes=(1,), keepdims=true)))
  return divide(powers, sum(powers, axes=(1,), keepdims=true))
}
def attention_of(q: f32[m, 1], k: f32[n, 1], v: f32[n, 8]) -> f32[m, 8] {
  return attention(q, k, v, const(bool[], true), const(f32[], 0), scale=1)
}
"""
MODULE = parse_module(
    "\n".join(f"def {name}_of(x: f32[n]) -> f32[n] {{ return {name}(x) }}" for name in FUNCTIONS) + SHARES
)
F64 = parse_module("def main(x: f64[n]) -> f64[n] = exp_ftz(x)")


@cache
def machine(target: str) -> vm.VirtualMachine:
    return vm.VirtualMachine(vm.build(MODULE, "compiled", target))


def floats_of(bits: np.ndarray) -> np.ndarray:
    return bits.astype(np.uint32).view(np.float32)


def sampled() -> np.ndarray:
    """Return floats of every exponent and sign, NaN, many floats with magnitudes between 2^-6 and 2^8, and floats near
    critical points.

    These points are the multiples of 1/8, at which functions switch polynomials, and the multiples of pi / 2.
    """
    everywhere = floats_of(np.arange(0, 2**32, 30011))
    low, high = np.float32([2**-6, 2**8]).view(np.uint32)
    usual = floats_of(np.arange(low, high, 1013))
    places = np.concatenate([np.arange(-128, 128) / 8, np.arange(-400, 400) * (np.pi / 2)]).astype(np.float32)
    near = (places[:, None] + np.arange(-3, 4) * np.spacing(places)[:, None]).ravel().astype(np.float32)
    return np.concatenate([everywhere, usual, -usual, near])


def exactly(name: str, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return FUNCTIONS[name](x.astype(np.float64))


@pytest.mark.parametrize("target", PROCESSORS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_small_everywhere(name: str, target: str) -> None:
    x = sampled()
    exact, got = exactly(name, x), machine(target)[f"{name}_of"](x).numpy()
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
    is_finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~is_finite], rounded[~is_finite])
    errors = np.abs(got[is_finite] - exact[is_finite]) / np.spacing(np.abs(rounded[is_finite])).astype(np.float64)
    worst = errors.argmax()
    assert errors[worst] <= UNITS, f"{name}({x[is_finite][worst].item().hex()}): {errors[worst]} units"


@pytest.mark.parametrize("target", PROCESSORS)
@pytest.mark.parametrize("name", ["tanh", "erf", "sin", "cos"])
def test_nothing_is_beyond_the_largest_value(name: str, target: str) -> None:
    got = machine(target)[f"{name}_of"](sampled()).numpy()
    assert np.nanmax(np.abs(got)) == 1


@pytest.mark.parametrize("target", PROCESSORS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_are_those_of_the_c_library(name: str, target: str) -> None:
    limits = np.finfo(np.float32)
    x = np.float32([0, np.inf, np.nan, 1, limits.max, limits.tiny, limits.smallest_subnormal, 104, 88.75, 2**127])
    x = np.concatenate([x, -x])
    got = machine(target)[f"{name}_of"](x).numpy()
    with np.errstate(all="ignore"):
        rounded = exactly(name, x).astype(np.float32)
    is_special = ~np.isfinite(rounded) | (rounded == 0) | (np.abs(x) < limits.tiny * 2)
    np.testing.assert_allclose(got[is_special], rounded[is_special], rtol=2 * limits.eps, atol=0)
    is_number = ~np.isnan(rounded)
    np.testing.assert_array_equal(np.signbit(got[is_number]), np.signbit(rounded[is_number]))


@pytest.mark.parametrize("target", PROCESSORS)
def test_powers_of_e_that_are_subnormal(target: str) -> None:
    x = np.linspace(-104.5, -87, 20001, dtype=np.float32)
    got = machine(target)["exp_of"](x).numpy()
    step = np.finfo(np.float32).smallest_subnormal
    assert np.all(np.abs(got - np.exp(x.astype(np.float64))) <= UNITS * np.maximum(np.spacing(got), step))
    assert len(np.unique(got[got < np.finfo(np.float32).tiny])) > 5000


@pytest.mark.parametrize("target", PROCESSORS)
def test_exponentials_of_f64_are_never_subnormal(target: str) -> None:
    x = np.concatenate([np.linspace(-745, -700, 20001), [-np.inf, 0, 709, np.inf, np.nan]])
    got = vm.VirtualMachine(vm.build(F64, "compiled", target))["main"](x).numpy()
    exact = np.where(x < -708.3, 0, np.exp(x))
    np.testing.assert_allclose(got, exact, rtol=1e-15)


@pytest.mark.parametrize("target", PROCESSORS)
def test_subnormal_exponentials_of_a_softmax_count_as_0(target: str) -> None:
    """The same is true for a softmax that is written as exp, sum and division, and for attention."""
    scores = np.float32([[0, -86, -87, -90, -100, -103, -104, -200]])
    powers = np.exp(scores.astype(np.float64))
    powers[scores < -86.9] = 0
    machines = machine(target)
    for name in ("softmax_of", "shares_of"):
        got = machines[name](scores).numpy()
        np.testing.assert_allclose(got, powers / powers.sum(), rtol=1e-6)
        assert np.count_nonzero(got) == 2
    got = machines["attention_of"](np.ones((1, 1), np.float32), scores.T, np.eye(8, dtype=np.float32)).numpy()
    assert np.count_nonzero(got) == 1


def test_a_folded_softmax_has_no_subnormal_exponentials() -> None:
    module = parse_module("def main() -> object = softmax(const(f32[1, 4], [[0.0, -86.0, -90.0, -100.0]]), axis=1)")
    got = vm.VirtualMachine(vm.build(module))["main"]().numpy()
    assert np.count_nonzero(got) == 2


@pytest.mark.parametrize("target", PROCESSORS)
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_whose_rest_is_smallest(name: str, target: str) -> None:
    """The argument reduction is accurate in the hardest cases.

    These are the bounds of the ranges that use different bits of 2 / pi, and the float closest to a multiple of pi / 2,
    16367173 * 2^72 (source: Muller, Elementary Functions, 2006).
    """
    ends = np.float32([2.0**e for e in (50, 76, 102, 127)])
    x = np.concatenate([ends, np.nextafter(ends, np.float32(0)), np.float32([16367173 * 2.0**72])])
    x = np.concatenate([x, -x])
    exact, got = exactly(name, x), machine(target)[f"{name}_of"](x).numpy()
    assert np.all(np.abs(got - exact) <= UNITS * np.spacing(np.abs(got)).astype(np.float64))
