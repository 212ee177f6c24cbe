"""Tests of executables and machines in other processes: forked processes, and pickled objects."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.modes import MODES

from relvm import vm
from relvm.errors import RelvmBusyError, RelvmTypeError, RelvmUnsupportedError
from relvm.frontend.text import parse_module
from relvm.runtime.background_compile import Upgrade

TEXT = """
def main(x: f32[n, n]) -> f32[n] { return sum(tanh(matmul(x, x)), axes=(1,)) }
def add_to(i: i64) => object {
  add = fn (x: i64) -> i64 { return x + i }
  return add
}
def wait() => object { return packed("test.processes.wait") : object }
"""
X = np.linspace(-1, 1, 200 * 200, dtype=np.float32).reshape(200, 200)

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


def in_child(check: Callable[[], bool]) -> bool:
    """Return the result of `check` in a forked child, or False if it takes more than a minute or raises."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        code = 1
        try:
            code = 0 if check() else 1
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


@pytest.fixture
def wait() -> tuple[threading.Event, threading.Event]:
    """Register the packed function test.processes.wait.  It sets the first event, and waits for the second."""
    inside, go_on = threading.Event(), threading.Event()
    vm.register_func("test.processes.wait", lambda: inside.set() or go_on.wait(60), override=True)
    return inside, go_on


@needs_fork
@pytest.mark.parametrize("mode", MODES)
def test_parent_and_child_of_fork_go_on_with_the_same_machine(mode: str, wait: object, tmp_path: Path) -> None:
    built = vm.build(parse_module(TEXT), mode)
    built.save(tmp_path / "model.rvm")
    for executable in (built, vm.load(tmp_path / "model.rvm", functions=("*",))):
        machine = vm.VirtualMachine(executable, num_threads=3)
        add, expected = machine["add_to"](5), machine["main"](X).numpy().tobytes()

        def same() -> bool:
            others = [machine, vm.VirtualMachine(executable, num_threads=2)]  # noqa: B023
            same = [other["main"](X).numpy().tobytes() == expected for other in others]  # noqa: B023
            return all(same) and add(2) == 7  # noqa: B023

        assert in_child(same) and same()


@needs_fork
@pytest.mark.parametrize("mode", MODES)
def test_a_machine_that_was_running_at_a_fork_is_busy_in_the_child(
    mode: str, wait: tuple[threading.Event, threading.Event]
) -> None:
    inside, go_on = wait
    executable = vm.build(parse_module(TEXT), mode)
    machine = vm.VirtualMachine(executable)
    thread = threading.Thread(target=machine["wait"])
    thread.start()
    assert inside.wait(60)

    def busy() -> bool:
        with pytest.raises(RelvmBusyError, match="running in another thread"):
            machine["main"](X)
        return vm.VirtualMachine(executable)["main"](X).shape == (200,)

    assert in_child(busy)
    go_on.set()
    thread.join()
    assert machine["main"](X).shape == (200,)


@needs_fork
def test_a_child_registers_while_threads_of_the_parent_do() -> None:
    end = threading.Event()

    def register() -> None:
        while not end.is_set():
            vm.register_func("test.processes.always", print, override=True)

    threads = [threading.Thread(target=register) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(30):
            assert in_child(lambda: vm.register_func("test.processes.child", print, override=True) is print)
    finally:
        end.set()
        for thread in threads:
            thread.join()


@needs_fork
def test_a_child_does_not_wait_for_native_code_that_its_parent_compiles() -> None:
    go_on, made = threading.Event(), vm.build(parse_module(TEXT), target="numpy")
    upgrade = Upgrade(lambda publisher: (go_on.wait(60), made)[1])
    upgrade.begin()

    def refuses() -> bool:
        with pytest.raises(RelvmUnsupportedError, match="this process was forked during compilation"):
            upgrade.wait(None)
        return True

    assert in_child(refuses)
    go_on.set()
    assert upgrade.wait(60) and in_child(lambda: upgrade.wait(None))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", ["c", "numpy"])
def test_an_executable_pickles_as_its_bytes(mode: str, target: str, wait: object) -> None:
    executable = vm.build(parse_module(TEXT), mode, target)
    again = pickle.loads(pickle.dumps(executable))
    assert again.to_bytes() == executable.to_bytes()
    machines = [vm.VirtualMachine(each) for each in (executable, again)]
    assert np.array_equal(*(np.asarray(machine["main"](X)) for machine in machines))
    assert copy.copy(executable) is executable and copy.deepcopy([executable])[0] is executable


def test_native_code_in_a_pickle_from_elsewhere_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pickled = pickle.dumps(vm.build(parse_module(TEXT)))
    monkeypatch.setenv("RELVM_CACHE_DIR", str(cache / "elsewhere"))
    with pytest.raises(RelvmUnsupportedError, match="native code that was not built on this machine"):
        pickle.loads(pickled)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_what_belongs_to_a_machine_says_that_it_cannot_be_copied(duplicate: Callable) -> None:
    machine = vm.VirtualMachine(vm.build(parse_module(TEXT), target="numpy"))
    machine.save_function("add_to", "saved", 4)
    evaluator = machine.time_evaluator("main")
    for what in (machine, machine["main"], machine["add_to"](3), machine["saved"], evaluator):
        with pytest.raises(
            RelvmTypeError, match=f"a {type(what).__name__} cannot be copied or pickled; pickle its exec"
        ):
            duplicate(what)


COMPILES_AT_EXIT = """
import atexit, sys, threading
from relvm.runtime.background_compile import Upgrade

def compile(publish):
    if sys.argv[1] == "exit":
        threading.main_thread().join()
    raise OSError("its files are gone")

upgrade = Upgrade(compile)
upgrade.begin()
atexit.register(upgrade._done.wait, 60)
if sys.argv[1] != "exit":
    upgrade._done.wait(60)
"""


@pytest.mark.parametrize(("when", "messages"), [("before", 1), ("exit", 0)])
def test_a_compilation_that_fails_because_the_process_exits_is_not_reported(when: str, messages: int) -> None:
    """The files of the compiler are removed at the exit, while a thread still compiles."""
    done = subprocess.run([sys.executable, "-Pc", COMPILES_AT_EXIT, when], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert done.stderr.count("compiling native code failed") == messages
