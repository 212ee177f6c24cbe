"""Many inputs on several threads: a machine for each, over one executable, results in order."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from numbers import Integral
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from relvm.errors import RelvmArgumentError, RelvmTypeError, RelvmUnsupportedError
from relvm.runtime.closure import Closure
from relvm.runtime.executable import Executable
from relvm.runtime.virtual_machine import VirtualMachine, thread_count


class ThreadPoolRunner:
    """Runs a function of an executable on many inputs, on threads that have a machine each.

    Machines run without Python's lock, so the inputs are worked on at once, as far as there are processors.  Which
    machine runs an input is not fixed, and says nothing about its result, but for programs that draw random numbers:
    each machine has numbers of its own.

    Use it in a `with`: at the end of the block everything submitted has ended, and so have the threads.  Where the
    block ends by an exception, Ctrl-C among them, what has not begun is cancelled and what runs is interrupted.

    Parameters
    ----------
    executable
        Shared by all machines.
    workers
        How many threads, 1 to 256.  None: RELVM_NUM_THREADS, or as many as this process has processors.
    function
        The name of the function that is run.
    num_threads
        Of each machine, for its kernels: see VirtualMachine.  One, as the workers share the processors already.
    **machine_options
        More of what VirtualMachine takes: `max_steps`, `max_bytes`, `print_hook`...

    Raises
    ------
    RelvmArgumentError
        `workers`, `num_threads` or a limit is out of its range.
    RelvmTypeError
        `executable` is no Executable, `function` no name.
    RelvmNameError
        The executable has no such function.

    Examples
    --------
    >>> import relvm
    >>> from relvm import vm
    >>> from relvm.frontend.text import parse_module
    >>> executable = vm.build(parse_module("def main(x: i64, y: i64) -> i64 { return x * y }"))
    >>> with relvm.ThreadPoolRunner(executable, workers=2) as runner:
    ...     list(runner.map((i, i + 1) for i in range(5))), runner.submit(6, 7).result()
    ([0, 2, 6, 12, 20], 42)
    """

    def __init__(
        self,
        executable: Executable,
        workers: int | None = None,
        function: str = "main",
        *,
        num_threads: int | None = 1,
        **machine_options: Any,
    ) -> None:
        self.executable = executable
        self.workers = thread_count("workers", workers)
        options = {"num_threads": num_threads, **machine_options}
        self._machines = [VirtualMachine(executable, **options) for _ in range(self.workers)]
        functions: SimpleQueue = SimpleQueue()  # of machines that have no thread yet
        for machine in self._machines:
            functions.put(machine[function])
        self._own = threading.local()  # what a worker runs; no method of self, which would keep the threads alive
        self._pool = ThreadPoolExecutor(self.workers, "relvm", _take_machine, (self._own, functions))
        self._unfinished: set[Future] = set()
        self._process = os.getpid()
        self._closed = False

    def submit(self, /, *arguments: Any, **named: Any) -> Future:
        """Have a worker run the function, when one is free.

        Arrays are arguments in place: they must not be written to until the result is there.
        A function of the host that runs on a worker may submit, too; where it waits for what it submitted, it waits for
        ever as soon as all workers do so.

        Parameters
        ----------
        *arguments, **named
            By position or by parameter name.

        Returns
        -------
        concurrent.futures.Future
            Of the result, as a machine gives it, or of the exception; a closure, also in a tuple or list, is none:
            RelvmUnsupportedError.  Its callbacks are called on the worker's thread.

        Raises
        ------
        RelvmArgumentError
            The runner is closed.
        RelvmUnsupportedError
            This is a child of fork, where the threads of its parent are not.
        """
        if self._closed:
            raise RelvmArgumentError("ThreadPoolRunner: it is closed; make another one")
        if os.getpid() != self._process:
            raise RelvmUnsupportedError("ThreadPoolRunner: it was made before this process was forked; make one here")
        future = self._pool.submit(_run, self._own, arguments, named)
        self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        return future

    def map(self, inputs: Iterable[Any], *, ahead: int | None = None) -> Iterator[Any]:
        """The results for all inputs, in their order.

        `inputs` is advanced on the caller's thread as results are taken, at most `ahead` in front of them, so it may be
        endless.  What a run raises, or `inputs` itself, is raised in its place, behind the results before it, with a
        note that has the input's number.  That ends this iterator; the runner can be used on.  When the iterator ends
        before the inputs do, or is closed, what has not begun is cancelled.

        Parameters
        ----------
        inputs
            A tuple is the arguments of a call; anything else is the only argument.
        ahead
            How many inputs may be in work or waiting for it, at least 1.  None: two for each worker.

        Raises
        ------
        RelvmArgumentError
            `ahead` is no such number; the runner is closed.
        RelvmTypeError
            `inputs` is no iterable.
        RelvmUnsupportedError
            This is one of the runner's own threads, which would wait for itself.

        Examples
        --------
        >>> import itertools
        >>> import relvm
        >>> from relvm import vm
        >>> from relvm.frontend.text import parse_module
        >>> executable = vm.build(parse_module("def main(x: i64) -> i64 { return x * x }"))
        >>> with relvm.ThreadPoolRunner(executable, workers=2) as runner:
        ...     squares = runner.map(itertools.count())
        ...     next(squares), next(squares), next(squares)
        (0, 1, 4)
        """
        self._expect_other_thread("map")
        ahead = 2 * self.workers if ahead is None else ahead
        if isinstance(ahead, bool) or not isinstance(ahead, Integral) or ahead < 1:
            raise RelvmArgumentError(f"ahead is {ahead!r}, expected an integer of at least 1")
        try:
            each = iter(inputs)  # which also takes what has items and no __iter__
        except TypeError:
            raise RelvmTypeError(
                f"ThreadPoolRunner.map: inputs: expected an iterable, got {type(inputs).__name__}"
            ) from None
        if self._closed:
            raise RelvmArgumentError("ThreadPoolRunner: it is closed; make another one")
        return self._in_order(self._submitted(each), ahead)

    def close(self, wait: bool = True) -> None:
        """Take no more inputs.  What was submitted is still done, and the threads end behind it.

        Parameters
        ----------
        wait
            Whether to return only when the threads have ended.

        Raises
        ------
        RelvmUnsupportedError
            `wait` on one of these threads: a callback or a function of the host closes by ``close(wait=False)``.
        """
        if wait:
            self._expect_other_thread("close(wait=True)")
        self._closed = True
        self._pool.shutdown(wait)

    def abort(self) -> None:
        """Close at once: what has not begun is cancelled (CancelledError), what runs is interrupted (RelvmInterrupted).

        Returns when all threads have ended; a kernel or a Python function that has begun ends first.

        Raises
        ------
        RelvmUnsupportedError
            This is one of these threads.
        """
        self._expect_other_thread("abort")
        self._closed = True
        if os.getpid() != self._process:  # the threads are in the parent
            return
        self._pool.shutdown(wait=False, cancel_futures=True)
        while wait(self._unfinished, timeout=0.01).not_done:  # one that is about to run cannot be interrupted yet
            for machine in self._machines:
                machine.interrupt()
        self._pool.shutdown()

    def __enter__(self) -> ThreadPoolRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __repr__(self) -> str:
        return f"<ThreadPoolRunner of {self.workers} workers{', closed' if self._closed else ''}>"

    def _expect_other_thread(self, method: str) -> None:
        if hasattr(self._own, "function"):
            raise RelvmUnsupportedError(
                f"ThreadPoolRunner.{method}: called on a thread of the runner, it would wait for itself"
            )

    def _submitted(self, inputs: Iterator[Any]) -> Iterator[Future]:
        """The futures of the inputs, each submitted when it is asked for; the last one may be of what `inputs`
        raised."""
        try:
            for each in inputs:
                yield self.submit(*each) if type(each) is tuple else self.submit(each)
        except Exception as error:
            failed: Future = Future()
            failed.set_exception(error)
            yield failed

    def _in_order(self, futures: Iterator[Future], ahead: int) -> Iterator[Any]:
        begun, number = deque(islice(futures, ahead)), 0
        try:
            while begun:
                yield _result(begun[0], number)
                begun.popleft()
                begun.extend(islice(futures, 1))
                number += 1
        finally:
            for future in begun:
                future.cancel()


def _take_machine(own: threading.local, functions: SimpleQueue) -> None:
    """What a worker begins with: a machine that no other has."""
    own.function = functions.get_nowait()


def _run(own: threading.local, arguments: tuple, named: dict[str, Any]) -> Any:
    result = own.function(*arguments, **named)
    if _has_closure(result):  # to call it would be to use a machine that a worker uses
        raise RelvmUnsupportedError(
            f"ThreadPoolRunner: {own.function.name} returned a closure, which is of a worker's machine; expected values"
        )
    return result


def _has_closure(value: Any) -> bool:
    return isinstance(value, Closure) or (isinstance(value, tuple | list) and any(map(_has_closure, value)))


def _result(future: Future, number: int) -> Any:
    try:
        return future.result()
    except Exception as error:
        error.add_note(f"input {number} of ThreadPoolRunner.map, counted from 0")
        raise
