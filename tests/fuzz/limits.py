"""Number of cases of a fuzzing test, and the limit on the time of each case."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from random import Random

SECONDS = float(os.environ.get("RELVM_FUZZ_SECONDS", "0"))  # duration of each test; 0: a fixed number of cases
FIRST = int(os.environ.get("RELVM_FUZZ_SEED", "1"))


class TooLong(BaseException):
    """A case exceeded its limit on CPU time.  A BaseException, so that the tested code does not catch it."""


def rounds(cases: int) -> Iterator[tuple[int, Random]]:
    """Yield the seeds FIRST, FIRST + 1, ..., each with a random number generator, for one case each.

    Stop after `cases` cases, or after SECONDS if these are given.
    """
    end = time.monotonic() + SECONDS
    for seed in count(FIRST):
        if time.monotonic() >= end if SECONDS else seed >= FIRST + cases:
            break
        yield seed, Random(seed)


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
