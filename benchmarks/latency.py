"""Latency of ending a run:   python -m benchmarks.latency [models]

Each row is a program in a mode.  It has the median and the longest time until Python has the error, counted from
Ctrl-C, from an interrupt by another thread, and from a deadline (max_seconds).  Runs of real models are ended at
points spread over the run.  The last column is the longest kernel, because a kernel that has begun is completed before
the run ends.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.models.catalogue import MODELS
from relvm import vm
from relvm.errors import RelvmInterrupted, RelvmTimeoutError
from relvm.frontend.onnx import from_onnx
from relvm.frontend.text import parse_module

RUNS = 20
MODES = ("bytecode", "compiled")
DEFAULT_MODELS = ("ppocr4_det", "vit_s_focus")
ENDLESS = 1 << 62
LOOPS = {
    "scalar loop": ("def main(n: i64) -> i64 = if n == 0 then n else @main(n - 1)", ()),
    "loop of kernels of 8 elements": (
        "def main(n: i64, x: f32[k]) -> f32[k] = if n == 0 then x else @main(n - 1, negative(x))",
        (np.ones(8, np.float32),),
    ),
    "loop of GEMMs 512 x 512 x 512": (
        "def main(n: i64, x: f32[512, 512]) -> f32[512, 512] = if n == 0 then x else @main(n - 1, matmul(x, x))",
        (np.eye(512, dtype=np.float32),),
    ),
}
ENDS = (KeyboardInterrupt, RelvmInterrupted, RelvmTimeoutError)


def main(models: Sequence[str]) -> None:
    """Print the table."""
    columns = ("milliseconds: median, longest", "Ctrl-C", "interrupt", "deadline", "longest kernel")
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for name, (text, arguments) in LOOPS.items():
        for mode in MODES:
            executable = vm.build(parse_module(text), mode)
            show(f"{name}, {mode}", executable, (ENDLESS, *arguments), [0.02] * RUNS, "")
    for name in models:
        module = from_onnx(MODELS[name].path())
        case = MODELS[name].cases()[0]
        arguments = [case[parameter] for parameter in module["main"].input_names]
        for mode in MODES:
            executable = vm.build(module, mode)
            machine = vm.VirtualMachine(executable)
            machine["main"](*arguments)
            seconds = min(timed(machine, arguments) for _ in range(3))
            longest = max(row.seconds / row.count for row in machine.profile("main", *arguments).rows)
            delays = [seconds * (0.1 + 0.7 * i / RUNS) for i in range(RUNS)]
            show(f"{name}, {mode}, {seconds * 1e3:.0f} ms", executable, arguments, delays, f"{longest * 1e3:.2f}")


def timed(machine: vm.VirtualMachine, arguments: Sequence[Any]) -> float:
    """Return the seconds of a run."""
    started = time.perf_counter()
    machine["main"](*arguments)
    return time.perf_counter() - started


def show(name: str, executable: Any, arguments: Sequence[Any], delays: Sequence[float], longest: str) -> None:
    """Print a row.  delays: the seconds after which each run is ended."""
    machine = vm.VirtualMachine(executable)

    def control_c() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    cells = [late(ended(machine, arguments, delays, act)) for act in (control_c, machine.interrupt)]
    cells.append(late(over_deadline(executable, arguments, delays)))
    print("| " + " | ".join([name, *cells, longest]) + " |", flush=True)


def ended(
    machine: vm.VirtualMachine, arguments: Sequence[Any], delays: Sequence[float], act: Callable[[], None]
) -> list[float]:
    """Start a run for each delay, and call `act` after the delay.

    Return the seconds from the call of `act` until Python has the error, without runs that were already over.
    """
    found = []
    for delay in delays:
        acted: list[float] = []

        def later(delay: float = delay, acted: list[float] = acted) -> None:
            time.sleep(delay)
            acted.append(time.perf_counter())
            act()

        thread = threading.Thread(target=later)
        thread.start()
        try:
            machine["main"](*arguments)
            thread.join()  # Ctrl-C is raised here if the run is over
        except ENDS:
            found.append(time.perf_counter() - acted[0])
        thread.join()
    return found


def over_deadline(executable: Any, arguments: Sequence[Any], delays: Sequence[float]) -> list[float]:
    """Return the seconds from the deadline of each run until Python has the error."""
    found = []
    for delay in delays:
        machine = vm.VirtualMachine(executable, max_seconds=delay)
        started = time.perf_counter()
        try:
            machine["main"](*arguments)
        except ENDS:
            found.append(time.perf_counter() - started - delay)
    return found


def late(seconds: list[float]) -> str:
    """Return the text of a table cell."""
    if not seconds:
        return "it was over"
    return f"{statistics.median(seconds) * 1e3:.2f}, {max(seconds) * 1e3:.2f}"


if __name__ == "__main__":
    main(sys.argv[1:] or DEFAULT_MODELS)
