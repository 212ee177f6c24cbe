"""Background compilation: executables that run as bytecode until their native code is ready (exec_mode="auto")."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from relvm.errors import RelvmError, RelvmUnsupportedError

ExecutableT = TypeVar("ExecutableT")  # relvm.runtime.executable.Executable, which imports this module
Publish = Callable[[ExecutableT], None]


class Upgrade(Generic[ExecutableT]):
    """The native code of an executable, compiled on a thread of its own.

    The process waits for the compilation when it exits, so that the result is in the cache the next time.

    Parameters
    ----------
    compile
        A function that returns the executable with the same functions as native code, or the reason why there will be
        none.  Its argument is a function to publish parts with.

    Attributes
    ----------
    executable
        That executable, or None until it is ready.
    parts
        Executables of some of the kernels, which are ready before.
    """

    def __init__(self, compile: Callable[[Publish[ExecutableT]], ExecutableT] | RelvmError) -> None:
        self.executable: ExecutableT | None = None
        self.parts: list[ExecutableT] = []
        self._error: BaseException | None = None
        self._process = os.getpid()
        self._done = threading.Event()
        if isinstance(compile, RelvmError):
            self._error = compile
            self._done.set()
        else:
            threading.Thread(target=self._run, args=(compile,), name="relvm upgrade").start()

    @property
    def has_ended(self) -> bool:
        """Return whether the compilation has ended, with the executable or with an error."""
        return self._done.is_set()

    def wait(self, timeout: float | None) -> bool:
        """Return whether compilation ended within `timeout` seconds, or wait without limit if it is None.

        Raise the errors of the compilation, and RelvmUnsupportedError in a process forked during compilation, because
        the thread does not exist there.
        """
        if not self._done.is_set() and os.getpid() != self._process:
            raise RelvmUnsupportedError(
                "native code: the process was forked during compilation, so this process keeps running bytecode"
            )
        if not self._done.wait(timeout):
            return False
        if self._error is not None:
            raise self._error
        return True

    def _run(self, compile: Callable[[Publish[ExecutableT]], ExecutableT]) -> None:
        try:
            self.executable = compile(self.parts.append)
        except BaseException as error:  # reported to waiting callers only; the other machines continue with bytecode
            self._error = error
            import logging  # a deployed program does not need it

            logging.getLogger("relvm").warning(
                "exec_mode='auto': compiling native code failed, continuing with bytecode: %s", error
            )
        finally:
            self._done.set()
