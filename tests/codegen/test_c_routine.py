"""Long routines are printed as several C functions, so that the time of a build is linear in their length."""

from __future__ import annotations

import numpy as np
import pytest
from support.modes import MODES

from relvm import vm
from relvm.codegen.c.function import PART_STATEMENTS, print_routine
from relvm.frontend.text import parse_module
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

COUNT = 600


def chain(indent: str, count: int) -> str:
    return "".join(f"{indent}v{i + 1} = add(v{i}, x)\n" for i in range(count))


LONG = f"def main(x: f32[2], c: bool) -> f32[2] {{\n  v0 = x\n{chain('  ', COUNT)}  return v{COUNT}\n}}"
LONG_BRANCH = (
    f"def main(x: f32[2], c: bool) -> f32[2] {{\n  r = if c then {{\n    v0 = x\n{chain('    ', COUNT)}"
    f"    return v{COUNT}\n  }} else {{ return x }}\n  return r\n}}"
)


@pytest.mark.parametrize("text", [LONG, LONG_BRANCH], ids=["a body", "a branch"])
def test_long_blocks_become_parts_that_compute_the_same(text: str) -> None:
    module = parse_module(text)
    lir = vm.lower(run_passes(module, build_pipeline("c", fused=False)))
    printed = print_routine(lir.routines[0], {name: i for i, name in enumerate(lir.functions)}, {})
    functions = printed.split("\n}\n")
    assert len(functions) > COUNT // PART_STATEMENTS
    assert max(function.count("\n") for function in functions) <= PART_STATEMENTS + 10
    for mode in MODES:
        result = vm.VirtualMachine(vm.build(module, mode))["main"](np.float32([1, 2]), True)
        np.testing.assert_array_equal(result, np.float32([1, 2]) * (COUNT + 1))


def test_a_function_may_have_a_name_that_ends_comments() -> None:
    text = """
    def main(x: f32[2]) -> f32[2] { return @"*/ x"(x) }
    def "*/ x"(x: f32[2]) -> f32[2] { return relu(x) }"""
    machine = vm.VirtualMachine(vm.build(parse_module(text), "compiled"))
    np.testing.assert_array_equal(machine["main"](np.float32([1, -1])), [1, 0])
