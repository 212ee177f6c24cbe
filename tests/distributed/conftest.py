"""A Dask cluster of two processes for the tests of this folder."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import dask
import distributed
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from functions import Functions


@pytest.fixture(scope="session")
def marks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the folder in which functions on the workers record their calls."""
    return tmp_path_factory.mktemp("marks")


@pytest.fixture(scope="session")
def cluster(marks: Path) -> Iterator[distributed.Client]:
    """Start a cluster with two worker processes, which are restarted if a task kills them, and yield a client."""
    levels = [(handler, handler.level) for handler in logging.root.handlers]
    # On a busy machine, a killed worker can take longer to start again than the timeout, after which the cluster
    # would give it up.
    settings = {"distributed.scheduler.allowed-failures": 1, "distributed.deploy.lost-worker-timeout": "1 day"}
    local = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, silence_logs=logging.CRITICAL, **local) as cluster,
        distributed.Client(cluster) as client,
    ):
        for handler, level in levels:  # restore pytest's handlers, which silence_logs changes
            handler.setLevel(level)
        client.register_plugin(Functions(marks))
        yield client


@pytest.fixture
def client(cluster: distributed.Client, marks: Path) -> Iterator[distributed.Client]:
    """Return the client after removing all marks and waiting for two workers."""
    for mark in marks.iterdir():
        mark.unlink()
    cluster.wait_for_workers(2, timeout=600)
    yield cluster
