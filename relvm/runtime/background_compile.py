"""Background compilation: an executable runs as bytecode until its native code is ready (exec_mode="auto")."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from relvm.errors import RelvmError, RelvmUnsupportedError

ExecutableT = TypeVar("ExecutableT")  # relvm.runtime.executable.Executable, which imports this module
Publish = Callable[[ExecutableT], None]


class Upgrade(Generic[ExecutableT]):
    """The compilation of an executable to native code on a separate thread.

    A process exits without waiting for the compilation.  The kernels that are compiled by then stay in the cache, so
    the next process compiles only the other kernels.

    Parameters
    ----------
    compile
        A function that compiles the program and returns the executable with native code.  Its argument is a function
        `publish`.  Whenever some kernels are ready, `compile` can call `publish` with an executable of these kernels,
        which is then added to `parts`.  If native code is not possible, `compile` is instead a RelvmError with the
        reason, which `wait` raises.

    Attributes
    ----------
    executable
        The executable with native code, or None until it is ready.
    parts
        Executables that contain only some of the kernels.  They can be used before `executable` is ready.
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
            threading.Thread(target=self._run, args=(compile,), name="relvm upgrade", daemon=True).start()

    @property
    def has_ended(self) -> bool:
        """Whether the compilation has ended, successfully or with an error."""
        return self._done.is_set()

    def wait(self, timeout: float | None) -> bool:
        """Wait until the compilation has ended.  Return whether it has ended.

        timeout: the maximum time to wait in seconds, or None for no limit.

        If the compilation failed, raise its error.  In a process that was forked during the compilation, raise
        RelvmUnsupportedError, because the compiling thread does not exist there.
        """
        if not self._done.is_set() and os.getpid() != self._process:
            raise RelvmUnsupportedError(
                "cannot wait for native code: this process was forked during compilation and continues with bytecode"
            )
        if not self._done.wait(timeout):
            return False
        if self._error is not None:
            raise self._error
        return True

    def _run(self, compile: Callable[[Publish[ExecutableT]], ExecutableT]) -> None:
        try:
            self.executable = compile(self.parts.append)
        except BaseException as error:  # raised in `wait`; machines continue with bytecode
            self._error = error
            if threading.main_thread().is_alive():  # otherwise the process exits, and removes the compiler's files
                import logging  # imported only here, to save memory

                logging.getLogger("relvm").warning(
                    "exec_mode='auto': compiling native code failed, continuing with bytecode: %s", error
                )
        finally:
            self._done.set()
