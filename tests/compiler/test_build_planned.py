"""The text of a module at stage PLANNED is built without running passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.modes import assert_same_bits, plain

from relvm import vm
from relvm.codegen.lower_to_lir import lower_to_routines
from relvm.compiler.build import build_planned
from relvm.compiler.find_compiler import find_compiler
from relvm.errors import RelvmArgumentError, RelvmTypeError, RelvmVerifyError
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module
from relvm.ir.printer import print_module
from relvm.ir.type_inference import infer_types
from relvm.lir.printer import format_module
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

X = np.float32([1, -2, 3])
PROGRAMS = {
    "a branch and a constant": (
        "def main(x: f32[n], c: bool) -> f32[n] { return if c then add(relu(x), const(f32[1], [2])) else x }",
        (X, True),
    ),
    "scalars and calls": (
        """def main(x: i64, y: f64) -> (i64, f64) = (@f(x) + @f(2), if y > 0.5 then y * 2.0 else y)
        def f(i: i64) -> i64 with (inline=false) { return if i < 3 then i else @f(i - 1) }""",
        (9, 0.75),
    ),
    "a closure, a list and a size": (
        """def main(x: f32[n]) -> (f32[n], i64) {
          g = fn (a: f32[n]) -> f32[n] { return add(a, x) }
          l = make_list(x, g(x))
          return (softmax(list_item(l, 1), axis=0), dim(n * 2))
        }""",
        (X,),
    ),
}


def planned(text: str) -> Module:
    return run_passes(parse_module(text), build_pipeline("bytecode"))


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("mode", ["bytecode", "compiled"] if find_compiler() else ["bytecode"])
def test_a_printed_module_builds_to_the_same_program(program: str, mode: str) -> None:
    text, args = PROGRAMS[program]
    module = planned(text)
    printed = print_module(module)
    executable = build_planned(parse_module(printed), mode, "bytecode", kernels=module.kernels)
    expected = vm.VirtualMachine(vm.build(parse_module(text)))["main"](*args)
    assert_same_bits(plain(vm.VirtualMachine(executable)["main"](*args)), plain(expected))


def test_an_edited_module_is_built() -> None:
    printed = print_module(planned("def main(x: i64) -> i64 = x + 1"))
    assert "x + 1" in printed
    machine = vm.VirtualMachine(build_planned(parse_module(printed.replace("x + 1", "x * 7")), target="bytecode"))
    assert machine["main"](3) == 21


def test_what_is_not_planned_is_refused() -> None:
    module = planned(PROGRAMS["a branch and a constant"][0])
    with pytest.raises(RelvmVerifyError, match="unknown kernel relu_add_f32"):
        build_planned(parse_module(print_module(module)), target="bytecode")
    with pytest.raises(RelvmVerifyError, match="at stage PLANNED"):
        build_planned(parse_module("def main(x: f32[4]) -> f32[4] { return relu(x) }"))
    with pytest.raises(RelvmTypeError, match=r"build_planned: module: expected an ir\.Module"):
        build_planned(print_module(module))
    with pytest.raises(RelvmArgumentError, match='got "auto"'):
        build_planned(parse_module("def main(x: i64) -> i64 { return x }"), "auto")


RETURNED = """def main(x: f32[4]) => (f32[4], object) {
  storage: object = builtin.alloc_storage(shape(4), 0, dtype(f32))
  y: f32[4] = builtin.alloc_tensor(storage, 0, shape(4), dtype(f32))
  r: object = run relu_f32(x, y)
  both: (f32[4], object) = (y, r)
  return both
}
"""


@pytest.mark.parametrize("target", ["bytecode", "c"] if find_compiler() else ["bytecode"])
@pytest.mark.parametrize("mode", ["bytecode", "compiled"] if find_compiler() else ["bytecode"])
def test_the_value_that_a_kernel_returns_is_stored(mode: str, target: str) -> None:
    text = "def main(x: f32[4]) -> f32[4] = relu(x)"
    kernels = run_passes(parse_module(text), build_pipeline(target, fused=False)).kernels
    module = parse_module(RETURNED)
    assert print_module(module) == RETURNED
    executable = build_planned(module, mode, target, kernels=kernels)
    routine = format_module(lower_to_routines(infer_types(replace(module, kernels=kernels))))
    assert (
        'anylist_setitem_call_cpacked(r, 4, "relu_f32", anylist_getitem(r, 0), anylist_getitem(r, 3), null)' in routine
    )
    machine = vm.VirtualMachine(executable)
    for instrument in (None, lambda *args: None):  # native code calls kernels of an instrumented machine differently
        machine.set_instrument(instrument)
        result, returned = machine["main"](np.array([-1, 2, -3, 4], np.float32))
        assert (result.numpy().tolist(), returned) == ([0, 2, 0, 4], None)
