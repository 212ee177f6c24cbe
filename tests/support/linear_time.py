"""A check that work takes time linear in the size of its input."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def assert_linear(work: Callable[[int], object]) -> None:
    """Check that ten times the size takes far less than a hundred times as long.

    The minimum of three times counts.  Objects left by earlier tests are not garbage-collected meanwhile.
    """

    def least(size: int) -> float:
        return min(_seconds(work, size) for _ in range(3))

    gc.collect()
    gc.freeze()
    try:
        assert least(10_000) < 40 * least(1_000)
    finally:
        gc.unfreeze()


def _seconds(work: Callable[[int], object], size: int) -> float:
    start = time.process_time()
    work(size)
    return time.process_time() - start
