"""Times of calls that take turns, so that changes of the load affect all of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence


def least_times(calls: Sequence[Callable[[], object]], seconds: float) -> list[float]:
    """Return the least time of each call, in seconds.   seconds: the time for each call in all."""
    least = [math.inf] * len(calls)
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end:
        for number, call in enumerate(calls):
            for _ in range(3):
                start = time.perf_counter()
                call()
                least[number] = min(least[number], time.perf_counter() - start)
    return least
