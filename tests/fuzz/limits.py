"""Time limits of a fuzzing test and of each case."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

SECONDS = float(os.environ.get("RELVM_FUZZ_SECONDS", "3"))  # each test goes on
LEAST = 200  # cases of a test, however slow the machine is
FIRST = int(os.environ.get("RELVM_FUZZ_SEED", "1"))


class TooLong(BaseException):
    """A case that took more of the processor's time than it may; no error that what is tested would catch."""


def rounds() -> Iterator[tuple[int, Random]]:
    """Yield the seeds FIRST, FIRST + 1, ... and random numbers from them, for one case each.

    They end when the time is over and there were LEAST of them.
    """
    end = time.monotonic() + SECONDS
    seed = FIRST
    while time.monotonic() < end or seed < FIRST + LEAST:
        yield seed, Random(seed)
        seed += 1


def _raise(*_: object) -> None:
    raise TooLong


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """TooLong after so many seconds of this process's time."""
    before = signal.signal(signal.SIGVTALRM, _raise)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
