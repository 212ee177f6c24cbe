"""Packed functions written in Python."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from support.assembly_programs import machine_of

from relvm.errors import RelvmArgumentError, RelvmBusyError, RelvmNameError, RelvmTypeError
from relvm.runtime.packed_func import get_func, register_func, register_library, unregister_func
from relvm.runtime.tensor import Tensor
from relvm.runtime.virtual_machine import VirtualMachine

CALL = """
f13 = packed test.packed.f
f14 = bytecode main(x) registers 2
  0: call r1 = test.packed.f(r0)
  1: ret r1
f15 = packed vm.builtin.call_py_func
f16 = bytecode by_name(x) registers 2
  0: call r1 = vm.builtin.call_py_func(ctx, c0, r0)
  1: ret r1
c0 = string "test.packed.f"
"""


@pytest.fixture(autouse=True)
def without_functions():
    yield
    for name in ("test.packed.f", "test.packed.g"):
        try:
            unregister_func(name)
        except RelvmNameError:
            continue


def machine_with(function) -> VirtualMachine:
    register_func("test.packed.f", function, override=True)
    return machine_of(CALL, results_may_share=True)


def test_a_function_gets_python_values_and_returns_any() -> None:
    seen = []

    def function(value):
        seen.append(value)
        return [value, None, np.float32(1.5)]

    machine = machine_with(function)
    for name in ("main", "by_name"):
        same, nothing, tensor = machine[name]((1, "a", True))
        assert (same, nothing, tensor.item()) == ((1, "a", True), None, 1.5)
    assert seen == [(1, "a", True)] * 2


def test_tensors_arrive_in_place_and_may_be_kept() -> None:
    kept = []
    machine, array = machine_with(kept.append), np.arange(3.0)
    assert machine["main"](array) is None
    assert isinstance(kept[0], Tensor) and np.shares_memory(kept[0].numpy(), array)
    gone = weakref.ref(array)
    del array, machine
    gc.collect()
    assert kept[0].numpy()[2] == 2.0 and gone() is not None
    kept.clear()
    gc.collect()
    assert gone() is None


def test_a_tensor_dropped_in_a_callback_goes_at_once() -> None:
    alive = []

    def function(tensor):
        fresh = np.ones(5)
        gone = weakref.ref(fresh)
        made = machine["identity"](fresh)
        del fresh
        alive.append(gone() is not None)
        del made
        alive.append(gone() is not None)
        return tensor

    machine = machine_with(function)
    machine["main"](np.zeros(1))
    assert alive == [True, False]


def test_what_a_function_raises_reaches_the_caller_as_it_is() -> None:
    raised = LookupError("found nothing")

    def function(value):
        raise raised

    machine = machine_with(function)
    for name in ("main", "by_name"):
        with pytest.raises(LookupError) as caught:
            machine[name](1)
        assert caught.value is raised
        assert raised.__notes__[-1] == f"  in {name} at instruction 0"
    assert machine["identity"](1) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, RelvmTypeError, MemoryError])
def test_exceptions_of_every_kind_pass(error) -> None:
    def function(value):
        raise error("stop")

    with pytest.raises(error, match="stop"):
        machine_with(function)["main"](1)


def test_an_exception_that_was_caught_is_not_raised_again() -> None:
    def failing(value):
        raise ValueError("inner")

    def function(value):
        with pytest.raises(ValueError, match="inner"):
            machine["inner"](1)
        return "survived"

    register_func("test.packed.g", failing)
    register_func("test.packed.f", function)
    inner = "f17 = packed test.packed.g\nf18 = bytecode inner(x) registers 2\n"
    machine = machine_of(CALL + inner + "  0: call r1 = test.packed.g(r0)\n  1: ret r1\n")
    assert machine["main"](1) == "survived"


def test_a_result_that_no_machine_holds_is_an_error_that_names_the_function() -> None:
    machine = machine_with(lambda value: {1: 2})
    with pytest.raises(RelvmTypeError, match=r"the result of test\.packed\.f: .*dict"):
        machine["main"](1)


def test_a_wrong_number_of_arguments_is_pythons_error() -> None:
    machine = machine_with(lambda: 1)
    with pytest.raises(TypeError, match="positional argument"):
        machine["main"](1)


def test_a_function_calls_the_machine_that_calls_it() -> None:
    def count_down(n):
        return machine["main"](n - 1) + 1 if n else 0

    machine = machine_with(count_down)
    assert machine["main"](50) == 50


def test_recursion_through_python_ends_with_an_error() -> None:
    machine = machine_with(lambda n: machine["main"](n + 1))
    with pytest.raises(RecursionError):
        machine["main"](0)
    assert machine["identity"](1) == 1


def test_a_function_calls_another_machine() -> None:
    other = machine_of(results_may_share=True)
    machine = machine_with(lambda value: other["pair"](value, 1))
    array = np.arange(3.0)
    tensor, one = machine["main"](array)
    assert one == 1 and np.shares_memory(tensor.numpy(), array)


def test_a_closure_is_called_by_a_function() -> None:
    machine = machine_with(lambda closure: closure(1))
    assert machine["main"](machine["closure_over"](2)) == (1, 2)


def test_the_decorator_returns_the_function() -> None:
    @register_func("test.packed.f")
    def function(value):
        return value

    assert get_func("test.packed.f") is function and function(3) == 3


def test_a_name_is_taken_once_unless_overridden() -> None:
    machine = machine_with(lambda value: "first")
    with pytest.raises(RelvmBusyError, match=r"test\.packed\.f"):
        register_func("test.packed.f", print)
    assert machine["main"](1) == "first"
    register_func("test.packed.f", lambda value: "second", override=True)
    assert machine["main"](1) == "second"


def test_a_builtin_is_not_overridden() -> None:
    with pytest.raises((RelvmBusyError, RelvmArgumentError), match=r"vm\.builtin\.copy"):
        register_func("vm.builtin.copy", print, override=True)


def test_an_unregistered_function_is_gone() -> None:
    machine = machine_with(lambda value: value)
    unregister_func("test.packed.f")
    with pytest.raises(RelvmNameError, match=r"test\.packed\.f"):
        machine["main"](1)
    with pytest.raises(RelvmNameError, match=r"test\.packed\.f"):
        machine_of(CALL)
    with pytest.raises(RelvmNameError, match=r"test\.packed\.f"):
        unregister_func("test.packed.f")
    register_func("test.packed.f", lambda value: "again")
    assert machine["main"](1) == "again"


def test_get_func_lists_near_matches() -> None:
    register_func("test.packed.f", print)
    with pytest.raises(RelvmNameError, match=r"did you mean.*test\.packed\.f"):
        get_func("test.packed.ff")


LIBRARY = "f13 = packed testlib.{}\nf14 = bytecode main(x) registers 2\n  0: call r1 = testlib.{}(r0)\n  1: ret r1\n"


def test_a_library_is_asked_once_for_what_a_machine_needs() -> None:
    asked = []

    def provider(name):
        asked.append(name)
        return (lambda value: value + 1) if name == "testlib.increment" else None

    register_library("testlib.", provider)
    text = LIBRARY.replace("{}", "increment")
    assert machine_of(text)["main"](1) == 2
    assert machine_of(text)["main"](2) == 3
    assert asked == ["testlib.increment"]
    with pytest.raises(RelvmNameError, match=r"testlib\.missing"):
        machine_of(LIBRARY.replace("{}", "missing"))
    register_library("testlib.", provider)
    with pytest.raises(RelvmBusyError, match="testlib"):
        register_library("testlib.", lambda name: None)
