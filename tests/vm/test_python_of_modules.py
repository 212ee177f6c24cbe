"""The Python program of built modules."""

from __future__ import annotations

import numpy as np
import pytest
from modes import assert_same_bits, plain
from random_programs import Generator, arguments

from relvm import vm
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.text import parse_module


@pytest.mark.parametrize("seed", range(6))
def test_a_built_module_is_built_again(seed: int) -> None:
    module = Generator(seed).module()
    executable = vm.build(module, "bytecode", "numpy")
    names: dict = {}
    exec(executable.as_python(), names)
    again = names["executable"]
    assert again.as_text() == executable.as_text()
    machines = [vm.VirtualMachine(each) for each in (executable, again)]
    for function in module.functions:
        if function.private:
            continue
        args = arguments(seed, 2, 3)
        with np.errstate(all="ignore"):
            assert_same_bits(*(plain(machine[function.name](*args)) for machine in machines))


@pytest.mark.parametrize(("mode", "target"), [("compiled", "numpy"), ("bytecode", "c"), ("compiled", "c")])
def test_native_code_is_refused(mode: str, target: str) -> None:
    executable = vm.build(parse_module("def main(x: f32[n]) -> f32[n] { return relu(x) }"), mode, target)
    with pytest.raises(RelvmUnsupportedError, match=r"native code has no form in Python: (native main|kernel relu)"):
        executable.as_python()
