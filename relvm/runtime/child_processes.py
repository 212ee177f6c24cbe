"""Child processes that end, with all processes that they start, when this process exits.

A thread in the background starts them.  At exit, nobody waits for their results, and they would go on without use.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from typing import Any

_lock = threading.Lock()
_running: set[subprocess.Popen] = set()


class ExitingError(Exception):
    """Raised in a daemon thread that starts a process while this process exits."""


@contextlib.contextmanager
def child_process(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen]:
    """A context manager that starts a process in a session of its own, and ends that session afterwards.

    command, **options: the arguments of subprocess.Popen.
    """
    with _lock:
        _register_end()
        if threading.current_thread().daemon and not threading.main_thread().is_alive():  # too late for `_end_all`
            raise ExitingError
        process = subprocess.Popen(command, start_new_session=True, **options)
        _running.add(process)
    try:
        yield process
    finally:
        _running.discard(process)
        _end(process)


@functools.cache
def _register_end() -> None:
    """Register the function that ends the processes at exit.

    Functions run at exit in the reverse order of their registration.  At the first call of `child_process`, its caller
    has created a temporary folder.  The processes therefore end before such folders are removed.
    """
    atexit.register(_end_all)


def _end(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):  # all processes of the session have ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end_all() -> None:
    with _lock:
        for process in tuple(_running):
            _end(process)


def _reset_in_child() -> None:
    """Forget the processes of the parent process, which end when the parent exits."""
    global _lock
    _lock = threading.Lock()
    _running.clear()


os.register_at_fork(after_in_child=_reset_in_child)
