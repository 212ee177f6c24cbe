"""Measure machines on several Python threads: the runs per second, and how they scale with the number of threads.

    python -m benchmarks.threads

All threads share one executable, and each thread has its own machine.  For comparison, the table has the same number of
processes, which share nothing: the difference is the time that threads wait for each other.  It also has a
`relvm.ThreadPoolRunner` with the same number of workers: its difference from threads is the cost of passing inputs and
results.  All variants take turns.  A row shows the best result of each, because measurements are noisy.
"""

from __future__ import annotations

import argparse
import itertools
import os
import struct
import threading
import time

import numpy as np

import relvm
from relvm import vm
from relvm.frontend.text import parse_module

MODES = ("bytecode", "compiled")
COUNTS = (2, 4)
SECONDS, TURNS = 0.05, 40

VECTOR, MATRIX = np.ones(16, np.float32), np.ones((384, 384), np.float32)

# For each program, its text and arguments.  The first two mainly measure the machine, and the last two the kernels.
WORK = {
    "fib(24), no kernels": (
        "def main(n: i64) -> i64 { return if n < 2 then n else @main(n - 1) + @main(n - 2) }",
        (24,),
    ),
    "1,000 kernels of 16 elements in one run": (
        """def main(x: f32[n]) -> f32[n] { return @loop(1000, x) }
        def loop(i: i64, x: f32[n]) -> f32[n] { return if i == 0 then x else @loop(i - 1, tanh(x)) }""",
        (VECTOR,),
    ),
    "1 kernel of 16 elements in one run": ("def main(x: f32[n]) -> f32[n] = tanh(x)", (VECTOR,)),
    "GEMM 384 x 384 x 384": ("def main(x: f32[n, n]) -> f32[n, n] = matmul(x, x)", (MATRIX,)),
}


def rate_of(executable: vm.Executable, arguments: tuple, start: threading.Barrier | None = None) -> float:
    """Create a machine, run it for SECONDS, and return the runs per second.  start: a barrier to wait for, or None."""
    run = vm.VirtualMachine(executable, num_threads=1)["main"]
    run(*arguments)
    if start:
        start.wait()
    began, runs = time.perf_counter(), 0
    while (now := time.perf_counter()) - began < SECONDS:
        run(*arguments)
        runs += 1
    return runs / (now - began)


def of_threads(executable: vm.Executable, arguments: tuple, count: int) -> float:
    """Return the total runs per second of `count` threads."""
    start, rates = threading.Barrier(count), []
    threads = [
        threading.Thread(target=lambda: rates.append(rate_of(executable, arguments, start))) for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(rates)


def of_processes(executable: vm.Executable, arguments: tuple, count: int) -> float:
    """Return the total runs per second of `count` forked processes."""
    children = []
    for _ in range(count):
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writes, struct.pack("d", rate_of(executable, arguments)))
            os._exit(0)
        os.close(writes)
        children.append((child, reads))
    total = 0.0
    for child, reads in children:
        total += struct.unpack("d", os.read(reads, 8))[0]
        os.close(reads)
        os.waitpid(child, 0)
    return total


def of_runner(executable: vm.Executable, arguments: tuple, count: int) -> float:
    """Return the runs per second of a ThreadPoolRunner with `count` workers."""
    with relvm.ThreadPoolRunner(executable, count) as runner:
        results = runner.map(itertools.repeat(arguments))
        for _ in range(2 * count):  # warm-up of all workers
            next(results)
        began, runs = time.perf_counter(), 0
        while (now := time.perf_counter()) - began < SECONDS:
            next(results)
            runs += 1
        results.close()
    return runs / (now - began)


WAYS = {"threads": of_threads, "processes": of_processes, "workers": of_runner}


def best(executable: vm.Executable, arguments: tuple) -> list[float]:
    """Return the best of TURNS measurements of one thread, then of each way in WAYS with each number in COUNTS."""
    ways = [(of_threads, 1), *((way, count) for count in COUNTS for way in WAYS.values())]
    found = dict.fromkeys(ways, 0.0)
    for _ in range(TURNS):
        for way, count in ways:
            found[way, count] = max(found[way, count], way(executable, arguments, count))
    return list(found.values())


def main() -> None:
    """Print the table, as Markdown."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    print(f"| | mode | runs per second | {' | '.join(f'{count} {way}' for count in COUNTS for way in WAYS)} |")
    print(f"|---|---|---|{'---|' * len(COUNTS) * len(WAYS)}")
    for name, (text, arguments) in WORK.items():
        for mode in MODES:
            one, *more = best(vm.build(parse_module(text), mode), arguments)
            print(f"| {name} | {mode} | {one:.3g} | {' | '.join(f'{rate / one:.2f}' for rate in more)} |", flush=True)


if __name__ == "__main__":
    main()
