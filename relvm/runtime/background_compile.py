"""Background compilation: an executable runs as bytecode until its native code is ready (exec_mode="auto").

Native code pays only for a program that runs long enough.  Its compilation therefore begins when the time that machines
have spent in runs exceeds a budget, or when a caller waits for the native code.  A process compiles one executable at a
time, on a thread that ends when no compilation is left.  The thread holds no reference to an Upgrade: a compilation
that no executable and no machine needs any more is dropped.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from relvm.errors import RelvmError, RelvmUnsupportedError
from relvm.system import watch_forks

# The budget of an executable is this time in runs for each of its functions, including kernels.  The C compiler takes 4
# to 12 times as long: about 20 ms for a function and 60 ms for a kernel.
BUDGET_NANOSECONDS_PER_FUNCTION = 5_000_000

_SIGNAL_INTERVAL = 0.5  # seconds

ExecutableT = TypeVar("ExecutableT")  # relvm.runtime.executable.Executable, which imports this module
Publish = Callable[[ExecutableT], None]


class Upgrade(Generic[ExecutableT]):
    """The compilation of an executable to native code on a separate thread.

    A process exits without waiting for the compilation.  The kernels that are compiled by then stay in the cache, so
    the next process compiles only the other kernels.

    Parameters
    ----------
    compile
        A function that compiles the program and returns the executable with native code.  Its argument is a
        `Publisher`.  If native code is not possible, `compile` is instead a RelvmError with the reason, which `wait`
        raises.
    budget_nanoseconds
        The time in runs after which the compilation begins.

    Attributes
    ----------
    executable
        The executable with native code, or None until it is ready.
    parts
        Executables that contain only some of the kernels.  They can be used before `executable` is ready.
    run_time
        The time that machines have spent in runs of the bytecode, in nanoseconds.
    """

    def __init__(
        self, compile: Callable[[Publisher[ExecutableT]], ExecutableT] | RelvmError, budget_nanoseconds: int = 0
    ) -> None:
        self.executable: ExecutableT | None = None
        self.parts: list[ExecutableT] = []
        self.run_time = 0
        self._budget_nanoseconds = budget_nanoseconds
        self._compile: Callable[[Publisher[ExecutableT]], ExecutableT] | None = None
        self._error: BaseException | None = None
        self._process: int | None = None  # id of the process that has begun the compilation
        self._done = threading.Event()
        if isinstance(compile, RelvmError):
            self._error = compile
            self._done.set()
        else:
            self._compile = compile

    @property
    def has_ended(self) -> bool:
        """Whether the compilation has ended, successfully or with an error."""
        return self._done.is_set()

    @property
    def has_begun(self) -> bool:
        """Whether the compilation has begun, or waits for others that have begun earlier."""
        return self._process is not None or self.has_ended

    @property
    def can_succeed(self) -> bool:
        """Whether the native code is ready, or this process can still compile it."""
        if self.has_ended:
            return self.executable is not None
        return self._process in (None, os.getpid())

    def add_run_time(self, nanoseconds: int) -> None:
        """Add the time of runs to `run_time`.  Begin the compilation if the total exceeds the budget."""
        self.run_time += nanoseconds
        if self.run_time > self._budget_nanoseconds:
            self.begin()

    def begin(self, *, first: bool = False) -> None:
        """Begin the compilation, after those that have begun earlier, unless it has begun already.

        first: whether to begin it before all others that wait.
        """
        with _lock:
            reference = weakref.ref(self)
            if not self.has_begun:
                self._process = os.getpid()
                _waiting.append(reference)
                try:
                    _start_thread()
                except RuntimeError as error:  # no more threads, or the process exits
                    _waiting.pop()
                    self._error = error
                    self._done.set()
            if first and reference in _waiting:
                _waiting.remove(reference)
                _waiting.appendleft(reference)

    def wait(self, timeout: float | None) -> bool:
        """Begin the compilation, before all others that wait, and wait for its end.  Return whether it has ended.

        timeout: the maximum time to wait in seconds, or None for no limit.

        If the compilation failed, raise its error.  In a process that was forked during the compilation, raise
        RelvmUnsupportedError, because the compiling thread does not exist there.
        """
        self.begin(first=True)
        if not self._done.is_set() and os.getpid() != self._process:
            raise RelvmUnsupportedError(
                "cannot wait for native code: this process was forked during compilation and continues with bytecode"
            )
        if not self._wait_for_done(timeout):
            return False
        if self._error is not None:
            raise self._error
        return True

    def _wait_for_done(self, timeout: float | None) -> bool:
        """Wait in short intervals until `_done` is set, and return whether it is.

        A signal such as Ctrl-C that arrives just before `Event.wait` begins does not interrupt the wait.  Python
        handles the signal only when `Event.wait` returns.  Without intervals, this would be at the end of the
        compilation.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while not self._done.wait(_SIGNAL_INTERVAL if end is None else min(_SIGNAL_INTERVAL, end - time.monotonic())):
            if end is not None and time.monotonic() >= end:
                return False
        return True


class Publisher(Generic[ExecutableT]):
    """The link from a compilation to its Upgrade.  The link does not keep the Upgrade alive.

    Calling the Publisher with an executable that contains some of the kernels adds the executable to the `parts` of the
    Upgrade.
    """

    def __init__(self, upgrade: weakref.ref[Upgrade[ExecutableT]]) -> None:
        self._upgrade = upgrade

    def __call__(self, part: ExecutableT) -> None:
        self._wanted().parts.append(part)

    def expect_wanted(self) -> None:
        """Raise an exception, which ends the compilation, if no executable and no machine needs the native code."""
        self._wanted()

    def _wanted(self) -> Upgrade[ExecutableT]:
        upgrade = self._upgrade()
        if upgrade is None:
            raise _DroppedError
        return upgrade


class _DroppedError(Exception):
    """The end of a compilation whose result is not needed any more."""


_lock = threading.Lock()
_waiting: deque[weakref.ref[Upgrade]] = deque()
_thread: threading.Thread | None = None  # compiles the executables of `_waiting`; it ends when there are none


def _start_thread() -> None:
    """Start the thread, if it does not run.  The caller holds the lock."""
    global _thread
    if _thread is None:
        thread = threading.Thread(target=_compile_waiting, name="relvm upgrade", daemon=True)
        thread.start()
        _thread = thread


def _compile_waiting() -> None:
    global _thread
    while True:
        with _lock:
            if not _waiting:
                _thread = None
                return
            reference = _waiting.popleft()
        _compile(reference)


def _compile(reference: weakref.ref[Upgrade]) -> None:
    upgrade = reference()
    if upgrade is None or upgrade._compile is None:
        return
    compile, upgrade._compile = upgrade._compile, None  # which holds the program that is compiled
    del upgrade
    executable, failure = None, None
    try:
        executable = compile(Publisher(reference))
    except BaseException as error:  # raised in `wait`; machines continue with bytecode
        failure = error
    upgrade = reference()
    if upgrade is None:
        return
    upgrade.executable, upgrade._error = executable, failure
    if failure and threading.main_thread().is_alive():  # otherwise the process exits, and removes the compiler's files
        import logging  # imported only here, to save memory

        logging.getLogger("relvm").warning(
            "exec_mode='auto': compiling native code failed, continuing with bytecode: %s", failure
        )
    upgrade._done.set()


def _reset_in_child() -> None:
    """Forget the compilations of the parent process, whose thread does not exist in this child."""
    global _lock, _thread
    _lock, _thread = threading.Lock(), None
    _waiting.clear()


watch_forks(in_child=_reset_in_child)
