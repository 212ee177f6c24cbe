"""Timing: the median of nine runs, after a warm-up run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

REPEATS = 9


def median(run: Callable[[], object], per: float = 1) -> float:
    """Return the median time of a run in nanoseconds, divided by `per`."""
    run()
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        run()
        times.append((time.perf_counter() - started) / per * 1e9)
    return statistics.median(times)
