"""Twenty seconds of what tests/vm/soak.py does for hours: nothing is left behind; and what is would be seen."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from soak import ACTIVITIES, Held, complaints, do, held, workshop

from relvm import vm
from relvm.frontend.text import parse_module

SECONDS = 20 / len(ACTIVITIES)
NUMBER = 3
SLACK_BYTES = 100_000  # of what Python itself and NumPy keep for the next time

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with workshop() as made:
        yield made


@pytest.mark.parametrize("name", ACTIVITIES)
def test_work_that_is_repeated_leaves_nothing_behind(name: str, folder: Path) -> None:
    if name == "models":
        pytest.importorskip("onnx")
    for _ in range(2):  # what is kept for the next time is there from then on
        do(NUMBER, name, folder)
    before, end, rounds = held(), time.monotonic() + SECONDS, 0
    while rounds < 3 or time.monotonic() < end:
        do(NUMBER, name, folder)
        rounds += 1
    after = held()
    assert after.allocated_bytes <= before.allocated_bytes + SLACK_BYTES, f"{rounds} rounds"
    counts = ("descriptors", "threads", "libraries", "machines", "executables")
    assert [getattr(after, what) for what in counts] == [getattr(before, what) for what in counts], f"{rounds} rounds"


def test_what_is_left_behind_is_counted() -> None:
    executable = vm.build(parse_module("def main(x: f32[n]) -> f32[n] = add(x, x)"), target="numpy")
    before = held()
    left = [vm.VirtualMachine(executable) for _ in range(3)], os.dup(0)
    tensor = left[0][0]["main"](np.ones(1_000_000, np.float32))
    after = held()
    os.close(left[1])
    assert (after.machines, after.executables) == (before.machines + 3, before.executables)
    assert after.descriptors == before.descriptors + 1
    assert after.allocated_bytes == 0 or after.allocated_bytes >= before.allocated_bytes + tensor.numpy().nbytes


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
