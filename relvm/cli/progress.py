"""A line that shows the current step of a command that takes longer than a second."""

from __future__ import annotations

import threading
import time

from relvm.cli.output import has_progress, show_progress

_FIRST_SECONDS = 1.0
_INTERVAL_SECONDS = 0.5


class Progress:
    """A progress line, which is shown while a block runs, and removed afterwards.

    The line appears after a second, and only if `has_progress` is true.  It ends without a newline, so text that the
    block prints follows it in the same row of the terminal.

    Parameters
    ----------
    activity
        What the block does, as in "building".
    step
        The first step of the block.
    """

    def __init__(self, activity: str, step: str = "") -> None:
        self._activity = activity
        self._step = step
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def step(self, name: str) -> None:
        """Set the name of the current step."""
        self._step = name

    def __enter__(self) -> Progress:
        if has_progress():
            self._started = time.perf_counter()
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        if self._thread:
            self._thread.join()

    def _watch(self) -> None:
        interval = _FIRST_SECONDS
        while not self._done.wait(interval):
            interval = _INTERVAL_SECONDS
            step = f": {self._step}" if self._step else ""
            show_progress(f"{self._activity}{step}, {time.perf_counter() - self._started:.0f} s")
        if interval != _FIRST_SECONDS:
            show_progress(None)
