"""Tests of peak rates of the machine."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from relvm.compiler.disk_cache import remove_least_recently_used
from relvm.explore import Peaks, copy_bandwidth, draw_roofline, format_profile, measured_peaks
from relvm.explore.views import machine_peak
from relvm.runtime.profiler import Profile
from relvm.runtime.virtual_machine import VirtualMachine


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, float], None]:
    """Replace the measurements: each returns a rate, and the fraction of the available processor time that it got."""

    def replace(rate: float, share: float) -> None:
        monkeypatch.setattr(machine_peak, "_arithmetic_rate", lambda threads: (rate, share))
        monkeypatch.setattr(machine_peak, "_copy_bandwidth", lambda threads: (rate / 2, 1.0))

    return replace


def test_peaks_are_measured(cache: Path) -> None:
    peaks = measured_peaks(1)
    assert peaks.threads == 1 and peaks.operations > 0.1e9 and peaks.bytes > 0.01e9


def test_peaks_are_kept_for_a_number_of_threads(cache: Path, measured: Callable[[float, float], None]) -> None:
    measured(8e9, 0.9)
    assert measured_peaks(2) == Peaks(8e9, 4e9, 2)
    measured(6e9, 0.9)
    assert measured_peaks(2) == Peaks(8e9, 4e9, 2)
    assert measured_peaks(1) == Peaks(6e9, 3e9, 1)
    assert measured_peaks(2, again=True) == measured_peaks(2) == Peaks(6e9, 3e9, 2)
    for content in (b"", b"[]", b"\xff", b'{"operations": 1}', b'{"operations": "8", "bytes": 1.0}'):
        for file in (cache / "peaks").iterdir():
            file.write_bytes(content)
        measured(5e9, 0.9)
        assert measured_peaks(1) == Peaks(5e9, 2.5e9, 1)
    remove_least_recently_used(0)
    assert not list((cache / "peaks").iterdir())


def test_peaks_of_a_busy_machine_are_not_kept(cache: Path, measured: Callable[[float, float], None]) -> None:
    measured(2e9, 0.25)
    peaks = measured_peaks(1)
    assert peaks == Peaks(2e9, 1e9, 1, 0.25) and peaks.is_disturbed
    profile = Profile("main", 1.0, ())
    assert "(estimated: other programs took 75% of the processors)" in format_profile(profile, peaks)
    assert "(estimated: other programs took 75% of the processors)" in draw_roofline(profile, peaks).axes[0].get_title()
    measured(8e9, 0.9)
    assert measured_peaks(1) == Peaks(8e9, 4e9, 1) and not measured_peaks(1).is_disturbed
    assert "estimated" not in format_profile(profile, measured_peaks(1))


@pytest.mark.parametrize(
    ("used", "found"),
    [
        (0.36, (0.3, pytest.approx(0.9))),  # seconds of processor time in a second: the elapsed time counts
        (0.16, (pytest.approx(0.08), pytest.approx(0.4))),  # two threads on two processors need 0.08 s each
    ],
)
def test_the_best_time_does_not_count_waiting_for_processors(
    monkeypatch: pytest.MonkeyPatch, used: float, found: tuple[float, float]
) -> None:
    now = {"wall": 0.0, "processor": 0.0}
    runs = iter([0.5, 0.3, 0.4, 0.6, 0.5])

    def run() -> float:
        now["wall"] += 0.2
        now["processor"] += used
        return next(runs)

    monkeypatch.setattr(machine_peak.time, "perf_counter", lambda: now["wall"])
    monkeypatch.setattr(machine_peak.time, "process_time", lambda: now["processor"])
    monkeypatch.setattr(machine_peak.os, "cpu_count", lambda: 2)
    assert machine_peak._best_time(run, 8) == found


def test_a_copy_takes_the_time_that_its_bandwidth_says(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.5, 0.5, 1.0, 1.25, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 9.0])
    used = count(0, 100)
    monkeypatch.setattr(machine_peak.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(machine_peak.time, "process_time", lambda: next(used))
    assert copy_bandwidth(2) == 128_000_000 / 0.25


def test_every_number_is_multiplied_and_added_to_as_often_as_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_peak, "_STEPS", 5)
    start = np.random.default_rng(0).standard_normal((3, 192)).astype(np.float32)
    numbers, expected = start.copy(), start
    VirtualMachine(machine_peak._multiply_adds(), num_threads=2)["main"](numbers)
    for _ in range(5):
        expected = expected * np.float32(0.5) + np.float32(1)
    np.testing.assert_allclose(numbers, expected, rtol=1e-6)


def test_without_a_compiler_only_memory_is_measured(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVM_CC", "none")
    assert measured_peaks().operations is None and measured_peaks().bytes > 0.01e9
