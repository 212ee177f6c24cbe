"""What the machine costs, in nanoseconds:   python -m benchmarks.machine

Each figure is the median of nine repeats; in the first table the loop around the statement is subtracted.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.machine.peers import CALLS, FIB, REPEATS, ROUNDS, measure_peers
from benchmarks.machine.programs import CARRY, COUNT, ROWS, UNROLLED, Row, row_executable
from benchmarks.machine.programs import FIB as FIB_TEXT
from relvm import vm
from relvm.frontend.text import parse_module

MODES = ("bytecode", "compiled")
LOOP = 20_000


def median(run: Callable[[], object], per: float) -> float:
    run()
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        run()
        times.append((time.perf_counter() - started) / per * 1e9)
    return statistics.median(times)


def statement_cost(row: Row | None, mode: str) -> float:
    """Nanoseconds of a round of the loop with the row's statements in it."""
    machine = vm.VirtualMachine(row_executable(row, mode))
    closure, loop, x = machine["closure"](7), machine["loop"], np.zeros(1, np.float32)
    return median(lambda: loop(LOOP, 7, x, (x, x), closure), LOOP)


def program_cost(text: str, name: str, mode: str, per: float, *args: object) -> float:
    function = vm.VirtualMachine(vm.build(parse_module(text), mode, "numpy"))[name]
    return median(lambda: function(*args), per)


def python_costs(mode: str) -> dict[str, float]:
    machine = vm.VirtualMachine(
        vm.build(parse_module("def i(x: i64) -> i64 = x\ndef t(x: f32[n]) -> f32[n] = x"), mode, "numpy")
    )
    integer, tensor, array = machine["i"], machine["t"], np.zeros(4, np.float32)

    def calls(function: Callable, argument: object) -> Callable[[], None]:
        def run() -> None:
            for _ in range(2000):
                function(argument)

        return run

    return {
        "call from Python, int": median(calls(integer, 7), 2000),
        "call from Python, array to tensor": median(calls(tensor, array), 2000),
    }


def main() -> None:
    table: dict[str, dict[str, float]] = {}
    for mode in MODES:
        empty = statement_cost(None, mode)
        for row in ROWS:
            table.setdefault(row.name, {})[mode] = (statement_cost(row, mode) - empty) / UNROLLED
        pair = (np.zeros(4, np.float32),) * 2
        table.setdefault("loop carrying a tuple of tensors", {})[mode] = program_cost(
            CARRY, "carry", mode, 100_000, 100_000, pair
        )
        for name, cost in python_costs(mode).items():
            table.setdefault(name, {})[mode] = cost
    print(f"{'':36}{'bytecode':>10}{'compiled':>10}")
    for name, costs in table.items():
        print(f"{name:36}{costs['bytecode']:10.1f}{costs['compiled']:10.1f}")
    print(f"\n{'':36}{'fib':>10}{'loop':>10}")
    for mode in MODES:
        fib = program_cost(FIB_TEXT, "fib", mode, CALLS, FIB)
        print(f"{'relvm ' + mode:36}{fib:10.1f}{program_cost(COUNT, 'count', mode, ROUNDS, 0, 0, ROUNDS):10.1f}")
    for peer in measure_peers():
        print(f"{peer.name:36}{peer.fib:10.1f}{peer.count:10.1f}")


if __name__ == "__main__":
    main()
