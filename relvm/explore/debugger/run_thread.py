"""A run on a thread of its own, which stops in the middle and is asked there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from relvm.errors import RelvmBusyError

_SIGNAL_SECONDS = 0.1


class RunEnded(BaseException):
    """What a run that is given up ends with."""


class PausedRun:
    """A function that runs on a thread of its own, and stops where it calls `pause`.

    Only one of the two threads is at work at a time: while the run goes on, its owner waits in `resume`; while it is
    paused, it does what its owner asks in `ask`.  An owner who is interrupted in either may call again.

    Parameters
    ----------
    function
        Called on the run's thread.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._orders: SimpleQueue = SimpleQueue()  # to the run: None, RunEnded, or a question with its number
        self._events: SimpleQueue = SimpleQueue()
        self._answers: SimpleQueue = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="relvm debugger", daemon=True)
        self._goes_on = False
        self._asked = 0
        self.is_over = False

    # ---- on the run's thread ----

    def pause(self, why: Any) -> None:
        """Have `resume` give `why`, and wait.  Raises RunEnded: the run is given up."""
        self._events.put(("paused", why))
        while True:
            order = self._orders.get()
            if order is None:
                return
            if order is RunEnded:
                raise RunEnded
            number, question = order
            try:
                self._answers.put((number, True, question()))
            except BaseException as error:
                self._answers.put((number, False, error))

    def _run(self) -> None:
        try:
            self._events.put(("over", self._function()))
        except BaseException as error:
            self._events.put(("failed", error))

    # ---- on its owner's ----

    def resume(self) -> tuple[str, Any]:
        """Go on, or begin, until the run pauses or is over.

        Returns
        -------
        tuple of (str, object)
            "paused" with what `pause` was given, "over" with the function's result, "failed" with its exception.

        Raises
        ------
        RelvmBusyError
            It is the run itself that calls.
        """
        self._expect_owner()
        if not self._goes_on:
            self._goes_on = True
            if self._thread.ident is None:
                self._thread.start()
            else:
                self._orders.put(None)
        what, value = _received(self._events)
        self._goes_on = False
        self.is_over = what != "paused"
        return what, value

    def ask(self, question: Callable[[], Any]) -> Any:
        """What a function gives that the run's thread calls while it is paused; raises what that raises, and
        RelvmBusyError where the run itself calls."""
        self._expect_owner()
        self._asked += 1
        self._orders.put((self._asked, question))
        while True:
            number, succeeded, value = _received(self._answers)
            if number == self._asked:  # of others nobody waits any more
                break
        if not succeeded:
            raise value
        return value

    def give_up(self) -> None:
        """End the run where it is paused, or pauses next."""
        self._expect_owner()
        self.is_over = self._thread.ident is None
        self._orders.put(RunEnded)
        self._goes_on = True
        while not self.is_over:
            self.resume()
            self._goes_on = True

    def _expect_owner(self) -> None:
        if threading.current_thread() is self._thread:
            raise RelvmBusyError(
                "a debugger cannot be used by what it runs; a condition is given the values as its argument"
            )


def _received(queue: SimpleQueue) -> Any:
    while True:  # a signal that another thread got is seen only between waits
        try:
            return queue.get(timeout=_SIGNAL_SECONDS)
        except Empty:
            continue
