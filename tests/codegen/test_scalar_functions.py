"""The routines that compiled mode prints as C functions of scalars."""

from __future__ import annotations

from relvm import vm
from relvm.frontend.text import parse_module
from relvm.lir.passes.scalar_functions import scalar_functions
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

TEXT = """
def fib(n: i64) -> i64 = if n < 2 then n else @fib(n - 1) + @fib(n - 2)
def half(x: f64, c: bool) -> f64 = if c then x / 2.0 else @half(x + 1.0, true)
def is_even(n: i64) -> bool = if n == 0 then true else @is_odd(n - 1)
def is_odd(n: i64) -> bool = if n == 0 then false else @is_even(n - 1)
def tensor(x: f32[n], k: i64) -> f32[n] = if k > 0 then @tensor(relu(x), k - 1) else x
def calls_the_host(n: i64) => object = packed("f", n)
def calls_that(n: i64) => object = @calls_the_host(n)
"""


def test_the_routines_that_compute_with_scalars_only() -> None:
    found = scalar_functions(vm.lower(run_passes(parse_module(TEXT), build_pipeline("c"))))
    types = {
        scalar.routine.name: " ".join(
            str(dtype) for dtype in (*(scalar.types[i] for i in range(len(scalar.routine.params))), scalar.result)
        )
        for scalar in found.values()
    }
    assert types == {"fib": "i64 i64", "half": "f64 bool f64", "is_even": "i64 bool", "is_odd": "i64 bool"}
    assert all(scalar.checks == len(scalar.routine.params) for scalar in found.values())
