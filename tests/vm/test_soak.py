"""Run the soak test (tests/vm/soak.py) for twenty seconds: no resources leak, and leaks would be detected."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from soak import ACTIVITIES, Held, complaints, leave_behind, repeat

SECONDS = 20 / len(ACTIVITIES)
NUMBER = 3
SLACK_BYTES = 100_000  # allowance for caches of Python and NumPy

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc")


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    """Start a new process for the tests.

    In this process, threads left over from other tests, such as those of Dask, would open and close descriptors.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("name", ACTIVITIES)
def test_work_that_is_repeated_leaves_nothing_behind(name: str, process: ProcessPoolExecutor) -> None:
    if name == "models":
        pytest.importorskip("onnx")
    for _ in range(3):  # a leak grows in every attempt, but a resized hash table of Python only once
        before, after, rounds = process.submit(repeat, name, NUMBER, SECONDS).result()
        if after.allocated_bytes <= before.allocated_bytes + SLACK_BYTES:
            break
    else:
        pytest.fail(f"{rounds} rounds: {before.allocated_bytes} bytes, then {after.allocated_bytes}")
    counts = ("descriptors", "threads", "libraries", "machines", "executables")
    assert [getattr(after, what) for what in counts] == [getattr(before, what) for what in counts], f"{rounds} rounds"


def test_what_is_left_behind_is_counted(process: ProcessPoolExecutor) -> None:
    before, after, left_bytes = process.submit(leave_behind).result()
    assert (after.machines, after.executables) == (before.machines + 3, before.executables)
    assert after.descriptors == before.descriptors + 1
    assert after.allocated_bytes == 0 or after.allocated_bytes >= before.allocated_bytes + left_bytes


@pytest.mark.parametrize(
    ("what", "grown"),
    [
        ("resident_bytes", 1_020_000),
        ("descriptors", 11),
        ("threads", 11),
        ("libraries", 11),
        ("machines", 11),
        ("executables", 11),
    ],
)
def test_growth_in_the_last_quarter_is_a_complaint(what: str, grown: int) -> None:
    flat = Held(1_000_000, 1, 10, 10, 10, 10, 10)
    assert not complaints([flat] * 20)
    assert not complaints([replace(flat, resident_bytes=500_000)] * 10 + [flat] * 10)
    (complaint,) = complaints([flat] * 15 + [replace(flat, **{what: grown})] * 5)
    assert complaint.startswith(what.replace("_bytes", "").replace("resident", "resident memory"))
