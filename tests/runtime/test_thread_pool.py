"""Tests of ThreadPoolRunner: each thread has its own machine, and results are in the order of the inputs."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError

import numpy as np
import pytest
from support.modes import MODES

import relvm
from relvm import vm
from relvm.errors import (
    RelvmArgumentError,
    RelvmIndexError,
    RelvmInterrupted,
    RelvmNameError,
    RelvmShapeError,
    RelvmTimeoutError,
    RelvmUnsupportedError,
)
from relvm.frontend.text import parse_module
from relvm.runtime.executable import Executable

TEXT = """
def main(x: f32[n, 32], w: f32[32, 32]) -> f32[n] { return sum(tanh(matmul(x, w)), axes=(1,)) }
def square(i: i64) -> i64 { return i * i }
def pair(x: f32[n], i: i64) -> (f32[n], i64) { return (add(x, x), i) }
def adder(i: i64) => (i64, object) {
  add = fn (x: i64) -> i64 { return x + i }
  return (i, add)
}
def count(i: i64) -> i64 { return if i < 1 then i else @count(i - 1) }
"""
WAITING = 'def main(i: i64) => i64 { return packed("test.thread_pool.wait", i) : i64 }'


@pytest.fixture(scope="module", params=MODES)
def executable(request: pytest.FixtureRequest) -> Executable:
    return vm.build(parse_module(TEXT), request.param)


@pytest.fixture(scope="module", params=MODES)
def waiting(request: pytest.FixtureRequest) -> Executable:
    """Build WAITING, whose runs block until the fixture `gate` lets them continue."""
    return vm.build(parse_module(WAITING), request.param)


@pytest.fixture
def gate() -> Iterator[tuple[list[int], threading.Semaphore]]:
    """Return a list and a semaphore.  A run of WAITING appends its argument to the list, and acquires the semaphore."""
    begun, go_on = [], threading.Semaphore(0)

    def wait(i: int) -> int:
        begun.append(i)
        assert go_on.acquire(timeout=600)
        return i

    vm.register_func("test.thread_pool.wait", wait, override=True)
    yield begun, go_on
    go_on.release(100)
    vm.unregister_func("test.thread_pool.wait")


def workers_alive() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("relvm")]


def until(holds) -> None:
    """Wait until `holds()` is true, at most ten minutes."""
    end = time.monotonic() + 600
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    until(lambda: not workers_alive())


# ---- results ----


def test_both_packages_have_it_and_neither_imports_more_for_it_than_it_needs() -> None:
    assert relvm.ThreadPoolRunner is vm.ThreadPoolRunner
    code = """
import sys, relvm
print("relvm.vm" in sys.modules)
import relvm.vm
print("concurrent.futures" in sys.modules)
relvm.ThreadPoolRunner
print("concurrent.futures" in sys.modules, any(f"relvm.{name}" in sys.modules for name in ("ir", "frontend", "ops")))"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True", "False"]


@pytest.mark.parametrize("num_threads", [1, 3, None])
def test_results_are_those_of_one_machine_in_order_bit_for_bit(executable: Executable, num_threads: int | None) -> None:
    generator = np.random.default_rng(0)
    w = generator.standard_normal((32, 32)).astype(np.float32)
    inputs = [(generator.standard_normal((1 + i % 9, 32)).astype(np.float32), w) for i in range(200)]
    one = vm.VirtualMachine(executable)["main"]
    expected = [one(*each).numpy().tobytes() for each in inputs]
    with relvm.ThreadPoolRunner(executable, 3, num_threads=num_threads) as runner:
        assert [each.numpy().tobytes() for each in runner.map(inputs)] == expected
        futures = [runner.submit(x, w=w) for x, w in inputs]
        assert [each.result().numpy().tobytes() for each in futures] == expected


def test_a_tuple_is_the_arguments_and_anything_else_the_only_one(executable: Executable) -> None:
    with relvm.ThreadPoolRunner(executable, 2, "square") as runner:
        assert list(runner.map([1, (2,), 3])) == [1, 4, 9]
        assert list(runner.map([])) == []
    with relvm.ThreadPoolRunner(executable, 2, "pair") as runner:
        doubled, i = next(runner.map([(np.ones(2, np.float32), 7)]))
        assert (doubled.numpy().tolist(), i) == ([2, 2], 7)


def test_results_share_no_memory(executable: Executable) -> None:
    x = np.ones(1000, np.float32)
    with relvm.ThreadPoolRunner(executable, 2, "pair") as runner:
        results = [doubled.numpy() for doubled, _ in runner.map((x, i) for i in range(50))]
    for number, each in enumerate(results):
        each[:] = number
    assert [set(each.tolist()) for each in results] == [{number} for number in range(50)]


def test_two_workers_work_at_once_and_no_input_is_done_twice(waiting: Executable, gate: tuple) -> None:
    begun, go_on = gate
    with relvm.ThreadPoolRunner(waiting, 2) as runner:
        futures = [runner.submit(i) for i in range(4)]
        until(lambda: len(begun) == 2)
        assert sorted(begun) == [0, 1] and not any(each.done() for each in futures)
        go_on.release(100)
        assert [each.result(30) for each in futures] == [0, 1, 2, 3]
    assert sorted(begun) == [0, 1, 2, 3]


def test_results_are_arguments_of_another_runner(executable: Executable) -> None:
    """Result tensors remain valid after the run, and while their machine executes other runs."""
    x = np.ones(32, np.float32)
    with (
        relvm.ThreadPoolRunner(executable, 2, "pair") as first,
        relvm.ThreadPoolRunner(executable, 2, "pair") as second,
    ):
        results = list(second.map(first.map((x, i) for i in range(500))))
    assert [i for _, i in results] == list(range(500))
    assert all((result.numpy() == 4).all() for result, _ in results)


def test_a_closure_is_no_result(executable: Executable) -> None:
    with relvm.ThreadPoolRunner(executable, 2, "adder") as runner:
        message = "ThreadPoolRunner: adder returned a closure, which only its worker can call; return a value"
        with pytest.raises(RelvmUnsupportedError, match=message):
            next(runner.map([1]))


# ---- number of pending inputs ----


@pytest.mark.parametrize(("ahead", "most"), [(None, 4), (1, 1), (7, 7)])
def test_inputs_may_be_endless_and_are_pulled_so_far_ahead(executable: Executable, ahead: int, most: int) -> None:
    pulled = itertools.count()
    with relvm.ThreadPoolRunner(executable, 2, "square") as runner:
        results = runner.map(pulled, ahead=ahead)
        for number in range(100):
            assert next(results) == number * number
            assert int(repr(pulled)[6:-1]) == number + most
        results.close()


@pytest.mark.parametrize("ahead", [0, -1, 1.5, True, "2"])
def test_a_wrong_ahead_is_refused(executable: Executable, ahead: object) -> None:
    with (
        relvm.ThreadPoolRunner(executable, 1, "square") as runner,
        pytest.raises(RelvmArgumentError, match=r"ahead: expected an integer of at least 1, got "),
    ):
        runner.map([1], ahead=ahead)


# ---- errors ----


def test_an_error_is_raised_in_its_place_and_the_runner_goes_on(executable: Executable) -> None:
    x, w = np.ones((2, 32), np.float32), np.ones((32, 32), np.float32)
    with relvm.ThreadPoolRunner(executable, 2) as runner:
        results = runner.map([(x, w), (x, w), (x, w[:5]), (x, w)])
        assert next(results).shape == next(results).shape == (2,)
        with pytest.raises(RelvmShapeError) as raised:
            next(results)
        assert raised.value.__notes__[-1] == "input 2 of ThreadPoolRunner.map, counted from 0"
        assert list(results) == []
        assert next(runner.map([(x, w)])).shape == (2,)


def test_what_the_inputs_raise_comes_behind_the_results_before_it(executable: Executable) -> None:
    def inputs() -> Iterator[int]:
        yield from (1, 2)
        raise RelvmIndexError("no third one")

    with relvm.ThreadPoolRunner(executable, 2, "square") as runner:
        results = runner.map(inputs(), ahead=10)
        assert (next(results), next(results)) == (1, 4)
        with pytest.raises(RelvmIndexError, match="no third one") as raised:
            next(results)
    assert raised.value.__notes__ == ["input 2 of ThreadPoolRunner.map, counted from 0"]


def test_limits_are_of_each_run(executable: Executable) -> None:
    with relvm.ThreadPoolRunner(executable, 2, "count", max_steps=200_000) as runner:
        futures = [runner.submit(i) for i in (10, 10**9, 20, 10**9, 30)]
        assert [type(each.exception(60)) for each in futures] == [
            type(None),
            RelvmTimeoutError,
            type(None),
            RelvmTimeoutError,
            type(None),
        ]


def test_what_cannot_be_made_is_refused_at_once(executable: Executable) -> None:
    for workers in (0, 257, 1.5, True, "2"):
        with pytest.raises(RelvmArgumentError, match=r"workers is .*, expected an integer from 1 to 256"):
            relvm.ThreadPoolRunner(executable, workers)
    with pytest.raises(RelvmNameError, match="no function squire; did you mean square"):
        relvm.ThreadPoolRunner(executable, 1, "squire")
    with pytest.raises(RelvmArgumentError, match="num_threads is 0"):
        relvm.ThreadPoolRunner(executable, 1, num_threads=0)


def test_as_many_workers_as_the_environment_says(executable: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVM_NUM_THREADS", "3")
    with relvm.ThreadPoolRunner(executable) as runner:
        assert runner.workers == 3 and repr(runner) == "<ThreadPoolRunner of 3 workers>"


# ---- closing and aborting ----


def test_a_closed_runner_says_so(executable: Executable) -> None:
    runner = relvm.ThreadPoolRunner(executable, 2, "square")
    results = runner.map(itertools.count())
    assert next(results) == 0
    runner.close()
    runner.close()
    assert repr(runner) == "<ThreadPoolRunner of 2 workers, closed>"
    for use in (lambda: runner.submit(1), lambda: runner.map([1])):
        with pytest.raises(RelvmArgumentError, match="ThreadPoolRunner: the runner is closed; create another one"):
            use()
    with pytest.raises(RelvmArgumentError, match="the runner is closed"):  # after the submitted inputs
        list(results)


def test_close_waits_for_what_was_submitted_or_does_not(waiting: Executable, gate: tuple) -> None:
    begun, go_on = gate
    runner = relvm.ThreadPoolRunner(waiting, 1)
    futures = [runner.submit(i) for i in range(3)]
    until(lambda: begun)
    runner.close(wait=False)
    assert not futures[0].done()
    go_on.release(100)
    runner.close()
    assert [each.result(0) for each in futures] == [0, 1, 2] and not workers_alive()


def test_what_would_wait_for_its_own_thread_is_refused() -> None:
    said = []

    def ask(i: int) -> int:
        for wait in (runner.close, runner.abort, lambda: runner.map([1])):
            with pytest.raises(RelvmUnsupportedError, match="called on a thread of the runner"):
                wait()
            said.append(i)
        return i

    vm.register_func("test.thread_pool.ask", ask, override=True)
    executable = vm.build(parse_module('def main(i: i64) => i64 = packed("test.thread_pool.ask", i) : i64'))
    try:
        with relvm.ThreadPoolRunner(executable, workers=1) as runner:
            assert (runner.submit(7).result(timeout=600), said) == (7, [7, 7, 7])
            last = runner.submit(8)
            last.add_done_callback(lambda future: runner.close(wait=False))
            assert last.result(timeout=600) == 8
            until(lambda: "closed" in repr(runner))
    finally:
        vm.unregister_func("test.thread_pool.ask")


def test_closing_the_iterator_cancels_what_has_not_begun(waiting: Executable, gate: tuple) -> None:
    begun, go_on = gate
    with relvm.ThreadPoolRunner(waiting, 1) as runner:
        results = runner.map(itertools.count(), ahead=5)
        go_on.release()
        assert next(results) == 0
        until(lambda: begun == [0, 1])
        results.close()
        go_on.release(100)
        assert runner.submit(300).result(30) == 300
    assert begun == [0, 1, 300]


def test_an_exception_in_the_block_interrupts_what_runs(executable: Executable) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        relvm.ThreadPoolRunner(executable, 2, "count") as runner,
    ):
        futures = [runner.submit(1 << 60) for _ in range(5)]
        until(lambda: sum(each.running() for each in futures) == 2)
        raise ZeroDivisionError
    assert not workers_alive()
    assert [type(each.exception(0)) for each in futures[:2]] == [RelvmInterrupted] * 2
    for each in futures[2:]:
        with pytest.raises(CancelledError):
            each.result(0)


def test_a_runner_that_is_dropped_leaves_no_threads(executable: Executable) -> None:
    runner = relvm.ThreadPoolRunner(executable, 2, "square")
    assert list(runner.map([1, 2, 3])) == [1, 4, 9] and workers_alive()
    del runner
    gc.collect()
    until(lambda: not workers_alive())


CONSUMER = """
import sys, threading
import relvm
from relvm import vm
from relvm.frontend.text import parse_module
text = "def main(i: i64) -> i64 { return if i < 1 then i else @main(i - 1) }"
executable = vm.build(parse_module(text), sys.argv[1])
try:
    with relvm.ThreadPoolRunner(executable, 2) as runner:
        print("ready", flush=True)
        list(runner.map([1 << 60] * 9))
except KeyboardInterrupt:
    print(threading.active_count(), flush=True)
"""


@pytest.mark.parametrize("mode", MODES)
def test_ctrl_c_ends_runs_without_end(mode: str) -> None:
    child = subprocess.Popen([sys.executable, "-P", "-c", CONSUMER, mode], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=600)[0] == "1\n" and child.returncode == 0
    finally:
        child.kill()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_of_fork_is_told_to_make_its_own(executable: Executable, waiting: Executable, gate: tuple) -> None:
    begun, go_on = gate
    with relvm.ThreadPoolRunner(waiting, 1) as runner:
        runner.submit(1)
        until(lambda: begun)
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            code = 1
            try:
                with pytest.raises(
                    RelvmUnsupportedError, match="before this process was forked; create one in this process"
                ):
                    runner.submit(3)
                runner.abort()  # does not wait for threads, which do not exist in the child process
                with relvm.ThreadPoolRunner(executable, 2, "square") as own:
                    code = 0 if list(own.map([3])) == [9] else 1
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        go_on.release(2)
        assert runner.submit(2).result(30) == 2
