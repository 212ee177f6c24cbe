"""Executables whose native code comes later: they run as bytecode until it is there (exec_mode="auto")."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from relvm.errors import RelvmUnsupportedError

ExecutableT = TypeVar("ExecutableT")  # relvm.runtime.executable.Executable, which imports this file


class Upgrade(Generic[ExecutableT]):
    """The native code of an executable, made on a thread of its own.

    The process waits for it when it ends, so that what was compiled is in the cache the next time.

    Parameters
    ----------
    compile
        Makes the executable that has the same functions as native code.

    Attributes
    ----------
    executable
        It, or None until it is there.
    """

    def __init__(self, compile: Callable[[], ExecutableT]) -> None:
        self.executable: ExecutableT | None = None
        self._compile = compile
        self._error: BaseException | None = None
        self._process = os.getpid()
        self._done = threading.Event()
        threading.Thread(target=self._run, name="relvm upgrade").start()

    def wait(self, timeout: float | None) -> bool:
        """Whether it was there within `timeout` seconds; None: as long as it takes.  Raises what compiling raised;
        RelvmUnsupportedError in a process that was forked meanwhile, as nobody compiles there."""
        if not self._done.is_set() and os.getpid() != self._process:
            raise RelvmUnsupportedError("native code: this process was forked while it was compiled; bytecode goes on")
        if not self._done.wait(timeout):
            return False
        if self._error is not None:
            raise self._error
        return True

    def _run(self) -> None:
        try:
            self.executable = self._compile()
        except BaseException as error:  # it is for those who wait; the others go on as they are
            self._error = error
            import logging  # a deployed program does without

            logging.getLogger("relvm").warning("exec_mode='auto': no native code, bytecode goes on: %s", error)
        finally:
            self._done.set()
