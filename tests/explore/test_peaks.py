"""What the machine can do at most."""

from __future__ import annotations

import numpy as np
import pytest

from relvm.explore import copy_bandwidth, measured_peaks
from relvm.explore.views import machine_peak
from relvm.runtime.virtual_machine import VirtualMachine


def test_peaks_are_measured_once() -> None:
    first = measured_peaks(1)
    assert first is measured_peaks(1)
    assert first.threads == 1 and first.operations > 0.5e9 and first.bytes > 0.1e9


def test_a_copy_takes_the_time_that_its_bandwidth_says(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.5, 1.0, 1.25, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    monkeypatch.setattr("relvm.explore.views.machine_peak.time.perf_counter", lambda: next(clock))
    assert copy_bandwidth(2) == 128_000_000 / 0.25


def test_every_number_is_multiplied_and_added_to_as_often_as_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_peak, "_STEPS", 5)
    start = np.random.default_rng(0).standard_normal((3, 192)).astype(np.float32)
    numbers, expected = start.copy(), start
    VirtualMachine(machine_peak._multiply_adds(), num_threads=2)["main"](numbers)
    for _ in range(5):
        expected = expected * np.float32(0.5) + np.float32(1)
    np.testing.assert_allclose(numbers, expected, rtol=1e-6)


def test_without_a_compiler_only_memory_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVM_CC", "none")
    machine_peak._measured.cache_clear()
    try:
        assert measured_peaks().operations is None and measured_peaks().bytes > 0.1e9
    finally:
        machine_peak._measured.cache_clear()
