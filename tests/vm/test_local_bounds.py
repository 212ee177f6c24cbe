"""Bounds that local, private and inlined functions declare are checked by each call, as those of other functions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from relvm import vm
from relvm.errors import RelvmNameError, RelvmShapeError
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module
from relvm.ir.interpreter import evaluate
from relvm.ir.type_inference import infer_types

BOUNDS = 'upper_bounds=(("m", 4),), lower_bounds=(("m", 2),)'
RESULT = "f32[m, 4] with ({}) {{ return relu(softmax(y)) }}"
LOCAL = "def main(x: f32[n, 4]) -> f32[n, 4] {{\n f = fn (y: f32[m, 4]) -> " + RESULT + "\n {}\n}}"
PRIVATE = "def main(x: f32[n, 4]) -> f32[n, 4] = @f(x)\nprivate def f(y: f32[m, 4]) -> " + RESULT
PROGRAMS = {
    "a local function that is called once": LOCAL.format(BOUNDS, "return f(x)"),
    "a local function that is called twice": LOCAL.format(BOUNDS, "a = f(x)\n return f(a)"),
    "a local function in a branch": LOCAL.format(BOUNDS, "return if true then f(x) else x"),
    "a local function as a value": LOCAL.format(BOUNDS, "return @apply(f, x)")
    + "\ndef apply(g: (f32[k, 4]) -> f32[k, 4], x: f32[k, 4]) -> f32[k, 4] = g(x)",
    "a private function": PRIVATE.format(BOUNDS),
    "a private function to inline": PRIVATE.format(f"inline=true, {BOUNDS}"),
    "a dimension of the enclosing function": re.sub(r"\bm\b", "n", LOCAL.format(BOUNDS, "return f(x)")),
}
MODES = {"bytecode": ("bytecode", "bytecode"), "numpy": ("bytecode", "numpy"), "compiled": ("compiled", "c")}


def run(module: Module, mode: str, x: np.ndarray) -> Any:
    if mode == "interpreter":
        return evaluate(infer_types(module), "main", x)
    return np.asarray(vm.VirtualMachine(vm.build(module, *MODES[mode]))["main"](x))


@pytest.mark.parametrize("mode", [*MODES, "interpreter"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_each_call_checks_the_bounds(program: str, mode: str) -> None:
    module = parse_module(program)
    for size in (2, 4):
        assert run(module, mode, np.ones((size, 4), np.float32)).shape == (size, 4)
    for size, refused in (
        (1, "must be at least 2, got 1"),
        (5, "is 5, expected at most 4"),
        (0, "must be at least 2, got 0"),
    ):
        with pytest.raises(RelvmShapeError, match=rf"dimension [a-z]\w* {refused}(\n|$)"):
            run(module, mode, np.ones((size, 4), np.float32))


@pytest.mark.parametrize("mode", ["bytecode", "interpreter"])
def test_bounds_of_a_local_function_name_its_dimensions(mode: str) -> None:
    module = parse_module(LOCAL.format('upper_bounds=(("k", 4),)', "return f(x)"))
    with pytest.raises(RelvmNameError, match="upper_bounds: no parameter's type has a dimension k"):
        run(module, mode, np.ones((2, 4), np.float32))
