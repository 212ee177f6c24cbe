"""Arguments of a wrong type raise an error that names the argument, the expected type and the actual type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relvm import ThreadPoolRunner, vm
from relvm.distributed import Runner
from relvm.errors import RelvmTypeError
from relvm.frontend.text import parse_module

MODULE = parse_module("def main(x: i64) -> i64 = x * x")
EXECUTABLE = vm.build(MODULE, target="numpy")
MACHINE = vm.VirtualMachine(EXECUTABLE)


def of_runner(function: Callable[[ThreadPoolRunner], Any]) -> Any:
    with ThreadPoolRunner(EXECUTABLE, 1) as runner:
        return function(runner)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vm.VirtualMachine("m.rvm"), "VirtualMachine: expected an Executable, got str"),
        (lambda: vm.VirtualMachine(EXECUTABLE, print_hook=5), "print_hook: expected a callable, got int"),
        (lambda: ThreadPoolRunner(5), "VirtualMachine: expected an Executable, got int"),
        (lambda: ThreadPoolRunner(EXECUTABLE, 1, []), "function: expected a name, got list"),
        (
            lambda: of_runner(lambda runner: runner.map(5)),
            "ThreadPoolRunner.map: inputs: expected an iterable, got int",
        ),
        (lambda: Runner(5), "Runner: expected an Executable, got int"),
        (lambda: Runner(EXECUTABLE, []), "function: expected a function name, got list"),
        (lambda: MACHINE[5], "function: expected a name, got int"),
        (lambda: MACHINE[[]], "function: expected a name, got list"),
        (lambda: MACHINE.set_input([], 1), "function: expected a name, got list"),
        (lambda: MACHINE.invoke_stateful([]), "function: expected a name, got list"),
        (lambda: MACHINE.get_outputs([]), "function: expected a name, got list"),
        (lambda: MACHINE.clear_input([]), "function: expected a name, got list"),
        (lambda: MACHINE.profile([]), "function: expected a name, got list"),
        (lambda: MACHINE.time_evaluator([])(1), "function: expected a name, got list"),
        (lambda: MACHINE.save_function([], "saved", 1), "function: expected a name, got list"),
        (lambda: MACHINE.save_function("main", [], 1), "save_function: saved_name: expected a name, got list"),
        (lambda: MACHINE.seed("x"), "seed: expected an integer, got str"),
        (lambda: vm.adapt(5), "adapt: expected an Executable, got int"),
        (lambda: vm.export_library(5, "a.so"), "export_library: expected an Executable, got int"),
        (lambda: vm.load(__file__, max_bytes="1 GB"), "max_bytes: expected an integer, got str"),
        (lambda: vm.load(5), "path: expected a str or PathLike, got int"),
        (lambda: vm.build(MODULE, target=5), "target: expected a string, got int"),
        (lambda: vm.register_func(5, print), "register_func: name: expected a string, got int"),
        (lambda: vm.register_func("f", 5), "register_func: f: expected a callable, got int"),
        (lambda: vm.register_c_func(5, 1), "register_c_func: name: expected a string, got int"),
        (lambda: parse_module(b""), "parse_module: expected a string, got bytes"),
        (lambda: vm.VirtualMachine(EXECUTABLE, print_hook=0), "print_hook: expected a callable, got int"),
        (lambda: EXECUTABLE.save(5), "path: expected a str or PathLike, got int"),
        (lambda: EXECUTABLE.save(b"m.rvm"), "path: expected a str or PathLike, got bytes"),
        (lambda: vm.export_library(EXECUTABLE, 5), "path: expected a str or PathLike, got int"),
        (lambda: vm.Executable.from_bytes("text"), "from_bytes: expected bytes, got str"),
        (lambda: vm.Executable.from_program(EXECUTABLE), "from_program: expected a Program, got Executable"),
    ],
)
def test_the_argument_is_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(RelvmTypeError) as caught:
        call()
    assert str(caught.value) == message


class Items:
    """A sequence with __getitem__ but without __iter__."""

    def __getitem__(self, index: int) -> int:
        return (1, 2, 3)[index]


def test_what_is_as_good_is_taken() -> None:
    numbers = {"num_threads": np.int64(1), "stack_values": np.int64(1000), "call_depth": np.uint8(9)}
    machine = vm.VirtualMachine(EXECUTABLE, **numbers, max_steps=np.int32(100))
    machine.seed(np.uint64(2**64 - 1))
    machine.seed(np.int64(-1))
    assert machine[np.str_("main")](3) == 9
    assert list(of_runner(lambda runner: list(runner.map(Items(), ahead=np.int64(2))))) == [1, 4, 9]
    content = EXECUTABLE.to_bytes()
    for each in (content, bytearray(content), memoryview(content), np.frombuffer(content, np.uint8)):
        assert vm.Executable.from_bytes(each).to_bytes() == content


class Silent:
    """A callable that is falsy while it has recorded no call."""

    def __init__(self) -> None:
        self.got: list = []

    def __len__(self) -> int:
        return len(self.got)

    def __call__(self, *values: object) -> None:
        self.got.append(values)


def test_a_hook_that_is_false_is_called() -> None:
    hook = Silent()
    builder = vm.ExecBuilder()
    with builder.function("main", ["x"]):
        builder.emit_call("vm.builtin.print", [builder.ctx, builder.r(0)])
        builder.emit_ret(builder.r(0))
    machine = vm.VirtualMachine(builder.get(), print_hook=hook)
    machine["main"](5)
    assert hook.got == [(5,)]
    instrument = Silent()
    machine.set_instrument(instrument)
    machine["main"](5)
    assert [name for name, *_ in instrument.got] == ["main", "vm.builtin.print", "vm.builtin.print", "main"]


def test_what_is_no_name_is_no_function() -> None:
    assert [] not in MACHINE and 5 not in MACHINE and "main" in MACHINE
