"""Tests of unusual uses of a machine: copies, drops from other threads, exceptions that cannot be shown."""

from __future__ import annotations

import copy
import pickle
import queue
import threading

import numpy as np
import pytest
from support.modes import MODES

from relvm import vm
from relvm.errors import RelvmTypeError
from relvm.frontend.text import parse_module

DOUBLE = parse_module("def main(x: f32[n]) -> f32[n] = add(x, x)")
X = np.ones(10, np.float32)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_a_tensor_of_a_machine_is_not_duplicated_behind_its_back(duplicate) -> None:
    tensor = vm.VirtualMachine(vm.build(DOUBLE))["main"](X)
    with pytest.raises(RelvmTypeError, match=r"Tensor cannot be copied or pickled; np\.array"):
        duplicate(tensor)


def test_dropping_results_on_another_thread_never_makes_the_machine_busy() -> None:
    run = vm.VirtualMachine(vm.build(DOUBLE))["main"]
    results: queue.Queue = queue.Queue()

    def drop() -> None:
        while results.get() is not None:
            pass

    thread = threading.Thread(target=drop)
    thread.start()
    for _ in range(5000):
        results.put(run(X))
    results.put(None)
    thread.join()


def test_an_exception_that_cannot_be_shown_still_ends_the_run() -> None:
    class Unshowable(Exception):
        def __str__(self) -> str:
            raise ValueError

    def fail(x):
        raise Unshowable

    vm.register_func("test.hard.fail", fail, override=True)
    machine = vm.VirtualMachine(vm.build(parse_module('def main(x: object) = packed("test.hard.fail", x)')))
    with pytest.raises(Unshowable):
        machine["main"](1)


@pytest.mark.parametrize(("value", "truth"), [([True], True), ([False], False), (True, True)])
def test_the_truth_of_a_tensor_is_its_element(value, truth) -> None:
    x = np.array(value)
    dims = "1" if x.ndim else ""
    tensor = vm.VirtualMachine(vm.build(parse_module(f"def main(x: bool[{dims}]) = logical_not(x)")))["main"](x)
    assert bool(tensor) is not truth


@pytest.mark.parametrize(
    "text",
    [
        "def main(x: f32[_]) = relu(x)",
        "def main(x: i64[2]) { s = tensor_to_shape(x)\n return broadcast_to(const(f32[], 1), s) }",
    ],
    ids=["a tensor of known rank", "a shape from data"],
)
def test_results_whose_sizes_are_known_at_run_time_only(text) -> None:
    argument = np.float32([-1, 2]) if "relu" in text else np.int64([2, 3])
    for mode in MODES:
        result = vm.VirtualMachine(vm.build(parse_module(text), mode))["main"](argument)
        expected = np.float32([0, 2]) if "relu" in text else np.ones((2, 3), np.float32)
        np.testing.assert_array_equal(result, expected)


def test_a_compiled_library_that_was_damaged_in_the_cache_is_compiled_again(cache) -> None:
    np.testing.assert_array_equal(vm.VirtualMachine(vm.build(DOUBLE))["main"](X), 2 * X)
    libraries = list((cache / "compiled").iterdir())
    assert libraries
    for library in libraries:
        library.write_bytes(b"")
    np.testing.assert_array_equal(vm.VirtualMachine(vm.build(DOUBLE))["main"](X), 2 * X)
    assert all(library.read_bytes() for library in libraries)


@pytest.mark.parametrize("wrong", [None, "text", vm], ids=["None", "str", "module"])
def test_what_is_no_module_is_not_built(wrong) -> None:
    with pytest.raises(RelvmTypeError, match=r"expected an ir\.Module"):
        vm.build(wrong)
