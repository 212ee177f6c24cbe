"""Batches on a local Dask cluster: what a batch costs beyond its run, and how runs scale over processes.

    python -m benchmarks.distributed [--processes 2] [--seconds 4]

Client and scheduler share the processors with the workers, as they do wherever a cluster is one machine.  Batches of a
given length are of two kinds: those that wait need no processor, so more workers than there are processors show what
client, scheduler and workers lose by themselves; those that compute, a loop of calls, which needs no memory, also show
what sharing the processors costs.
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
    """A client of so many worker processes on this machine."""
    local = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
    with (
        LocalCluster(n_workers=processes, threads_per_worker=1, silence_logs=logging.CRITICAL, **local) as workers,
        Client(workers) as client,
    ):
        yield client


def build(text: str) -> vm.Executable:
    return vm.build(parse_module(text), target="numpy")


def large(megabytes: float) -> vm.Executable:
    """One with a constant of so many MB."""
    builder = vm.ExecBuilder()
    with builder.function("main", ["x"]):
        builder.emit_ret(builder.r(0))
    with builder.function("constant", ["x"]):
        constant = builder.const(np.ones(int(megabytes * 250_000), np.float32))
        builder.emit_call("vm.builtin.make_tuple", [constant], dst=builder.r(1))
        builder.emit_ret(builder.r(1))
    return builder.get()


def seconds_of(batches: Iterator | list, executable: vm.Executable, client: Client, **options) -> float:
    """Of a whole run."""
    began = time.perf_counter()
    for _ in map_batches(executable, batches, client=client, **options):
        pass
    return time.perf_counter() - began


def overhead(client: Client, seconds: float) -> list[tuple[str, str, str]]:
    """Milliseconds of a batch that does nothing, and of processor time of this process: client and scheduler."""
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
    """Seconds of `map_files`."""
    began = time.perf_counter()
    for _ in map_files(executable, folder, Path(folder, "out"), client=client):
        pass
    return time.perf_counter() - began


def sizes(client: Client, seconds: float) -> list[tuple[str, str, str]]:
    """Milliseconds of a batch of so many MB, in through the scheduler and as many out, or read and dropped."""
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
    """Seconds until each worker has run an executable of so many MB for the first time, and once more."""
    rows = []
    for megabytes in MODEL_MEGABYTES:
        executable = large(megabytes)
        batches = [np.ones(1, np.float32)] * 2 * len(client.nthreads())
        first, again = (seconds_of(batches, executable, client) for _ in range(2))
        rows.append((f"{megabytes:g}", f"{first:.2f}", f"{again:.2f}"))
    return rows


class Functions(WorkerPlugin):
    """Registers on each worker what batches wait by."""

    def setup(self, worker: object) -> None:
        vm.register_func("benchmarks.wait", lambda milliseconds: time.sleep(milliseconds / 1e3), override=True)


def waiting(seconds: float) -> list[list[str]]:
    """For each length of a batch that waits, batches a second and what is lost: the time beyond that of the batches."""
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
    """Seconds of a run in this process, the best of some."""
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        runner(rounds)
        best = min(best, time.perf_counter() - began)
    return best


def lengths(processes: int, seconds: float) -> list[list[str]]:
    """For each length of a batch, what is lost: the time of the run beyond that of its batches, of this time."""
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
    """Heads of two columns for each number of workers."""
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
