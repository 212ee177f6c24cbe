"""Tests of private functions, which only functions of the same module can call."""

# ruff: noqa: F821

from __future__ import annotations

import numpy as np
import pytest
from support.modes import WAYS, plain

from relvm import script, vm
from relvm.bytecode.asm_parser import parse_text
from relvm.errors import RelvmNameError, RelvmShapeError, RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.ir.builder import Builder
from relvm.ir.dtypes import F32
from relvm.ir.printer import print_module
from relvm.ir.types import TensorType

# The private function is recursive and has a closure as argument, so that no pass can inline it.
RECURSIVE = """
private def _repeat(f: (f32[n]) -> f32[n], i: i64[], x: f32[n]) -> f32[n] {
  return if less(i, const(i64[], 1)) then x else @_repeat(f, subtract(i, const(i64[], 1)), f(x))
}
def main(i: i64[], x: f32[n], y: f32[n]) -> f32[n] {
  f = fn (a: f32[n]) -> f32[n] { return add(a, y) }
  return @_repeat(f, i, x)
}
"""
X = np.arange(3, dtype=np.float32)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_the_host_neither_finds_nor_lists_them(way, tmp_path) -> None:
    executable = vm.build(parse_module(RECURSIVE), *way)
    executable.save(tmp_path / "main.rvm")
    for each in (executable, vm.load(tmp_path / "main.rvm", trust_native=True)):
        machine = vm.VirtualMachine(each)
        assert machine.functions == ["main"]
        assert "_repeat" not in machine
        with pytest.raises(RelvmNameError, match=r"no function _repeat; expected one of main$"):
            machine["_repeat"]
        with pytest.raises(RelvmNameError, match=r"no function _mai; did you mean main"):
            machine["_mai"]
        np.testing.assert_array_equal(plain(machine["main"](np.int64(3), X, X)), 4 * X)


def test_a_private_function_does_not_stand_among_the_near_matches() -> None:
    machine = vm.VirtualMachine(vm.build(parse_module(RECURSIVE)))
    with pytest.raises(RelvmNameError, match=r"no function _repeatt; expected one of main$"):
        machine["_repeatt"]


def test_the_signature_has_public_functions_only() -> None:
    assert list(vm.build(parse_module(RECURSIVE)).signature) == ["main"]


def test_the_listing_says_which_are_private_and_reads_back() -> None:
    executable = vm.build(parse_module(RECURSIVE), target="numpy")
    text = executable.as_text()
    assert "= private bytecode _repeat(f, i, x)" in text
    assert "= private bytecode main_f(a, y)" in text
    assert "= bytecode main(i, x, y)" in text
    assert vm.Executable.from_program(parse_text(text)).to_bytes() == executable.to_bytes()


def test_a_private_function_as_a_value_is_called_from_python() -> None:
    text = """
    private def _twice(x: f32[n]) -> f32[n] = add(x, x)
    def main() = @_twice
    """
    for way in WAYS:
        closure = vm.VirtualMachine(vm.build(parse_module(text), *way))["main"]()
        np.testing.assert_array_equal(plain(closure(X)), 2 * X)


def test_the_text_says_it_and_reads_back() -> None:
    module = parse_module(
        "private def _f(x: f32[n]) -> f32[n] = relu(x)\n\ndef private(x: f32[n]) -> f32[n] = @_f(x)\n"
    )
    assert [f.private for f in module.functions] == [True, False]
    assert print_module(parse_module(print_module(module))) == print_module(module)


def test_a_function_of_a_script_whose_name_begins_with_an_underscore_is_private() -> None:
    @script
    class Model:
        def _helper(x: f32[n]) -> f32[n]:
            return relu(x)

        def main(x: f32[n]) -> f32[n]:
            return _helper(x)

    assert {f.name: f.private for f in Model.functions} == {"_helper": True, "main": False}
    assert vm.VirtualMachine(vm.build(Model)).functions == ["main"]


@script
def _by_reference(x: f32[n]) -> f32[n]:
    return x * 2


def test_a_private_function_by_reference() -> None:
    @script
    def main(x: f32[n]) -> f32[n]:
        return _by_reference(x)

    assert {f.name: f.private for f in main.module.functions} == {"main": False, "_by_reference": True}


def test_a_builder_makes_private_functions() -> None:
    b, vector = Builder(), TensorType(F32, (3,))
    with b.function("helper", [("x", vector)], private=True) as (x,):
        b.ret(b.op("relu", x))
    with b.function("main", [("x", vector)]) as (x,):
        b.ret(b.call("helper", x))
    assert print_module(b.module()).startswith("private def helper(x: f32[3]) -> f32[3] {")


LYING = """
private def _g(x: f32[n], y: f32[n]) -> f32[n] with (inline=false) = add(x, y)
private def _apply(f: (f32[n]) -> f32[n], x: f32[n]) -> f32[n] with (inline=false) = f(x)
def ten(x: f32[n]) -> f32[1] = const(f32[1], [10.0])
def wide(x: f32[n]) -> f64[n] = cast(x, to=f64)
def main(f: (f32[n]) -> f32[n], x: f32[n]) -> f32[n] = @_g(f(x), x)
def through(f: (f32[n]) -> f32[n], x: f32[n]) -> f32[n] = @_g(@_apply(f, x), x)
def inside(x: f32[n]) -> f32[n] = @_g(@_apply(@ten, x), x)
"""


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_what_a_function_value_gives_is_checked_before_a_private_function_uses_it(way) -> None:
    machine = vm.VirtualMachine(vm.build(parse_module(LYING), *way, verified=True))
    for name, called in (("main", "f"), ("through", "_apply")):
        with pytest.raises(
            RelvmShapeError, match=f"{name}: the result of {called}: expected dimension 0 to be 3, got 1"
        ):
            machine[name](machine["ten"], X)
        with pytest.raises(
            RelvmTypeError, match=f"{name}: the result of {called}: expected a tensor of rank 1 and dtype f32"
        ):
            machine[name](machine["wide"], X)
    with pytest.raises(RelvmShapeError, match="inside: the result of _apply: expected dimension 0 to be 3, got 1"):
        machine["inside"](X)
