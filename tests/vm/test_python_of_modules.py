"""Tests of the Python program that a built module is printed as."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, seed, settings
from modes import assert_same_bits
from random_programs.generator import Programs, programs
from random_programs.host import register
from random_programs.outcomes import outcome

from relvm import vm
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.text import parse_module


@seed(0)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
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


@pytest.mark.parametrize(("mode", "target"), [("compiled", "numpy"), ("bytecode", "c"), ("bytecode", "bytecode")])
def test_native_code_is_refused(mode: str, target: str) -> None:
    executable = vm.build(parse_module("def main(x: f32[n]) -> f32[n] { return relu(x) }"), mode, target)
    with pytest.raises(
        RelvmUnsupportedError, match=r"native code and kernels cannot be printed as Python: (native main|kernel relu)"
    ):
        executable.as_python()
