"""Costs of the virtual machine, compared with its goals and its peers:   python -m benchmarks.machine [--large]

Each figure is the median of nine repeats.  "TVM /" is the time of TVM's Relax VM in the same mode, divided by that of
relvm.  With --large, chains of 10,000 and 100,000 operators are built, too.
"""

from __future__ import annotations

import shutil
import sys

from benchmarks.machine import host
from benchmarks.machine.instructions import count_instructions
from benchmarks.machine.peers import measure_peers, measure_tvm
from benchmarks.machine.programs import MODES, PROGRAMS, ROWS, UNROLLED, Row, program_executable, row_executable
from benchmarks.machine.timing import median
from relvm import vm

LOOP = 20_000
PYTHON_GOALS = {
    "int argument, int result": (600, 600),
    "array argument, tensor result": (1500, 1500),
    "call of a Python function": (700, 700),
}


def row_cost(row: Row | None, mode: str) -> float:
    main = vm.VirtualMachine(row_executable(row, mode))["main"]
    return median(lambda: main(LOOP), LOOP)


def costs() -> dict[str, tuple[list[float], tuple[float, float]]]:
    """Return, for each row, the nanoseconds in bytecode and compiled mode, and the goals for both."""
    table: dict[str, tuple[list[float], tuple[float, float]]] = {}
    for mode in MODES:
        empty = row_cost(None, mode)
        for row in ROWS:
            cost = (row_cost(row, mode) - empty) / UNROLLED
            table.setdefault(row.name, ([], row.goal))[0].append(cost)
        for program in PROGRAMS:
            main = vm.VirtualMachine(program_executable(program, mode))["main"]
            cost = median(lambda main=main, program=program: main(*program.args), program.per)
            table.setdefault(program.name, ([], program.goal))[0].append(cost)
        for name, cost in host.python_costs(mode).items():
            table.setdefault(name, ([], PYTHON_GOALS[name]))[0].append(cost)
    return table


def figure(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def print_table(heads: list[str], rows: list[list[str]]) -> None:
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def print_costs() -> None:
    print("\n## Times in nanoseconds\n")
    tvm = measure_tvm()
    heads = [
        "",
        "bytecode",
        "goal",
        "compiled",
        "goal",
        "TVM bytecode",
        "TVM compiled",
        "TVM / bytecode",
        "TVM / compiled",
    ]
    rows = []
    for name, (ours, goals) in costs().items():
        theirs = tvm.get(name, [None, None])
        ratios = [their and their / our for their, our in zip(theirs, ours, strict=True)]
        pairs = [part for our, goal in zip(ours, goals, strict=True) for part in (figure(our), f"{goal:g}")]
        rows.append([name, *pairs, *map(figure, theirs), *map(figure, ratios)])
    print_table(heads, rows)
    print("\n## Comparison with other languages, in nanoseconds\n")
    print_table(
        ["", "fib, per call", "loop, per iteration"],
        [[p.name, figure(p.fib), figure(p.count)] for p in measure_peers()],
    )


def print_instructions() -> None:
    if not shutil.which("valgrind"):
        return
    print("\n## Instruction counts\n")
    rows = [[name, *map(figure, counts)] for name, counts in count_instructions().items()]
    print_table(["", *MODES], rows)


def print_host(large: bool) -> None:
    print("\n## Build time, load time, size and memory\n")
    rows = []
    for operators in (1000, 10_000, 100_000) if large else (1000,):
        for mode in MODES if operators < 100_000 else MODES[:1]:
            whole, cached = host.build_seconds(operators, mode)
            rows.append(
                [f"build a chain of {operators:,} operators, {mode}", f"{whole:.2f} s, {cached:.2f} s from cached C"]
            )
    for mode in MODES:
        rows.append([f"load 100 MB of constants, {mode}", f"{host.load_milliseconds(mode):.2f} ms"])
    rows.append(["runtime as a shared library, stripped", f"{host.library_bytes() / 1000:.0f} kB"])
    for mode in MODES:
        added = host.resident_kilobytes(mode)
        rows.append([f"resident memory that a loaded machine adds, {mode}", f"{added / 1000:.1f} MB"])
    print_table(["", ""], rows)


def main() -> None:
    print_costs()
    print_host("--large" in sys.argv)
    print_instructions()


if __name__ == "__main__":
    main()
