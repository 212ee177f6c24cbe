"""One piece of code runs machines, exports and debug executors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relvm import aot, vm
from relvm.compiler.find_compiler import find_compiler
from relvm.errors import (
    RelvmArgumentError,
    RelvmAssertionError,
    RelvmIndexError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
)
from relvm.frontend.text import parse_module
from relvm.runtime.signature import tuple_fields

TEXT = """
kernel bump(inout h: f32[n]) { h[0] = h[0] + 1.0 }
def main(x: f32[n], h: f32[n], most: i64) => ((f32[n], i64), f32[n]) with (
  output_names=("sum", "size", "twice"), upper_bounds=(("n", 8),)
) {
  y = add(x, h)
  _ = kernel bump(h)
  _ = builtin.assert(dim(n) < most, "n must be small")
  return ((y, dim(n)), add(y, y))
}"""


def machine() -> vm.VirtualMachine:
    return vm.VirtualMachine(vm.build(parse_module(TEXT), target="bytecode"))


def export() -> vm.Executor:
    program = aot.build(parse_module(TEXT), aot.AotConfig(name="run", runtime="hosted"))
    return aot.AotExecutor(aot.compile_library(program))


EXECUTORS: dict[str, Callable[[], vm.Executor]] = {
    "machine": lambda: vm.MachineExecutor(machine()),
    "debug": lambda: vm.DebugExecutor(machine(), "main"),
}
if find_compiler():
    EXECUTORS["export"] = export


@pytest.mark.parametrize("kind", EXECUTORS)
def test_one_piece_of_code_runs_every_executor(kind: str) -> None:
    executor = EXECUTORS[kind]()
    assert isinstance(executor, vm.Executor)
    names = [executor.get_input_name(i) for i in range(executor.get_num_inputs())]
    assert names == ["x", "h", "most"]
    assert [executor.get_input_index(name) for name in names] == [0, 1, 2]
    assert executor.get_num_outputs() == 3
    assert [executor.get_output_index(name) for name in ("sum", "size", "twice")] == [0, 1, 2]
    x, h = np.array([1, 2, 3], np.float32), np.array([10, 20, 30], np.float32)
    assert executor.get_input("x") is None
    executor.set_input("x", x)
    executor.set_input(1, h)
    x[:] = 0
    executor.run(most=5)
    first = executor.get_output("sum")
    assert first.tolist() == [11, 22, 33]
    assert executor.get_output(1).tolist() == 3
    assert executor.get_output(2, out=np.zeros(3, np.float32)).tolist() == [22, 44, 66]
    assert executor.get_input("h").tolist() == [11, 20, 30]
    assert h.tolist() == [10, 20, 30]
    executor.run()
    assert executor.get_output("sum").tolist() == [12, 22, 33]
    assert first.tolist() == [11, 22, 33]
    with pytest.raises(RelvmAssertionError, match="n must be small"):
        executor.run(most=2)
    with pytest.raises(RelvmArgumentError, match="get_output: no outputs yet, or the last run failed"):
        executor.get_output(0)


@pytest.mark.parametrize("kind", EXECUTORS)
def test_mistakes_have_the_same_errors(kind: str) -> None:
    executor = EXECUTORS[kind]()
    x = np.zeros(3, np.float32)
    for call, error, message in (
        (lambda: executor.run(x=x), RelvmArgumentError, "run: missing inputs: h, most"),
        (lambda: executor.get_output(0), RelvmArgumentError, "call run first"),
        (lambda: executor.set_input("xx", x), RelvmNameError, "unknown input xx"),
        (lambda: executor.set_input("x"), RelvmArgumentError, "expected a value for input 'x'"),
        (lambda: executor.set_input("x", x, x=x), RelvmArgumentError, "input x is given twice"),
        (lambda: executor.set_input(3, x), RelvmIndexError, "input index 3 is out of range; expected 0 to 2"),
        (lambda: executor.set_input(1.5, x), RelvmTypeError, "expected an index or a name"),
        (lambda: executor.get_output("y"), RelvmNameError, "unknown output y; expected one of sum, size, twice"),
        (lambda: executor.get_output_index(0), RelvmTypeError, "expected an output name"),
        (lambda: executor.get_input_index(0), RelvmTypeError, "expected an input name"),
        (lambda: executor.get_input("h", out=x), RelvmArgumentError, "input h is not set"),
        (lambda: executor.get_input("x", out=np.zeros(2)), RelvmTypeError, "a writable array of dtype float32"),
        (lambda: executor.run(h=np.zeros(2, np.float32), most=9), RelvmShapeError, "expected"),
        (lambda: executor.run(h=np.zeros(3, np.int32)), RelvmTypeError, "dtype f(loat)?32"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_a_debug_executor_records_calls() -> None:
    executor = vm.DebugExecutor(machine())
    executor.run(x=np.ones(2, np.float32), h=np.ones(2, np.float32), most=3)
    by_name = {call.name: call for call in executor.calls}
    assert executor.calls[-1].name == "main"
    assert by_name["bump"].arguments[-1].tolist() == [2, 1]
    assert by_name["bump"].result is None
    assert not any(call.name.startswith("vm.builtin.") for call in executor.calls)
    with pytest.raises(RelvmAssertionError):
        executor.run(most=1)
    assert executor.calls
    assert "main" not in [call.name for call in executor.calls]


def test_an_executor_needs_a_function_with_types() -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["x"]):
        b.emit_ret(b.r(0))
    with pytest.raises(RelvmArgumentError, match="main: the executable does not state the types"):
        vm.MachineExecutor(vm.VirtualMachine(b.get()))
    with pytest.raises(RelvmTypeError, match="expected a VirtualMachine"):
        vm.MachineExecutor(b.get())
    with pytest.raises(RelvmNameError, match="no function nothing"):
        vm.DebugExecutor(machine(), "nothing")


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("f32[n, m]", None),
        ("(f32[n, 2 * (m + 1)], i64)", ["f32[n, 2 * (m + 1)]", "i64"]),
        ("(f32[n],)", ["f32[n]"]),
        ("()", []),
        ("((bool, i64), (f32[],))", ["(bool, i64)", "(f32[],)"]),
        ("(f32[n]) -> (i64, i64)", None),
        ("list[(i64, i64)]", None),
        ("i64(n)", None),
        ("", None),
    ],
)
def test_fields_of_a_type(text: str, fields: list[str] | None) -> None:
    assert tuple_fields(text) == fields


class Foreign:
    """An array of another package."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self.array


@pytest.mark.parametrize("wrap", [lambda array: array, Foreign])
def test_inputs_are_copied_when_they_are_set(wrap: Callable) -> None:
    module = parse_module("def main(x: f32[2]) -> f32[2] = add(x, const(f32[2], [1, 1]))")
    executor = vm.MachineExecutor(vm.VirtualMachine(vm.build(module, target="numpy")))
    array = np.float32([1, 2])
    executor.set_input("x", wrap(array))
    array[:] = 7
    executor.run()
    assert executor.get_output(0).tolist() == [2, 3]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_outputs_without_names_are_numbered(count: int) -> None:
    types, values = ", ".join(["f32[2]"] * count), ", ".join("x" * count)
    types, values = (types, values) if count == 1 else (f"({types})", f"({values})")
    module = parse_module(f"def main(x: f32[2]) -> {types} = {values}")
    executor = vm.MachineExecutor(vm.VirtualMachine(vm.build(module, target="numpy")))
    names = ["output"] if count == 1 else [f"output{number}" for number in range(count)]
    assert [executor.get_output_index(name) for name in names] == list(range(count))
