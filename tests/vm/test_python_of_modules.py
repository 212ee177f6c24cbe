"""Tests of the Python program that a built module is printed as."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from random_programs.generator import Programs, programs
from random_programs.host import register
from random_programs.outcomes import outcome
from support.modes import ALL_MODES, TARGETS, assert_same_bits

from relvm import vm
from relvm.frontend.text import parse_module


@seed(0)
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(programs(6, has_kernels=False))
def test_a_built_module_is_built_again(made: Programs) -> None:
    register()
    executable = vm.build(made.module, "bytecode", "numpy")
    names: dict = {}
    exec(executable.as_python(), names)
    again = names["executable"]
    assert again.as_text() == executable.as_text()
    machines = [vm.VirtualMachine(each) for each in (executable, again)]
    for run in made.runs:
        type_ = made.module[run.name].result_type
        first, second = (outcome(machine[run.name], run.args, type_) for machine in machines)
        assert repr(first.error) == repr(second.error)
        assert_same_bits((first.value, first.log), (second.value, second.log))


TEXT = """def f(x: f32[n], k: i64) -> f32[n] { y = if k == 0 then x else @f(relu(add(x, x)), k - 1); return y }
def main(x: f32[n]) -> f32[n] { g = fn (a: f32[n]) -> f32[n] { return multiply(a, x) }; return @f(g(x), 3) }"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mode", ALL_MODES)
def test_every_mode_and_target_is_built_again(mode: str, target: str) -> None:
    executable = vm.build(parse_module(TEXT), mode, target)
    names: dict = {}
    exec(executable.as_python(), names)
    again = names["executable"]
    assert again.to_bytes() == executable.to_bytes()
    x = np.float32([-1, 2, -3])
    assert vm.VirtualMachine(again)["main"](x).numpy().tolist() == [8, 32, 72]


def test_a_portable_program_is_built_again() -> None:
    executable = vm.build(parse_module(TEXT), "compiled", "c", portable=True)
    names: dict = {}
    exec(executable.as_python(), names)
    assert names["executable"].to_bytes() == executable.to_bytes()
    assert names["executable"].portable.as_text() == executable.portable.as_text()
