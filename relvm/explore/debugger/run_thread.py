"""A run on its own thread.  Another thread can pause and query the run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from relvm.errors import RelvmBusyError

_SIGNAL_SECONDS = 0.1


class RunAborted(BaseException):
    """Raised on the thread of a run to abort the run."""


class PausedRun:
    """A function that runs on its own thread and can pause itself with `pause`.

    Another thread, the owner, controls the run.  The owner and the thread of the run never work at the same time.
    While the run continues, the owner waits in `resume`.  While the run is paused, the owner can call a function on the
    thread of the run with `call_while_paused`.  If an exception such as KeyboardInterrupt interrupts the owner in
    `resume` or `call_while_paused`, the owner may call the same method again.

    Parameters
    ----------
    function
        The function to run.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._orders: SimpleQueue = SimpleQueue()  # to the run: None to continue, RunAborted, or a numbered question
        self._events: SimpleQueue = SimpleQueue()
        self._answers: SimpleQueue = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="relvm debugger", daemon=True)
        self._is_continuing = False
        self._call_count = 0
        self.is_over = False

    # ---- called on the thread of the run ----

    def pause(self, event: Any) -> None:
        """Pause the run: make `resume` return `event`, and wait until the owner resumes the run.

        Raise RunAborted if the owner aborts the run.
        """
        self._events.put(("paused", event))
        while True:
            order = self._orders.get()
            if order is None:
                return
            if order is RunAborted:
                raise RunAborted
            number, function = order
            try:
                self._answers.put((number, True, function()))
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
            One of: "paused" and the argument of `pause`, "over" and the result of the function that runs, or "failed"
            and the exception that this function raised.

        Raises
        ------
        RelvmBusyError
            This method was called on the thread of the run, such as by a Python function that the program calls.
        """
        self._expect_owner()
        if not self._is_continuing:
            self._is_continuing = True
            if self._thread.ident is None:
                self._thread.start()
            else:
                self._orders.put(None)
        what, value = _receive(self._events)
        self._is_continuing = False
        self.is_over = what != "paused"
        return what, value

    def call_while_paused(self, function: Callable[[], Any]) -> Any:
        """Call `function` on the thread of the paused run, and return its result or raise its exception.

        Raises
        ------
        RelvmBusyError
            This method was called on the thread of the run, such as by a Python function that the program calls.
        """
        self._expect_owner()
        self._call_count += 1
        self._orders.put((self._call_count, function))
        while True:
            number, succeeded, value = _receive(self._answers)
            if number == self._call_count:  # older answers are to calls that were interrupted
                break
        if not succeeded:
            raise value
        return value

    def abort(self) -> None:
        """Abort the run, and wait until it ends.  A run that is not paused is aborted at its next pause."""
        self._expect_owner()
        self.is_over = self._thread.ident is None
        self._orders.put(RunAborted)
        self._is_continuing = True
        while not self.is_over:
            self.resume()
            self._is_continuing = True

    def _expect_owner(self) -> None:
        if threading.current_thread() is self._thread:
            raise RelvmBusyError(
                "a function that the debugged program calls cannot use the debugger; in the condition of a"
                " breakpoint, get values from the argument of the condition"
            )


def _receive(queue: SimpleQueue) -> Any:
    while True:  # signals received by another thread are handled only between waits
        try:
            return queue.get(timeout=_SIGNAL_SECONDS)
        except Empty:
            continue
