"""Time limits of a fuzzing test and of each case."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

SECONDS = float(os.environ.get("RELVM_FUZZ_SECONDS", "3"))  # duration of each test
LEAST = 200  # minimum number of cases of a test, even if they take longer
FIRST = int(os.environ.get("RELVM_FUZZ_SEED", "1"))


class TooLong(BaseException):
    """A case exceeded its limit on CPU time.  A BaseException, so that the tested code does not catch it."""


def rounds() -> Iterator[tuple[int, Random]]:
    """Yield the seeds FIRST, FIRST + 1, ..., each with a random number generator, for one case each.

    Stop after SECONDS, but not before LEAST cases.
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
    """Raise TooLong in a `with` block after `seconds` seconds of CPU time."""
    before = signal.signal(signal.SIGVTALRM, _raise)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
