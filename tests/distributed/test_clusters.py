"""Tests of clusters that change during a run: workers join, all workers are replaced, or the scheduler dies."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from distributed import Client
from functions import NAMES, Functions

from relvm import vm
from relvm.distributed import map_batches
from relvm.errors import RelvmInterrupted, RelvmTypeError
from relvm.frontend.text import parse_module

MET = vm.build(
    parse_module('def main(x: f32[n]) => f32[n] = packed("test.distributed.met", x) : f32[n]'), target="numpy"
)
DOUBLE = vm.build(parse_module("def main(x: f32[n]) -> f32[n] = add(x, x)"), target="numpy")


class Cluster:
    """A scheduler process and worker processes with one thread each, which are not restarted if they die."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self.scheduler = self._run("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.workers: list[subprocess.Popen] = []
        deadline = time.monotonic() + 600
        while not self.file.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def add_worker(self) -> None:
        self.workers.append(self._run("dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard"))

    def end(self, *processes: subprocess.Popen) -> None:
        for process in processes:
            process.kill()
            process.wait()

    def _run(self, program: str, *options: str) -> subprocess.Popen:
        command = [
            sys.executable,
            "-P",
            "-m",
            f"distributed.cli.{program}",
            "--scheduler-file",
            str(self.file),
            *options,
        ]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}  # for functions.py
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, cwd=self.file.parent, env=environment, **quiet)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    made.add_worker()
    try:
        yield made
    finally:
        made.end(made.scheduler, *made.workers)


@pytest.fixture
def client(cluster: Cluster, tmp_path: Path) -> Iterator[Client]:
    (tmp_path / "marks").mkdir()
    with Client(scheduler_file=str(cluster.file), set_as_default=False) as client:
        client.register_plugin(Functions(tmp_path / "marks"))
        client.wait_for_workers(1, timeout=600)
        yield client


def inputs(count: int) -> list[np.ndarray]:
    return [np.full(3, number, np.float32) for number in range(count)]


def test_a_worker_that_comes_takes_part(cluster: Cluster, client: Client) -> None:
    """Each batch waits until another process also runs a batch."""
    results = map_batches(MET, inputs(2), client=client, functions=[NAMES])
    cluster.add_worker()
    assert [int(each[0]) for each in results] == [0, 1]


def test_a_run_waits_for_a_worker_where_all_have_gone(cluster: Cluster, client: Client) -> None:
    results = map_batches(DOUBLE, itertools.cycle(inputs(5)), client=client)
    assert [int(next(results)[0]) for _ in range(7)] == [0, 2, 4, 6, 8, 0, 2]
    cluster.end(*cluster.workers)
    cluster.add_worker()
    assert [int(next(results)[0]) for _ in range(7)] == [4, 6, 8, 0, 2, 4, 6]
    results.close()


def test_a_scheduler_that_dies_ends_the_run(cluster: Cluster, client: Client) -> None:
    results = map_batches(DOUBLE, itertools.cycle(inputs(5)), client=client)
    assert int(next(results)[0]) == 0
    cluster.end(cluster.scheduler)
    with pytest.raises(RelvmInterrupted, match=r"the cluster lost the batch|lost its connection to the cluster"):
        for _ in range(1000):
            next(results)
    assert not list(results)


def test_a_client_that_does_not_wait_is_refused(cluster: Cluster) -> None:
    async def run() -> None:
        async with Client(scheduler_file=str(cluster.file), asynchronous=True, set_as_default=False) as client:
            with pytest.raises(
                RelvmTypeError, match="expected a synchronous client, got one created with asynchronous=True"
            ):
                map_batches(DOUBLE, inputs(1), client=client)

    asyncio.run(run())
