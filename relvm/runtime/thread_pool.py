"""Thread pools: run a function on many inputs on several threads.  Each thread has a machine of its own."""

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
from relvm.runtime.machine_limits import thread_count
from relvm.runtime.virtual_machine import VirtualMachine


class ThreadPoolRunner:
    """Runs a function of an executable on many inputs, on several threads.  Each thread has a machine of its own.

    Machines release Python's global interpreter lock, so that the inputs are processed in parallel, up to the number of
    processors.  An input can run on any of the machines.  The choice affects the result only in programs that use
    random numbers, because each machine has its own sequence.

    Use a ThreadPoolRunner in a `with` statement.  The end of the block waits until all submitted inputs have been
    processed and the threads have ended.  If the block ends with an exception, such as Ctrl-C, pending inputs are
    cancelled and running inputs are interrupted.

    Parameters
    ----------
    executable
        The executable, which all machines share.
    workers
        The number of threads, 1 to 256.  If it is None, the number is RELVM_NUM_THREADS or, if that is not set, the
        number of processors of this process.
    function
        The name of the function to run.
    num_threads
        The number of threads of each machine for its kernels; see VirtualMachine.  The default is one, because the
        workers already share the processors.
    **machine_options
        Other parameters of VirtualMachine: `max_steps`, `max_bytes`, `print_hook`...

    Raises
    ------
    RelvmArgumentError
        `workers`, `num_threads` or a limit is out of range.
    RelvmTypeError
        `executable` is not an Executable, or `function` is not a name.
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
        functions: SimpleQueue = SimpleQueue()  # functions of machines that no thread uses yet
        for machine in self._machines:
            functions.put(machine[function])
        self._worker = threading.local()  # the worker's function; a method of self would keep threads alive
        self._pool = ThreadPoolExecutor(self.workers, "relvm", _initialize_worker, (self._worker, functions))
        self._unfinished: set[Future] = set()
        self._process = os.getpid()
        self._closed = False

    def submit(self, /, *arguments: Any, **named: Any) -> Future:
        """Run the function on a worker thread as soon as one is free.

        Arrays are used without a copy, so do not write to them until the result is available.  A Python function that
        the executable calls may itself call `submit`.  If it waits for the result, its worker cannot run anything else
        meanwhile.  If all workers wait in this way, there is a deadlock.

        Parameters
        ----------
        *arguments, **named
            The arguments, by position or by parameter name.

        Returns
        -------
        concurrent.futures.Future
            A future for the result of the machine, or for the exception.  If the result is or contains a closure, the
            exception is RelvmUnsupportedError.  Callbacks of the future are called on the worker's thread.

        Raises
        ------
        RelvmArgumentError
            The runner is closed.
        RelvmUnsupportedError
            This process was forked from the process that created the runner, and does not have its threads.
        """
        if self._closed:
            raise RelvmArgumentError("ThreadPoolRunner: the runner is closed; create another one")
        if os.getpid() != self._process:
            raise RelvmUnsupportedError(
                "ThreadPoolRunner: the runner was created before this process was forked; create one in this process"
            )
        future = self._pool.submit(_run, self._worker, arguments, named)
        self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        return future

    def map(self, inputs: Iterable[Any], *, ahead: int | None = None) -> Iterator[Any]:
        """Return an iterator of the results for all inputs, in order.

        `inputs` is read on the caller's thread.  At most `ahead` inputs are read before their results are needed, so
        `inputs` can be infinite.  If a run, or reading from `inputs`, raises an exception, the iterator first yields
        the results of the earlier inputs.  The iterator then raises the exception, with a note that contains the number
        of the input.  The exception ends the iterator, but the runner can still be used.  If the iterator is closed or
        ends early, inputs that have not started to run are cancelled.

        Parameters
        ----------
        inputs
            The inputs.  A tuple contains the arguments of a call.  Any other value is the only argument.
        ahead
            The maximum number of inputs that are running or waiting, at least 1.  The default is two for each worker.

        Raises
        ------
        RelvmArgumentError
            `ahead` is not a positive integer, or the runner is closed.
        RelvmTypeError
            `inputs` is not iterable.
        RelvmUnsupportedError
            `map` was called on a thread of the runner, which would wait for itself.

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
            raise RelvmArgumentError(f"ThreadPoolRunner.map: ahead: expected an integer of at least 1, got {ahead!r}")
        try:
            each = iter(inputs)  # also accepts objects with __getitem__ instead of __iter__
        except TypeError:
            raise RelvmTypeError(
                f"ThreadPoolRunner.map: inputs: expected an iterable, got {type(inputs).__name__}"
            ) from None
        if self._closed:
            raise RelvmArgumentError("ThreadPoolRunner: the runner is closed; create another one")
        return self._in_order(self._submit_all(each), ahead)

    def close(self, wait: bool = True) -> None:
        """Accept no more inputs.  The threads process the submitted inputs and then end.

        Parameters
        ----------
        wait
            Whether to wait until the threads have ended.

        Raises
        ------
        RelvmUnsupportedError
            `close` was called with `wait` on a thread of the runner.  Callbacks and host functions must use
            ``close(wait=False)``.
        """
        if wait:
            self._expect_other_thread("close(wait=True)")
        self._closed = True
        self._pool.shutdown(wait)

    def abort(self) -> None:
        """Close the runner immediately.

        Pending inputs are cancelled (CancelledError), and running inputs are interrupted (RelvmInterrupted).

        `abort` returns when all threads have ended.  A running kernel or Python function completes first.

        Raises
        ------
        RelvmUnsupportedError
            `abort` was called on a thread of the runner.
        """
        self._expect_other_thread("abort")
        self._closed = True
        if os.getpid() != self._process:  # the threads exist only in the parent
            return
        self._pool.shutdown(wait=False, cancel_futures=True)
        while wait(self._unfinished, timeout=0.01).not_done:  # repeated, for runs that have yet to start
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
        if hasattr(self._worker, "function"):
            raise RelvmUnsupportedError(
                f"ThreadPoolRunner.{method}: cannot be called on a thread of the runner (deadlock)"
            )

    def _submit_all(self, inputs: Iterator[Any]) -> Iterator[Future]:
        """Submit inputs on demand, and yield their futures.

        If `inputs` raises an exception, the last future contains it.
        """
        try:
            for each in inputs:
                yield self.submit(*each) if type(each) is tuple else self.submit(each)
        except Exception as error:
            failed: Future = Future()
            failed.set_exception(error)
            yield failed

    def _in_order(self, futures: Iterator[Future], ahead: int) -> Iterator[Any]:
        pending, number = deque(islice(futures, ahead)), 0
        try:
            while pending:
                yield _result(pending[0], number)
                pending.popleft()
                pending.extend(islice(futures, 1))
                number += 1
        finally:
            for future in pending:
                future.cancel()


def _initialize_worker(worker: threading.local, functions: SimpleQueue) -> None:
    """Initialize a worker thread: take a function from the queue `functions`, and store it in `worker` for later calls.

    Each function in the queue belongs to another machine, so that workers do not share machines.
    """
    worker.function = functions.get_nowait()


def _run(worker: threading.local, arguments: tuple, named: dict[str, Any]) -> Any:
    result = worker.function(*arguments, **named)
    if _has_closure(result):  # a call would run on the machine of a worker
        name = worker.function.name
        raise RelvmUnsupportedError(
            f"ThreadPoolRunner: {name} returned a closure, which only its worker can call; return a value"
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
