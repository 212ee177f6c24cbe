"""Limits, signals and interrupts end a run in both modes, raise the right error, and leave the machine usable.

benchmarks/latency.py measures how soon a run ends.  These tests only check that it ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest
from support.modes import MODES

from relvm import vm
from relvm.errors import RelvmError, RelvmInterrupted, RelvmRecursionError, RelvmTimeoutError
from relvm.frontend.text import parse_module

# For each name, the text of a function that runs n iterations, and its arguments after n.
ROUNDS = {
    "scalars": ("def main(n: i64) -> i64 = if n == 0 then n else @main(n - 1)", ()),
    "small kernels": (
        "def main(n: i64, x: f32[k]) -> f32[k] = if n == 0 then x else @main(n - 1, negative(x))",
        (np.ones(8, np.float32),),
    ),
    "large kernels": (
        "def main(n: i64, x: f32[256, 256]) -> f32[256, 256] = if n == 0 then x else @main(n - 1, matmul(x, x))",
        (np.eye(256, dtype=np.float32),),
    ),
    "closures": (
        "def apply(f: (i64) -> i64, n: i64) -> i64 = f(n)\n"
        "def main(n: i64) -> i64 { next = fn (k: i64) -> i64 { return @main(k - 1) }\n"
        "  return if n == 0 then n else @apply(next, n) }",
        (),
    ),
}
ENDLESS = 1 << 62

pytestmark = pytest.mark.parametrize("mode", MODES)


def machine_of(text: str, mode: str, **options: float) -> vm.VirtualMachine:
    return vm.VirtualMachine(vm.build(parse_module(text), mode), num_threads=1, **options)


def control_c(_machine: vm.VirtualMachine) -> None:
    os.kill(os.getpid(), signal.SIGINT)


WAYS: dict[str, tuple[dict[str, float], Callable | None, type[BaseException]]] = {
    "Ctrl-C": ({}, control_c, KeyboardInterrupt),
    "interrupt": ({}, vm.VirtualMachine.interrupt, RelvmInterrupted),
    "max_seconds": ({"max_seconds": 0.05}, None, RelvmTimeoutError),
    "max_steps": ({"max_steps": 1_000_000}, None, RelvmTimeoutError),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_run_ends_and_the_machine_goes_on(rounds: str, way: str, mode: str) -> None:
    text, arguments = ROUNDS[rounds]
    options, action, error = WAYS[way]
    machine = machine_of(text, mode, **options)
    expected = np.array(machine["main"](3, *arguments))
    for _ in range(2):
        timer = threading.Timer(0.05, action, (machine,)) if action else None
        if timer:
            timer.start()
        with pytest.raises(error):
            machine["main"](ENDLESS, *arguments)
        if timer:
            timer.join()
        np.testing.assert_array_equal(np.array(machine["main"](3, *arguments)), expected)


def test_what_the_run_held_is_released(mode: str) -> None:
    text = "def main(n: i64, held: object) => object = if n == 0 then held else @main(n - 1, (held, n))"
    machine = machine_of(text, mode, max_steps=200_000)
    array = np.ones(1000)
    before = sys.getrefcount(array)
    for _ in range(3):
        with pytest.raises(RelvmTimeoutError):
            machine["main"](ENDLESS, array)
    assert sys.getrefcount(array) == before


def test_what_is_interrupted_says_where(mode: str) -> None:
    text = "def main(n: i64) -> i64 { rest = @spin(n)\n return rest + 1 }\n" + ROUNDS["scalars"][0].replace(
        "main", "spin"
    )
    machine = machine_of(text, mode, max_steps=100_000)
    with pytest.raises(RelvmTimeoutError, match="exceeded its limit of 100000 steps") as caught:
        machine["main"](ENDLESS)
    lines = caught.value.__notes__[0].splitlines()
    assert lines[0].startswith("  in spin") and lines[-1].startswith("  in main")


def test_a_million_calls_inside_each_other_are_an_error_with_a_trace(mode: str) -> None:
    machine = machine_of(
        "def main(n: i64) -> i64 { rest = if n == 0 then 0 else @main(n - 1)\n return rest + n }", mode
    )
    for _ in range(2):
        with pytest.raises(RelvmRecursionError) as caught:
            machine["main"](1_000_000)
        lines = caught.value.__notes__[0].splitlines()
        assert lines[0].startswith("  in main") and any("more" in line for line in lines) and len(lines) < 1000
        assert machine["main"](1000) == 500_500


def test_and_so_they_are_on_a_small_thread(mode: str) -> None:
    text = """
    def main(n: i64[]) -> i64[] {
      return if less(n, const(i64[], 1)) then n else add(@main(subtract(n, const(i64[], 1))), n)
    }"""
    machine = machine_of(text, mode)
    raised: list[RelvmError] = []

    def run() -> None:
        try:
            machine["main"](np.int64(1_000_000))
        except RelvmRecursionError as error:
            raised.append(error)

    threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(0)
    assert raised and raised[0].__notes__[0].startswith("  in main")
    assert machine["main"](np.int64(10)).item() == 55


def test_an_exception_of_a_callback_keeps_its_traceback_through_many_calls(mode: str) -> None:
    def raising(n: int) -> int:
        return 1 // (n - 1)

    vm.register_func("test.interrupts.raising", raising, override=True)
    text = """
    def main(n: i64) => i64 { rest = if n == 1 then @last(n) else @main(n - 1)
      return rest + n }
    def last(n: i64) => i64 { y = packed("test.interrupts.raising", n) : i64
      return y + 1 }"""
    machine = machine_of(text, mode)
    with pytest.raises(ZeroDivisionError) as caught:
        machine["main"](100)
    vm.unregister_func("test.interrupts.raising")
    assert caught.traceback[-1].name == "raising"
    notes = caught.value.__notes__[-1].splitlines()
    assert notes[0].startswith("  in last") and notes[1].startswith("  in main")
