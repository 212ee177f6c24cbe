"""Packed functions for the workers.  They record their calls in files, called marks, because workers can die."""

from __future__ import annotations

import os
import signal
import time
import uuid
from pathlib import Path

import numpy as np
from distributed import WorkerPlugin

from relvm import vm
from relvm.errors import RelvmAssertionError

NAMES = "test.distributed.*"


class Functions(WorkerPlugin):
    """A plugin that registers the functions on each worker that starts.  marks: the folder for marks.

    Each function returns its argument x.
    """

    name = "relvm-test-functions"

    def __init__(self, marks: Path) -> None:
        self.marks = marks

    def setup(self, worker: object) -> None:
        for function in (self.tried, self.met, self.killed_once, self.killed_together, self.killed, self.failed):
            vm.register_func(f"test.distributed.{function.__name__}", function, override=True)

    def tried(self, x: vm.Tensor) -> np.ndarray:
        """Write a mark named after the first element of x."""
        (self.marks / f"{int(x.numpy()[0])}-{os.getpid()}-{uuid.uuid4()}").touch()
        return x.numpy()

    def met(self, x: vm.Tensor) -> np.ndarray:
        """Wait until two processes have called this function."""
        (self.marks / f"inside-{os.getpid()}").touch()
        self._wait_for_two()
        return x.numpy()

    def killed_once(self, x: vm.Tensor) -> np.ndarray:
        """Kill the process if the first element of x is 3, but only at the first such call."""
        place = self.marks / "killed"
        if x.numpy()[0] == 3 and not place.exists():
            place.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return x.numpy()

    def killed_together(self, x: vm.Tensor) -> np.ndarray:
        """Kill the first two processes that call this function, once both have called it."""
        if len(list(self.marks.iterdir())) < 2:
            (self.marks / f"inside-{os.getpid()}").touch()
            self._wait_for_two()
            os.kill(os.getpid(), signal.SIGKILL)
        return x.numpy()

    def killed(self, x: vm.Tensor) -> np.ndarray:
        """Kill the process if the first element of x is 3."""
        if x.numpy()[0] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return x.numpy()

    def failed(self, x: vm.Tensor, how: str) -> np.ndarray:
        """Raise an error if the first element of x is 3.  how: whether it is an error of relvm or of Python."""
        if x.numpy()[0] != 3:
            return x.numpy()
        raise {"relvm": RelvmAssertionError, "python": OSError}[how]("the third")

    def _wait_for_two(self) -> None:
        deadline = time.monotonic() + 600
        while len(list(self.marks.iterdir())) < 2:
            if time.monotonic() > deadline:
                raise RelvmAssertionError("the other process does not come")
            time.sleep(0.01)


def tries(marks: Path, number: int) -> int:
    """Return how often `tried` was called with `number`."""
    return len(list(marks.glob(f"{number}-*")))


def workers_of(marks: Path) -> set[str]:
    """Return the process IDs that called `tried`."""
    return {mark.name.split("-")[1] for mark in marks.iterdir()}
