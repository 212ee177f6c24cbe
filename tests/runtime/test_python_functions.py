"""Python functions as arguments: closures of the machine that call them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.modes import MODES

from relvm import vm
from relvm.errors import RelvmShapeError, RelvmTypeError
from relvm.frontend.text import parse_module

TEXT = """
def apply(f: (f32[n]) => f32[n], x: f32[n]) => f32[n] {
  y = f(x)
  return add(y, x)
}
def last(f: (f32[n]) => f32[n], x: f32[n]) => f32[n] = f(x)
def after(f: (f32[n]) => f32[n], x: f32[n]) => f32[n] {
  y = @last(f, x)
  return add(y, x)
}
def pure(f: (f32[n]) -> f32[n], x: f32[n]) -> f32[n] = add(f(x), x)
def same(f: (f32[n]) => f32[n]) -> ((f32[n]) => f32[n]) = f
def later(f: (f32[n]) => f32[n], x: f32[n]) -> (() => f32[n]) = fn () => f32[n] { return f(x) }
"""
X = np.arange(3, dtype=np.float32)


class Doubling:
    def __call__(self, x: Any) -> np.ndarray:
        return np.asarray(x) * 2

    def method(self, x: Any) -> np.ndarray:
        return np.asarray(x) * 2


@pytest.fixture(params=[(mode, target) for mode in MODES for target in ("c", "numpy")], ids=" ".join)
def machine(request: pytest.FixtureRequest) -> vm.VirtualMachine:
    mode, target = request.param
    return vm.VirtualMachine(vm.build(parse_module(TEXT), mode, target))


@pytest.mark.parametrize("name", ["apply", "after"])
def test_anything_that_can_be_called_is_a_function(machine: vm.VirtualMachine, name: str) -> None:
    for f in (lambda x: np.asarray(x) * 2, Doubling(), Doubling().method, lambda x: x + X):
        np.testing.assert_array_equal(machine[name](f, X), X * 3)
    np.testing.assert_array_equal(machine[name](np.negative, X), X * 0)


@pytest.mark.parametrize(
    "result, error, message",
    [
        (X[:2], RelvmShapeError, "the result of .*: expected dimension 0 to be 3, got 2"),
        (X.astype(np.float64), RelvmTypeError, "expected a tensor of rank 1 and dtype f32, got a tensor of rank 1 and"),
        ("text", RelvmTypeError, "got string"),
        (object(), RelvmTypeError, "the result of .*<lambda>: expected an array, number"),
    ],
)
@pytest.mark.parametrize("name", ["apply", "after"])
def test_what_it_returns_is_checked(
    machine: vm.VirtualMachine, name: str, result: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        machine[name](lambda x: result, X)
    np.testing.assert_array_equal(machine[name](lambda x: x, X), X * 2)


def test_an_exception_arrives_as_it_is(machine: vm.VirtualMachine) -> None:
    def failing(x: Any) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        machine["apply"](failing, X)


def test_a_pure_type_takes_none(machine: vm.VirtualMachine) -> None:
    with pytest.raises(RelvmTypeError, match=r"pure: argument f: expected a pure function.*use => instead of ->"):
        machine["pure"](lambda x: x, X)


@pytest.mark.parametrize("value", [np.float32, 3, X])
def test_what_is_no_function_is_refused(machine: vm.VirtualMachine, value: Any) -> None:
    with pytest.raises(RelvmTypeError, match="apply: argument f: expected"):
        machine["apply"](value, X)


def test_it_lives_as_long_as_the_closure(machine: vm.VirtualMachine) -> None:
    def function(x: Any) -> np.ndarray:
        return np.asarray(x) * 2

    def held(function: Callable[..., Any]) -> Callable[[], Any]:
        return machine["later"](machine["same"](function), X)

    alive = weakref.ref(function)
    closure = held(function)
    del function
    gc.collect()
    np.testing.assert_array_equal(closure(), X * 2)
    assert alive() is not None
    del closure
    gc.collect()
    assert alive() is None


def test_it_may_call_the_machine_again(machine: vm.VirtualMachine) -> None:
    inner = machine["last"]
    np.testing.assert_array_equal(machine["apply"](lambda x: inner(lambda y: y, x), X), X * 2)


USED_AFTERWARDS = """
def main(f: (f32[n, 4]) => f32[n, 4], x: f32[n, 4]) => f32[n, 4] {
  y = f(x)
  z = relu(transpose(reshape(y, shape(n * 2, 2)), perm=(1, 0)))
  u = packed("test.python_functions.seen", z) : object
  return y
}
def branch(f: (f32[n, 4]) => f32[n, 4], x: f32[n, 4], c: bool) => f32[n, 4] {
  y = if c then f(x) else x
  u = packed("test.python_functions.seen", relu(reshape(y, shape(n * 2, 2)))) : object
  return y
}
"""


@pytest.mark.parametrize("target", ["c", "numpy"])
@pytest.mark.parametrize("mode", MODES)
def test_a_result_that_is_used_before_it_is_returned_is_checked(mode: str, target: str) -> None:
    vm.register_func("test.python_functions.seen", lambda value: None, override=True)
    machine = vm.VirtualMachine(vm.build(parse_module(USED_AFTERWARDS), mode, target))
    x = np.ones((3, 4), np.float32)
    for name, rest in (("main", ()), ("branch", (True,))):
        with pytest.raises(RelvmShapeError, match=r"the result of .*: expected dimension 0 to be 3, got 1"):
            machine[name](lambda value: np.ones((1, 4), np.float32), x, *rest)
        np.testing.assert_array_equal(machine[name](lambda value: value, x, *rest), x)


def test_containers_of_pure_functions_may_be_empty() -> None:
    text = """
def listed(p: list[(f32[4]) -> f32[4]], x: f32[4]) -> f32[4] = x
def optional(p: optional[(f32[4]) -> f32[4]], x: f32[4]) -> f32[4] = x
"""
    machine = vm.VirtualMachine(vm.build(parse_module(text), target="numpy"))
    x = np.ones(4, np.float32)
    for name, empty in (("listed", []), ("optional", None)):
        np.testing.assert_array_equal(machine[name](empty, x), x)
    with pytest.raises(RelvmTypeError, match="a pure function"):
        machine["listed"]([lambda value: value], x)


def test_a_shape_has_no_negative_size() -> None:
    machine = vm.VirtualMachine(vm.build(parse_module("def main(s: shape[a]) -> i64 = dim(max(a, 0))"), target="numpy"))
    assert machine["main"](vm.Shape([3])) == 3
    with pytest.raises(
        RelvmShapeError, match=r"main: argument s: expected a shape without negative sizes, got Shape\(-3\)"
    ):
        machine["main"](vm.Shape([-3]))
