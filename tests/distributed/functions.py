"""Packed functions of the workers.  What they have done stands in files, since a worker that dies tells nothing."""

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
    """Registers them on each worker that starts.  marks: the folder of what they have done."""

    name = "relvm-test-functions"

    def __init__(self, marks: Path) -> None:
        self.marks = marks

    def setup(self, worker: object) -> None:
        for function in (self.tried, self.met, self.killed_once, self.killed_together, self.killed, self.failed):
            vm.register_func(f"test.distributed.{function.__name__}", function, override=True)

    def tried(self, x: vm.Tensor) -> np.ndarray:
        """x.  Leaves a mark named after its first element."""
        (self.marks / f"{int(x.numpy()[0])}-{os.getpid()}-{uuid.uuid4()}").touch()
        return x.numpy()

    def met(self, x: vm.Tensor) -> np.ndarray:
        """x, once two processes are inside."""
        (self.marks / f"inside-{os.getpid()}").touch()
        self._wait_for_two()
        return x.numpy()

    def killed_once(self, x: vm.Tensor) -> np.ndarray:
        """x, but the first time kills the process where the first element is 3."""
        place = self.marks / "killed"
        if x.numpy()[0] == 3 and not place.exists():
            place.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return x.numpy()

    def killed_together(self, x: vm.Tensor) -> np.ndarray:
        """x, but the first two processes that come here kill themselves once both are inside."""
        if len(list(self.marks.iterdir())) < 2:
            (self.marks / f"inside-{os.getpid()}").touch()
            self._wait_for_two()
            os.kill(os.getpid(), signal.SIGKILL)
        return x.numpy()

    def killed(self, x: vm.Tensor) -> np.ndarray:
        """x, but kills the process where the first element is 3."""
        if x.numpy()[0] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return x.numpy()

    def failed(self, x: vm.Tensor, how: str) -> np.ndarray:
        """x, but where the first element is 3 an error, of relvm or of Python."""
        if x.numpy()[0] != 3:
            return x.numpy()
        raise {"relvm": RelvmAssertionError, "python": OSError}[how]("the third")

    def _wait_for_two(self) -> None:
        deadline = time.monotonic() + 30
        while len(list(self.marks.iterdir())) < 2:
            if time.monotonic() > deadline:
                raise RelvmAssertionError("the other process does not come")
            time.sleep(0.01)


def tries(marks: Path, number: int) -> int:
    """Return how often `tried` was called with `number`."""
    return len(list(marks.glob(f"{number}-*")))


def workers_of(marks: Path) -> set[str]:
    """The processes that called `tried`."""
    return {mark.name.split("-")[1] for mark in marks.iterdir()}
