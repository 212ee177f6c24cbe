"""Scripts whose types are annotated Python types, and where scripts are accepted and refused."""

from __future__ import annotations

import typing
from typing import Annotated

import numpy as np
import pytest

from relvm import aot, explore, language, script, vm
from relvm.errors import RelvmTypeError
from relvm.frontend.script.names import SCRIPT_FUNCTIONS
from relvm.ir.printer import print_module

Rows = Annotated[language.Tensor, "f32[n, 2]"]
T = language


@script
def halves(x: Rows) -> Annotated[tuple[language.Tensor, language.Tensor], "(f32[n, 2], f32[n, 2])"]:
    y: Rows = x * 0.5
    return y, T.relu(language.match_cast(y, Rows))


def test_types_are_annotated_python_types() -> None:
    machine = vm.VirtualMachine(vm.build(halves, target="numpy"))
    first, second = machine["halves"](np.array([[2, -4]], np.float32))
    assert (first.tolist(), second.tolist()) == ([[1, -2]], [[1, 0]])


def test_annotated_types_can_be_names_of_the_class_and_of_enclosing_functions() -> None:
    local = Annotated[language.Tensor, "f32[m]"]

    @script
    class M:
        Scale = Annotated[float, "f64"]

        @staticmethod
        def scaled(x: local, by: Scale) -> typing.Annotated[language.Tensor, "f32[m]"]:
            y: local = x * language.f32(by)
            return y

    assert "def scaled(x: f32[m], by: f64) -> f32[m]" in print_module(M)


@pytest.mark.parametrize("metadata", [(3,), ("f32[n]", "f32[m]")])
def test_annotated_types_need_one_string(metadata: tuple) -> None:
    wrong = Annotated[language.Tensor, *metadata]

    @script
    def main(x: wrong):
        return x

    with pytest.raises(RelvmTypeError, match=r"wrong: expected one type as a string.*got \d strings"):
        _ = main.module


def test_functions_of_scripts_are_called_in_scripts_only() -> None:
    with pytest.raises(RelvmTypeError, match=r'to run it: vm.VirtualMachine\(vm.build\(halves\)\)\["halves"\]'):
        halves(np.ones((1, 2), np.float32))
    for name, function in SCRIPT_FUNCTIONS.items():
        with pytest.raises(RelvmTypeError, match=f"{name} can only be called in a function decorated with @script"):
            function(1, 2)


def test_functions_that_take_modules_take_scripts() -> None:
    x = np.ones((1, 2), np.float32)
    assert "relu" in print_module(halves) and explore.explore(halves)["bytecode"].text
    assert explore.compare(halves, x, function="halves").agrees
    assert "relu" in explore.format_dataflow(halves)
    assert aot.build(halves, entry="halves").config
    with pytest.raises(RelvmTypeError, match=r"build: module: expected an ir\.Module.*, got int"):
        vm.build(3)
