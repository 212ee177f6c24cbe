"""Instructions of the measured programs, counted by valgrind.  The counts are reproducible, to compare later changes.

The programs run in the C example (examples/c/relvm_run.c) for a number of iterations and for twice as many.  The
difference is the cost of the iterations.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.machine.programs import MODES, PROGRAMS, ROWS, UNROLLED, Program, program_executable, row_executable
from relvm.runtime.executable import Executable
from relvm.tables import include_flags, runtime_sources

ROOT = Path(__file__).parents[2]
ROUNDS, FIB = 1000, (15, 16, 1973, 3193)  # fib(15) makes 1973 calls, and fib(16) 3193


@contextmanager
def _runner() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "relvm_run")
        sources = [ROOT / "examples" / "c" / "relvm_run.c", *runtime_sources()]
        flags = ["-std=gnu11", "-O2", "-DNDEBUG", *include_flags()]
        libraries = ["-lm", "-ldl", "-lpthread"]
        subprocess.run(["gcc", *flags, *map(str, sources), "-o", str(program), *libraries], check=True)
        yield program


def _count(runner: Path, executable: Executable, *args: object) -> int:
    path = runner.with_name("program.rvm")
    executable.save(path)
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(runner), str(path), "main"]
    done = subprocess.run([*command, *map(str, args)], capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def _of_program(runner: Path, program: Program, mode: str) -> float:
    executable = program_executable(program, mode)
    if program is PROGRAMS[0]:
        low, high, few, many = FIB
        return (_count(runner, executable, high) - _count(runner, executable, low)) / (many - few)
    *start, _ = program.args
    low, high = (_count(runner, executable, *start, rounds) for rounds in (ROUNDS, 2 * ROUNDS))
    return (high - low) / ROUNDS


def count_instructions() -> dict[str, list[float]]:
    """Return, for each row, the number of instructions in bytecode and in compiled mode."""
    counts: dict[str, list[float]] = {}
    os.environ["RELVM_CPU"] = "x86-64-v2"  # valgrind does not support AVX-512
    with _runner() as runner:
        for mode in MODES:
            empty = 0.0
            for row in (None, *ROWS):
                executable = row_executable(row, mode)
                low, high = (_count(runner, executable, rounds) for rounds in (ROUNDS, 2 * ROUNDS))
                if row is None:
                    empty = (high - low) / ROUNDS
                else:
                    counts.setdefault(row.name, []).append(((high - low) / ROUNDS - empty) / UNROLLED)
            for program in PROGRAMS:
                counts.setdefault(program.name, []).append(_of_program(runner, program, mode))
    return counts
