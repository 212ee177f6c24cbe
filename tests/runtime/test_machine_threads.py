"""Machines on several threads run in parallel without Python's lock.  A machine rejects calls from a second thread."""

from __future__ import annotations

import ctypes
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from support.modes import MODES

from relvm import vm
from relvm.errors import RelvmBusyError, RelvmInterrupted
from relvm.frontend.text import parse_module
from relvm.tables import include_flags

# meet() returns when two threads have called it.  It fails if the second thread does not call it within 30 seconds.
SOURCE = """
#include <stdatomic.h>
#include <time.h>
#include "relvm.h"

static atomic_int arrived;

rvm_status meet(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)arguments, (void)count;
  atomic_fetch_add(&arrived, 1);
  for (int i = 0; i < 30000 && atomic_load(&arrived) < 2; i++) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  if (atomic_load(&arrived) < 2) return RVM_ASSERTION_ERROR;
  *result = (rvm_value){.tag = RVM_TAG_BOOL, .as.i = 1};
  return RVM_OK;
}
"""


def all_done(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("mode", MODES)
def test_two_machines_run_at_once(tmp_path: Path, mode: str) -> None:
    (tmp_path / "meet.c").write_text(SOURCE)
    command = ["cc", "-std=gnu11", "-shared", "-fPIC", *include_flags(), "meet.c", "-o", "meet.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "meet.so"))
    vm.register_c_func("test.threads.meet", ctypes.cast(library.meet, ctypes.c_void_p).value, override=True)
    module = parse_module('def main() => bool { return packed("test.threads.meet") : bool }')
    executable = vm.build(module, mode, "numpy" if mode == "bytecode" else "c")
    results = []

    def work() -> None:
        results.append(vm.VirtualMachine(executable)["main"]())

    all_done([threading.Thread(target=work) for _ in range(2)])
    assert results == [True, True]
    vm.unregister_func("test.threads.meet")


@pytest.mark.parametrize("mode", MODES)
def test_many_machines_over_one_executable_give_right_results(mode: str) -> None:
    text = """
    def main(x: f32[n, 8], w: f32[8, 8]) -> f32[n] {
      g = fn (y: f32[m, 8]) -> f32[m, 8] { return relu(matmul(y, w)) }
      return sum(g(g(x)), axes=(1,))
    }"""
    executable = vm.build(parse_module(text), mode)
    wrong, done = [], []

    def work(number: int) -> None:
        machine = vm.VirtualMachine(executable)
        w = np.eye(8, dtype=np.float32) * number
        for n in range(1, 60):
            got = machine["main"](np.ones((n, 8), np.float32), w).numpy()
            if got.shape != (n,) or not (got == 8 * number * number).all():
                wrong.append((number, n, got))
        done.append(number)

    all_done([threading.Thread(target=work, args=(number,)) for number in range(6)])
    assert not wrong and sorted(done) == list(range(6))


@pytest.mark.parametrize("mode", MODES)
def test_one_machine_used_by_two_threads_says_so(mode: str) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        assert go_on.wait(30)

    vm.register_func("test.threads.wait", wait, override=True)
    text = """
    def main() => object { return packed("test.threads.wait") : object }
    def same(i: i64) -> i64 { return i }"""
    machine = vm.VirtualMachine(vm.build(parse_module(text), mode))
    machine.set_input("same", 1)
    machine.invoke_stateful("same")
    machine.save_function("same", "saved", 1)
    evaluator = machine.time_evaluator("same")
    thread = threading.Thread(target=machine["main"])
    thread.start()
    assert inside.wait(30)
    uses = [
        lambda: machine["saved"](),
        lambda: machine.set_input("same", 2),
        lambda: machine.invoke_stateful("same"),
        lambda: machine.get_outputs("same"),
        lambda: machine.set_instrument(print),
        lambda: machine.profile("same"),
        lambda: evaluator(),
    ]
    for use in uses:
        with pytest.raises(RelvmBusyError, match="the machine is running in another thread"):
            use()
    go_on.set()
    thread.join()
    machine.invoke_stateful("same")
    assert machine.get_outputs("same") == 1 and machine["saved"]() == 1
    vm.unregister_func("test.threads.wait")


@pytest.mark.parametrize("mode", MODES)
def test_another_thread_interrupts_a_machine_that_runs_without_end(mode: str) -> None:
    text = """
    def main(i: i64[]) -> i64[] {
      return if less(i, const(i64[], 1)) then i else @main(subtract(i, const(i64[], 1)))
    }"""
    machine = vm.VirtualMachine(vm.build(parse_module(text), mode))
    machine.set_input("main", np.int64(1000))
    started, ended = threading.Event(), []

    def run() -> None:
        try:
            while True:
                machine.invoke_stateful("main")
                started.set()
        except RelvmInterrupted as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(30)
    while thread.is_alive():
        machine.interrupt()
    thread.join()
    assert ended
    machine.invoke_stateful("main")
    assert machine.get_outputs("main").item() == 0
