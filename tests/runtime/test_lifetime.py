"""C objects are freed with their last user, in any order and on any thread."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from support.assembly_programs import COMMON, machine_of, program_of

from relvm._native import ffi
from relvm.errors import RelvmInterrupted
from relvm.runtime.binding import hold
from relvm.runtime.executable import Executable
from relvm.runtime.invoke import Invoker
from relvm.runtime.packed_func import register_func
from relvm.runtime.virtual_machine import VirtualMachine


@pytest.fixture
def destroyed(monkeypatch) -> list[str]:
    """Return a list of the kinds of C objects destroyed so far, which grows.

    "executable" means that the bytes of an executable were released.
    """
    seen: list[str] = []
    watched = lambda held: _Watched(held, seen) if isinstance(held, ffi.CData) else held  # noqa: E731
    monkeypatch.setattr("relvm.runtime.binding.hold", lambda held: hold(watched(held)))
    monkeypatch.setattr("relvm.runtime.virtual_machine.Invoker", lambda *given: _watched_runner(seen, *given))
    return seen


class _Watched:
    def __init__(self, held: object, seen: list[str]) -> None:
        self.held = held
        weakref.finalize(self, seen.append, "executable")


def _watched_runner(seen: list[str], *given) -> Invoker:
    runner = Invoker(*given)
    weakref.finalize(runner, seen.append, "machine")
    return runner


def test_the_machine_goes_before_the_executable(destroyed) -> None:
    executable = Executable.from_program(program_of(COMMON))
    machine = VirtualMachine(executable)
    del executable
    gc.collect()
    assert destroyed == []
    del machine
    gc.collect()
    assert destroyed == ["machine", "executable"]


@pytest.mark.parametrize("what", ["tensor", "closure", "function", "view", "saved"])
def test_whatever_came_out_of_a_machine_keeps_it(destroyed, what) -> None:
    take = {
        "tensor": lambda machine: machine["identity"](np.ones(3)),
        "closure": lambda machine: machine["closure_over"](1),
        "function": lambda machine: machine["pair"],
        "view": lambda machine: machine["identity"](np.ones(3)).numpy(),
        "saved": lambda machine: machine.save_function("pair", "saved", 1, 2) or machine["saved"],
    }[what]
    held = take(machine_of())
    gc.collect()
    assert destroyed == []
    del held
    gc.collect()
    assert destroyed == ["machine", "executable"]


def test_a_machine_with_inputs_outputs_and_an_instrument_goes(destroyed) -> None:
    machine = machine_of()
    machine.set_input("pair", np.ones(3), machine["pair"])
    machine.invoke_stateful("pair")
    machine.save_function("identity", "saved", (np.ones(3), "text"))
    machine.set_instrument(lambda *seen: None)
    del machine
    gc.collect()
    assert destroyed == ["machine", "executable"]


def test_inputs_go_when_they_are_cleared_or_set_again() -> None:
    machine, arrays = machine_of(), [np.ones(3) for _ in range(2)]
    alive = [weakref.ref(array) for array in arrays]
    machine.set_input("identity", arrays.pop())
    machine.set_input("identity", arrays.pop())
    assert [reference() is None for reference in alive] == [False, True]
    machine.invoke_stateful("identity")
    machine.clear_input("identity")
    assert alive[0]() is None


def test_cycles_through_a_machine_are_collected(destroyed) -> None:
    class Node:
        pass

    for _ in range(20):
        node = Node()
        node.machine = machine_of(print_hook=lambda *values, node=node: node)
        node.tensor = node.machine["identity"](np.ones(3))
        node.closure = node.machine["closure_over"](node.tensor)
        node.self = node
    del node
    gc.collect()
    assert destroyed.count("machine") == destroyed.count("executable") == 20


def test_a_tensor_dropped_while_another_thread_runs_goes_when_the_run_ends() -> None:
    machine = machine_of(results_may_share=True)
    array = np.ones(3)
    gone = weakref.ref(array)
    tensor = machine["identity"](array)
    del array

    def run() -> None:
        with pytest.raises(RelvmInterrupted):
            machine["forever"]()

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.1)
    del tensor
    gc.collect()
    assert gone() is not None
    machine.interrupt()
    thread.join()
    assert gone() is None


def test_a_tensor_dropped_in_another_thread_goes_at_once_when_the_machine_is_idle() -> None:
    machine = machine_of()
    array = np.ones(3)
    gone = weakref.ref(array)
    held = [machine["identity"](array)]
    del array
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert gone() is None


def test_a_machine_dropped_while_it_runs_goes_when_the_run_ends(destroyed) -> None:
    def drop():
        held.clear()
        gc.collect()
        return list(destroyed)

    register_func("test.lifetime.drop", drop, override=True)
    text = "f13 = packed test.lifetime.drop\nf14 = bytecode main() registers 1\n"
    held = [machine_of(text + "  0: call r0 = test.lifetime.drop()\n  1: ret r0\n")]
    assert held[0]["main"]() == []
    gc.collect()
    assert destroyed == ["machine", "executable"]


def test_a_thousand_calls_leave_nothing_behind() -> None:
    machine = machine_of()
    array, before = np.ones(4), None
    for _ in range(1000):
        machine["pair"]((array, "text", [array]), machine["identity"](array))
        before = before or sys.getrefcount(array)
    assert sys.getrefcount(array) <= before


AT_EXIT = """
import numpy as np, sys
sys.path.insert(0, {path!r})
from support.assembly_programs import machine_of
machine = machine_of()
tensor, closure = machine["identity"](np.ones(3)), machine["closure_over"](np.ones(2))
cycle = [machine, tensor]; cycle.append(cycle)
view = tensor.numpy()
"""


def test_the_interpreter_ends_in_silence_with_objects_alive(tmp_path: Path) -> None:
    path = str(next(p for p in sys.path if p.endswith("/tests")))
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT.format(path=path)], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_machines_take_memory_for_the_part_of_their_stacks_that_they_use() -> None:
    """This also holds if earlier machines were freed and their stacks are reused."""
    program = """
from pathlib import Path

import relvm.vm as vm
from relvm.frontend.text import parse_module


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


executable = vm.build(parse_module("def main(i: i64) -> i64 = i + 1"), target="numpy")
for _ in range(3):
    assert vm.VirtualMachine(executable)["main"](1) == 2
before = resident_bytes()
machines = [vm.VirtualMachine(executable) for _ in range(8)]
assert all(machine["main"](1) == 2 for machine in machines)
print(resident_bytes() - before)
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 4 << 20
