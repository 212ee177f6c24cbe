"""A run on a thread of its own, which stops in the middle and is asked there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

_SIGNAL_SECONDS = 0.1


class RunEnded(BaseException):
    """What a run that is given up ends with."""


class PausedRun:
    """A function that runs on a thread of its own, and stops where it calls `pause`.

    Only one of the two threads is at work at a time: while the run goes on, its owner waits in `resume`; while it is
    paused, it does what its owner asks in `ask`.

    Parameters
    ----------
    function
        Called on the run's thread.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._to_run: SimpleQueue = SimpleQueue()
        self._to_owner: SimpleQueue = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="relvm debugger", daemon=True)
        self.is_over = False

    # ---- on the run's thread ----

    def pause(self, why: Any) -> None:
        """Have `resume` give `why`, and wait.  Raises RunEnded: the run is given up."""
        self._to_owner.put(("paused", why))
        while True:
            question = self._to_run.get()
            if question is None:
                return
            if question is RunEnded:
                raise RunEnded
            try:
                self._to_owner.put(("answer", question()))
            except BaseException as error:
                self._to_owner.put(("raised", error))

    def _run(self) -> None:
        try:
            self._to_owner.put(("over", self._function()))
        except BaseException as error:
            self._to_owner.put(("failed", error))

    # ---- on its owner's ----

    def resume(self) -> tuple[str, Any]:
        """Go on, or begin, until the run pauses or is over.

        Returns
        -------
        tuple of (str, object)
            "paused" with what `pause` was given, "over" with the function's result, "failed" with its exception.
        """
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._to_run.put(None)
        return self.wait()

    def wait(self) -> tuple[str, Any]:
        """What `resume` gives; for who was interrupted in it."""
        what, value = self._received()
        self.is_over = what != "paused"
        return what, value

    def ask(self, question: Callable[[], Any]) -> Any:
        """What a function gives that the run's thread calls while it is paused; raises what that raises."""
        self._to_run.put(question)
        what, value = self._received()
        if what == "raised":
            raise value
        return value

    def _received(self) -> tuple[str, Any]:
        while True:  # a signal that another thread got is seen only between waits
            try:
                return self._to_owner.get(timeout=_SIGNAL_SECONDS)
            except Empty:
                continue

    def give_up(self) -> None:
        """End the run, which is paused."""
        self._to_run.put(RunEnded)
        while not self.is_over:
            self.wait()
