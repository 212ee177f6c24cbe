"""Child processes and temporary folders that end, with all that belongs to them, when this process exits.

Daemon threads can start such processes.  When this process exits, nobody needs the results of the child processes any
more, but without this module they would continue to run.  Python stops a daemon thread at exit without running its
`finally` blocks, so the thread cannot remove its temporary folders itself.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from relvm.system import end_processes, own_session, watch_forks

_lock = threading.Lock()
_running: set[subprocess.Popen] = set()
_folders: set[Path] = set()


class ExitingError(Exception):
    """Raised in a daemon thread that starts a process or makes a folder while this process exits."""


@contextlib.contextmanager
def child_process(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen]:
    """A context manager that starts a process in a session of its own, and ends that session afterwards.

    command, **options: the arguments of subprocess.Popen.
    """
    with _lock:
        _prepare_end()
        process = subprocess.Popen(command, **own_session(), **options)
        _running.add(process)
    try:
        yield process
    finally:
        _running.discard(process)
        _end(process)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A context manager that makes a folder for temporary files, and removes it afterwards.

    Files that cannot be removed, because a process that ends still uses them, remain.
    """
    with _lock:
        _prepare_end()
        folder = Path(tempfile.mkdtemp(prefix="relvm-"))
        _folders.add(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _folders.discard(folder)


def temporary_environment(folder: str | os.PathLike) -> dict[str, str]:
    """Return the environment of a process whose temporary files are in a folder."""
    return os.environ | dict.fromkeys(("TMPDIR", "TMP", "TEMP"), os.fspath(folder))


def _prepare_end() -> None:
    """Make `_end_all` run when this process exits.  Raise ExitingError if it is too late."""
    if threading.current_thread().daemon and not threading.main_thread().is_alive():
        raise ExitingError
    _register_end()


@functools.cache
def _register_end() -> None:
    atexit.register(_end_all)


def _end(process: subprocess.Popen) -> None:
    end_processes(process.pid)
    process.wait()


def _end_all() -> None:
    with _lock:
        for process in tuple(_running):
            _end(process)
        for folder in tuple(_folders):
            shutil.rmtree(folder, ignore_errors=True)


def _reset_in_child() -> None:
    """Clear the lists in a forked child: their processes and folders belong to the parent, which ends them."""
    global _lock
    _lock = threading.Lock()
    _running.clear()
    _folders.clear()


watch_forks(in_child=_reset_in_child)
