"""Compute the speedup of models with 2 to 64 cores:   python -m benchmarks.many_cores [MODEL...]

The computer needs two cores only.  simulate.c divides each parallel loop as the thread pool does for N threads, times
the parts one after the other, and computes when N threads would have finished them.  A thread that joins a loop, takes
a part or leaves the loop writes to a cache line that other threads write, too.  The expectation assumes that

- each core runs a part as fast as a core that runs alone: the memory bandwidth and the clock do not limit it
- the workers spin, because loops follow each other within 200 microseconds
- a core can write such a cache line 100 nanoseconds after another core has written it (--handover), as is usual for
  cores of one processor

The column "2" can be checked: "2 measured" is the speedup with two threads.  The last columns say where the cores wait
during a run with 64 threads: in the part of the time outside of parallel loops ("serial"), because a loop has too few
or unequal parts ("uneven"), and for the pool ("pool").
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.models.catalogue import MODELS
from relvm import vm
from relvm.frontend.onnx import from_onnx
from relvm.tables import include_flags, runtime_sources

_RUNS = 15
_COUNTS = (2, 4, 8, 16, 32, 64)
_Times = dict[tuple[str, int], list[list[float]]]  # ("measured" or "simulated", threads) -> the numbers of each run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    columns = ["model", "case", "ms", "2 measured", *map(str, _COUNTS), "loops", "serial", "uneven", "pool"]
    parser.add_argument("--handover", type=float, default=100, help="nanoseconds")
    options = parser.parse_args()
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    with _simulator() as program:
        for name in options.models or list(MODELS):
            _print_model(program, name, options.handover)


def _print_model(program: Path, name: str, handover: float) -> None:
    module = from_onnx(MODELS[name].path())
    with tempfile.TemporaryDirectory() as folder:
        executable = Path(folder, "model.rvm")
        vm.build(module, "compiled").save(executable)
        for number, case in enumerate(MODELS[name].cases()):
            inputs = [Path(folder, f"{index}.npy") for index in range(len(case))]
            for path, key in zip(inputs, module["main"].input_names, strict=True):
                np.save(path, np.array(case[key], order="C"))
            times = _simulate(program, executable, handover, inputs)
            print("| " + " | ".join([name, str(number), *_cells(times)]) + " |", flush=True)


def _cells(times: _Times) -> list[str]:
    one, two = (min(times["measured", threads])[0] for threads in (1, 2))
    alone = min(times["simulated", 1])[0]
    speedups = [alone / min(times["simulated", count])[0] for count in _COUNTS]
    time, serial, even, listed, loops = min(times["simulated", _COUNTS[-1]])
    shares = (serial / time, (listed - even) / time, (time - serial - listed) / time)
    cells = [f"{one / 1e6:.3g}", *(f"{speedup:.2f}" for speedup in (one / two, *speedups)), f"{loops:.0f}"]
    return [*cells, *(f"{share:.0%}" for share in shares)]


def _simulate(program: Path, executable: Path, handover: float, inputs: list[Path]) -> _Times:
    """Run the simulator, and return the numbers of each run."""
    command = [str(program), str(executable), str(_RUNS), str(handover), *map(str, inputs)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    times: _Times = {}
    for kind, threads, *numbers in map(str.split, lines):
        times.setdefault((kind, int(threads)), []).append([float(number) for number in numbers])
    return times


@contextmanager
def _simulator() -> Iterator[Path]:
    """Compile the simulator with the runtime, whose thread pool it replaces."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "simulate")
        sources = [source for source in runtime_sources() if source.name != "thread_pool.c"]
        pool = next(source for source in runtime_sources() if source.name == "thread_pool.c")
        flags = ["-std=gnu11", "-O2", "-DNDEBUG", *include_flags(), f"-I{pool.parent}"]
        files = [str(Path(__file__).with_name("simulate.c")), *map(str, sources)]
        subprocess.run(["cc", *flags, *files, "-o", str(program), "-lm", "-ldl", "-lpthread"], check=True)
        yield program


if __name__ == "__main__":
    main()
