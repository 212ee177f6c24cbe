"""Tests of closing machines, explicitly and by `with` blocks."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from relvm import vm
from relvm.errors import RelvmArgumentError, RelvmBusyError
from relvm.frontend.text import parse_module

TEXT = """
def main(x: f32[n], y: f32[n]) -> f32[n] { return add(x, y) }
def adder(y: i64) => object { return fn (x: i64) -> i64 { return x + y } }
def calls(x: i64) => i64 { return packed("test.close", x) : i64 }
"""
X = np.float32([1, 2])
CLOSED = "the machine is closed; create a new VirtualMachine"


@pytest.fixture(scope="module")
def executable() -> vm.Executable:
    vm.register_func("test.close", lambda x: x, override=True)
    return vm.build(parse_module(TEXT), target="numpy")


def test_a_closed_machine_says_so(executable: vm.Executable) -> None:
    with vm.VirtualMachine(executable) as machine:
        function = machine["main"]
        result, adder = function(X, X), machine["adder"](2)
        machine.save_function("main", "saved", X, X)
        saved, timer = machine["saved"], machine.time_evaluator("main")
    for use in (
        lambda: function(X, X),
        lambda: function(X, y=X),
        lambda: saved(),
        lambda: timer(X, X),
        lambda: machine["main"],
        lambda: machine.profile("main", X, X),
        lambda: machine.set_input("main", X, X),
        lambda: machine.get_outputs("main"),
        lambda: machine.set_instrument(None),
        lambda: machine.seed(1),
        lambda: machine.interrupt(),
        lambda: machine.function_kinds,
    ):
        with pytest.raises(RelvmArgumentError, match=CLOSED):
            use()
    assert result.tolist() == [2, 4] and adder(3) == 5
    assert repr(machine) == "<VirtualMachine of main, adder, calls, closed>"
    assert "VirtualMachine, closed" in machine._repr_html_() and machine._ipython_key_completions_()
    machine.close()


def test_a_closed_machine_is_freed(executable: vm.Executable) -> None:
    machine = vm.VirtualMachine(executable)
    function = machine["main"]
    runner = weakref.ref(function.objects)
    machine.close()
    del function
    gc.collect()
    assert runner() is None


def test_a_machine_that_runs_is_not_closed(executable: vm.Executable) -> None:
    import threading

    inside, go_on = threading.Event(), threading.Event()

    def wait(x: int) -> int:
        inside.set()
        assert go_on.wait(30)
        return x

    vm.register_func("test.close", wait, override=True)
    machine = vm.VirtualMachine(executable)
    got: list[int] = []
    thread = threading.Thread(target=lambda: got.append(machine["calls"](7)))
    thread.start()
    try:
        assert inside.wait(30)
        with pytest.raises(RelvmBusyError, match="close: the machine is running"):
            machine.close()
    finally:
        go_on.set()
        thread.join()
    assert got == [7] and machine["main"](X, X).tolist() == [2, 4]


def test_an_error_in_the_block_closes_the_machine(executable: vm.Executable) -> None:
    with pytest.raises(ZeroDivisionError), vm.VirtualMachine(executable) as machine:
        raise ZeroDivisionError
    with pytest.raises(RelvmArgumentError, match=CLOSED):
        machine["main"]
