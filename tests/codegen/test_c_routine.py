"""C code of routines.

Long routines are printed as several C functions, so that the time of a build is linear in their length.  Registers that
hold only scalars are C variables.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.modes import MODES

from relvm import vm
from relvm.codegen.c.function import PART_STATEMENTS, print_routine
from relvm.frontend.text import parse_module
from relvm.lir.passes.scalar_functions import checked_types
from relvm.lir.passes.scalar_registers import object_registers, scalar_registers
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


LOOP = """
def main(x: f32[2], n: i64) -> (f32[2], f64) {
  loop = fn loop(i: i64, total: f64, x: f32[2]) -> (f32[2], f64) {
    go = i < n
    r = if go then {
      half = i % 2
      even = half == 0
      step = if even then { return 0.5 } else { return total }
      doubled = add(x, x)
      again = loop(i + 1, total + step, doubled)
      return again
    } else {
      result = (x, total)
      return result
    }
    return r
  }
  return loop(0, 1.0, x)
}"""


def test_scalars_of_a_function_are_c_variables() -> None:
    module = parse_module(LOOP)
    lir = vm.lower(run_passes(module, build_pipeline("c")))
    (loop,) = (routine for routine in lir.routines if routine.name == "main_loop")
    types = scalar_registers(loop, checked_types(loop, lir))
    assert sorted(dtype.name for index, dtype in types.items() if index > len(loop.params)) == [
        "bool",
        "bool",
        "f64",
        "i64",
    ]
    assert not object_registers(loop, types) & types.keys()
    printed = print_routine(
        loop, {name: i for i, name in enumerate(lir.functions)}, {}, parameters=checked_types(loop, lir)
    )
    assert printed.count("  int64_t s") == 3 and printed.count("  double s") == 1
    for mode in MODES:
        x, total = vm.VirtualMachine(vm.build(module, mode))["main"](np.float32([1, -1]), 3)
        np.testing.assert_array_equal(x, [8, -8])
        assert total == 1.0 + 0.5 + 1.5 + 0.5
