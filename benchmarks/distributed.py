"""Measure the overhead of a batch on a local Dask cluster, and the scaling over processes.

    python -m benchmarks.distributed [--processes 2] [--seconds 4]

The client and the scheduler share the processors with the workers, as always in a cluster on one machine.  There are
two kinds of batches of a given length:

- Batches that wait need no processor.  With more workers than processors, they show the overhead of the client, the
  scheduler and the workers alone.
- Batches that compute run a loop of calls, which needs no memory.  They also show the cost of sharing the processors.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster, WorkerPlugin

from relvm import vm
from relvm.distributed import Runner, map_batches, map_files
from relvm.frontend.text import parse_module

WAIT = 'def main(milliseconds: i64) => object = packed("benchmarks.wait", milliseconds) : object'
LOOP = "def main(i: i64) -> i64 = if i > 0 then @main(i - 1) else i"
DOUBLE = "def main(x: f32[n]) -> f32[n] = add(x, x)"
MILLISECONDS = (1, 2, 5, 10, 20, 50, 100, 200)
WORKERS = (1, 2, 4, 8)
MEGABYTES = (0.001, 1, 4, 16)
MODEL_MEGABYTES = (1, 100)


@contextmanager
def cluster(processes: int) -> Iterator[Client]:
    """Start a cluster with `processes` worker processes on this machine, and yield a client."""
    local = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
    with (
        LocalCluster(n_workers=processes, threads_per_worker=1, silence_logs=logging.CRITICAL, **local) as workers,
        Client(workers) as client,
    ):
        yield client


def build(text: str) -> vm.Executable:
    return vm.build(parse_module(text), target="numpy")


def large(megabytes: float) -> vm.Executable:
    """Return an executable with a constant of `megabytes` MB."""
    builder = vm.ExecBuilder()
    with builder.function("main", ["x"]):
        builder.emit_ret(builder.r(0))
    with builder.function("constant", ["x"]):
        constant = builder.const(np.ones(int(megabytes * 250_000), np.float32))
        builder.emit_call("vm.builtin.make_tuple", [constant], dst=builder.r(1))
        builder.emit_ret(builder.r(1))
    return builder.get()


def seconds_of(batches: Iterator | list, executable: vm.Executable, client: Client, **options) -> float:
    """Return the seconds that `map_batches` takes for all batches."""
    began = time.perf_counter()
    for _ in map_batches(executable, batches, client=client, **options):
        pass
    return time.perf_counter() - began


def overhead(client: Client, seconds: float) -> list[tuple[str, str, str]]:
    """Measure batches that do nothing.

    Return rows: a name, the milliseconds for a batch, and the milliseconds of CPU time for a batch in this process,
    which runs the client and the scheduler.
    """
    loop, double = build(LOOP), build(DOUBLE)
    count = max(int(seconds * 100), 20)
    ways = {
        "one at a time": lambda: seconds_of([(0,)] * count, loop, client, ahead=1),
        "two per worker": lambda: seconds_of([(0,)] * count, loop, client),
        "100 in flight": lambda: seconds_of([(0,)] * count, loop, client, ahead=100),
    }
    seconds_of([(0,)] * 20, loop, client)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            np.save(Path(folder, f"{number:06}.npy"), np.float32([number]))
        ways["one input file and one output file"] = lambda: written(double, folder, client)
        rows = []
        for name, run in ways.items():
            before = time.process_time()
            took = run()
            used = time.process_time() - before
            rows.append((name, f"{took / count * 1e3:.2f}", f"{used / count * 1e3:.2f}"))
    return rows


def written(executable: vm.Executable, folder: str, client: Client) -> float:
    """Return the seconds that `map_files` takes for all files in a folder."""
    began = time.perf_counter()
    for _ in map_files(executable, folder, Path(folder, "out"), client=client):
        pass
    return time.perf_counter() - began


def sizes(client: Client, seconds: float) -> list[tuple[str, str, str]]:
    """Measure large batches.

    Return rows: the megabytes of a batch, the milliseconds for a batch whose arguments and results are sent through the
    scheduler, and the milliseconds for a batch that is read from a file and has a small result.
    """
    double, rows = build(DOUBLE), []
    for megabytes in MEGABYTES:
        x = np.ones(int(megabytes * 250_000), np.float32)
        count = max(int(seconds * 25 / (1 + megabytes)), 8)
        sent = seconds_of((x for _ in range(count)), double, client) / count
        with tempfile.TemporaryDirectory() as folder:
            for number in range(count):
                np.save(Path(folder, f"{number}.npy"), x)
            read = seconds_of(folder, build("def main(x: f32[n]) -> i64 = 1"), client) / count
        rows.append((f"{megabytes:g}", f"{sent * 1e3:.1f}", f"{read * 1e3:.1f}"))
    return rows


def models(client: Client) -> list[tuple[str, str]]:
    """Measure large executables.

    Return rows: the megabytes of the executable, and the seconds of its first and its second use by all workers.
    """
    rows = []
    for megabytes in MODEL_MEGABYTES:
        executable = large(megabytes)
        batches = [np.ones(1, np.float32)] * 2 * len(client.nthreads())
        first, again = (seconds_of(batches, executable, client) for _ in range(2))
        rows.append((f"{megabytes:g}", f"{first:.2f}", f"{again:.2f}"))
    return rows


class Functions(WorkerPlugin):
    """A plugin that registers the function benchmarks.wait on each worker."""

    def setup(self, worker: object) -> None:
        vm.register_func("benchmarks.wait", lambda milliseconds: time.sleep(milliseconds / 1e3), override=True)


def waiting(seconds: float) -> list[list[str]]:
    """Measure batches that wait.

    Return rows: the milliseconds of a batch, and for each number of workers the batches per second and the overhead, as
    a percentage of the time of the batches.
    """
    wait, rows = build(WAIT), [[f"{each}"] for each in MILLISECONDS]
    options = {"functions": ["benchmarks.*"]}
    for count in WORKERS:
        with cluster(count) as client:
            client.register_plugin(Functions())
            seconds_of([(0,)] * 20 * count, wait, client, **options)
            for row, milliseconds in zip(rows, MILLISECONDS, strict=True):
                runs = max(int(seconds / milliseconds * 1e3), 10) * count
                took = seconds_of([(milliseconds,)] * runs, wait, client, **options)
                row += [f"{runs / took:.0f}", f"{(took * count * 1e3 / (milliseconds * runs) - 1) * 100:.0f} %"]
    return rows


def alone(runner: Runner, rounds: int) -> float:
    """Return the seconds of a run in this process, the minimum of five runs."""
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        runner(rounds)
        best = min(best, time.perf_counter() - began)
    return best


def lengths(processes: int, seconds: float) -> list[list[str]]:
    """Measure batches that compute.  Return rows as in `waiting`."""
    loop = build(LOOP)
    runner = Runner(loop)
    rounds = int(1e-3 / alone(runner, 1_000_000) * 1_000_000)
    rows = [[f"{each}"] for each in MILLISECONDS]
    for count in range(1, processes + 1):
        with cluster(count) as client:
            seconds_of([(0,)] * 20, loop, client)
            for row, milliseconds in zip(rows, MILLISECONDS, strict=True):
                runs = max(int(seconds / milliseconds * 1e3), 4) * count
                before = alone(runner, rounds * milliseconds)
                took = seconds_of([(rounds * milliseconds,)] * runs, loop, client)
                ideal = min(before, alone(runner, rounds * milliseconds)) * runs / count
                row += [f"{runs / took:.1f}", f"{(took / ideal - 1) * 100:.0f} %"]
    return rows


def table(head: list[str], rows: list) -> None:
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print(flush=True)


def columns(workers: Iterable[int]) -> list[str]:
    """Return the headings of two columns for each number of workers."""
    return [head for count in workers for head in (f"batches/s, {count} worker{'s' * (count > 1)}", "lost")]


def main() -> None:
    """Print the tables, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="the most workers (default: 2)")
    parser.add_argument("--seconds", type=float, default=4, metavar="S", help="about how long a row takes (default: 4)")
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    began = time.perf_counter()
    with cluster(options.processes) as client:
        seconds_of([(0,)], build(LOOP), client)
        print(f"From nothing to the first result: {time.perf_counter() - began:.1f} s\n")
        head = [f"empty batch, {options.processes} workers", "ms", "client and scheduler, ms"]
        table(head, overhead(client, options.seconds))
        table(
            ["MB per batch", "sent to the worker and returned, ms", "read from a file, ms"],
            sizes(client, options.seconds),
        )
        table(["MB of executable", "first run, s", "second run, s"], models(client))
    table(["batch that sleeps, ms", *columns(WORKERS)], waiting(options.seconds))
    computing = range(1, options.processes + 1)
    table(["batch that computes, ms", *columns(computing)], lengths(options.processes, options.seconds))


if __name__ == "__main__":
    main()
