"""Scripts whose types are annotated Python types, and where scripts are accepted and refused."""

from __future__ import annotations

import typing
from typing import Annotated

import numpy as np
import pytest

from relvm import aot, explore, language, script, vm
from relvm.errors import RelvmArgumentError, RelvmNameError, RelvmTypeError
from relvm.frontend.script.names import SCRIPT_FUNCTIONS
from relvm.ir.printer import print_module

Rows = Annotated[language.Tensor, "f32[n, 2]"]
Vector = Annotated[language.Tensor, "f32[n]"]
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


def test_a_script_is_called_with_arrays() -> None:
    @script
    def scaled(x: Vector, factor: float = 2.0, *, shift: float = 0.0):
        return x * factor + shift, x.max()

    assert scaled([1, 2])[0].tolist() == [2, 4]
    result, largest = scaled(np.float32([1, 2, 3]), shift=1.0, factor=3)
    assert result.tolist() == [4, 7, 10] and largest.item() == 3
    assert scaled.model is scaled.model
    with pytest.raises(RelvmArgumentError, match=r"scaled: got an unexpected .* 'shif'; expected \(x, factor, shift\)"):
        scaled([1], shif=3)
    with pytest.raises(RelvmTypeError, match="expected a tensor of rank 1"):
        scaled(np.ones((2, 2), np.float32))


def test_a_script_with_an_error_raises_it_when_it_is_called() -> None:
    @script
    def wrong(x: Vector):
        return x.relu()

    @script
    def _private(x: Vector):
        return x

    with pytest.raises(RelvmTypeError, match=r"test_script_types\.py:\d+:\d+: .*; write relu\(x\)"):
        wrong([1, 2])
    with pytest.raises(RelvmNameError, match="_private is private, because its name begins with _"):
        _private([1, 2])
    assert "write relu(x)" in wrong._repr_mimebundle_()["text/plain"]


def test_a_notebook_shows_the_program_of_a_script() -> None:
    shown = halves._repr_mimebundle_()
    assert shown["text/plain"].startswith("<script halves>\ndef ") and len(shown["text/plain"].splitlines()) <= 11
    assert "<b>&lt;script halves&gt;</b>" in shown["text/html"] and "<script" not in shown["text/html"]
