"""A run on its own thread that can be paused and queried."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from relvm.errors import RelvmBusyError

_SIGNAL_SECONDS = 0.1


class RunEnded(BaseException):
    """Raised in a run to abort it."""


class PausedRun:
    """A function that runs on its own thread and can pause itself with `pause`.

    The owner is the thread that controls the run.  Only one of the two threads works at a time.  While the run
    continues, the owner waits in `resume`.  While the run is paused, the owner can query it with `ask`.  If an
    interrupt ends `resume` or `ask`, the owner may call the method again.

    Parameters
    ----------
    function
        The function to run.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._orders: SimpleQueue = SimpleQueue()  # to the run: None to continue, RunEnded, or a numbered question
        self._events: SimpleQueue = SimpleQueue()
        self._answers: SimpleQueue = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="relvm debugger", daemon=True)
        self._goes_on = False
        self._asked = 0
        self.is_over = False

    # ---- called on the thread of the run ----

    def pause(self, why: Any) -> None:
        """Make `resume` return `why`, then wait until the run is resumed.  Raise RunEnded if the run is aborted."""
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

    # ---- called by the owner ----

    def resume(self) -> tuple[str, Any]:
        """Start or continue the run until it pauses or ends.

        Returns
        -------
        tuple of (str, object)
            "paused" with the argument of `pause`, "over" with the function's result, or "failed" with its exception.

        Raises
        ------
        RelvmBusyError
            The run itself called this function.
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
        """Call `question` on the thread of the paused run, and return its result or raise its exception.

        Raises
        ------
        RelvmBusyError
            The run itself called this function.
        """
        self._expect_owner()
        self._asked += 1
        self._orders.put((self._asked, question))
        while True:
            number, succeeded, value = _received(self._answers)
            if number == self._asked:  # older answers are to calls that were interrupted
                break
        if not succeeded:
            raise value
        return value

    def give_up(self) -> None:
        """Abort the run at its current pause, or at its next pause if it is not paused."""
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
                "a function that the debugged program calls cannot use the debugger; a condition of a breakpoint"
                " receives the values as its argument"
            )


def _received(queue: SimpleQueue) -> Any:
    while True:  # signals received by another thread are handled only between waits
        try:
            return queue.get(timeout=_SIGNAL_SECONDS)
        except Empty:
            continue
