"""Scheduling of batches on a Dask cluster: a limited number of batches at a time, with results in order."""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from relvm.data_classes import dataclass
from relvm.distributed.batch import Batch, FileBatch, extract_deferred
from relvm.distributed.output_dir import Output
from relvm.distributed.runner import Runner
from relvm.distributed.tasks import Failure, run_batch, share_runner
from relvm.errors import (
    RelvmArgumentError,
    RelvmBatchError,
    RelvmError,
    RelvmInterrupted,
    RelvmTypeError,
    RelvmUnsupportedError,
    expect_type,
)

if TYPE_CHECKING:
    from distributed import Client, Future

AHEAD_PER_THREAD = 2  # tasks for each thread: one is running, and one is waiting on the worker
_COUNT_SECONDS = 1.0  # seconds for which a count of the workers' threads is reused


@dataclass(frozen=True)
class Outcome:
    """The outcome of a batch.

    result: the result of the function, or None if the batch failed.
    error: the error of the batch, or None if it succeeded.  The `__cause__` of the error is the original error.
    """

    batch: Batch | FileBatch
    result: Any = None
    error: RelvmBatchError | None = None


class Stream:
    """A run of many batches on a cluster.

    Parameters
    ----------
    client
        The Dask client, or None for the most recently created client.
    runner
        The runner to call with each batch.
    ahead
        The maximum number of batches that are taken from the input before their outcomes are yielded, which limits
        memory use.  None means two batches for each thread of the workers.
    retries
        How often a batch runs again after an error that is not an error of relvm.

    Raises
    ------
    RelvmArgumentError
        There is no client, `ahead` is less than 1, or `retries` is negative.
    RelvmTypeError
        `client` is not a Dask client, or it is asynchronous.
    RelvmUnsupportedError
        Dask is not installed.
    """

    def __init__(self, client: Client | None, runner: Runner, *, ahead: int | None, retries: int) -> None:
        self.client = _expect_client(client)
        self.runner = runner
        self.ahead = None if ahead is None else _expect_count("ahead", ahead, least=1)
        self.retries = _expect_count("retries", retries, least=0)
        self._name = f"relvm-batch-{uuid.uuid4().hex}"
        self._submitted = 0
        self._slots: list[str] = []
        self._room, self._counted = 0, 0.0

    def outcomes(
        self, batches: Iterator[Batch | FileBatch], output_of: Callable[[FileBatch], Output] | None = None
    ) -> Generator[Outcome, None, None]:
        """Yield the outcome of each batch, in order.

        At most `ahead` batches are taken from `batches` before their outcomes are yielded.  If `batches` raises an
        exception, the outcomes of the preceding batches are yielded first, and then the exception is raised.  When the
        returned iterator is closed or raises an exception, tasks that are still unfinished are cancelled.

        Parameters
        ----------
        batches
            An iterator over the batches to run.
        output_of
            A function that returns the file to which the worker writes the result of a batch.  If it is None, the
            outcomes contain the results.

        Raises
        ------
        RelvmInterrupted
            The cluster was lost, or the tasks of the run were cancelled.
        RelvmError
            A worker cannot run the executable at all.
        """
        with _expect_cluster():
            runner = self._submit(share_runner, self.runner, key=f"relvm-runner-{uuid.uuid4().hex}")
        waiting: deque[tuple[Batch | FileBatch, Output | None, Future | RelvmBatchError]] = deque()
        try:
            with _expect_cluster():
                self._slots = [address for address, threads in self.client.nthreads().items() for _ in range(threads)]
            more, failure = True, None
            while True:
                while more and len(waiting) < self._limit():
                    try:
                        batch = next(batches, None)
                    except Exception as error:
                        batch, failure = None, error
                    more = batch is not None
                    if batch is not None:
                        output = output_of(batch) if output_of and isinstance(batch, FileBatch) else None
                        waiting.append((batch, output, self._submit_batch(runner, batch, output)))
                if not waiting and failure:
                    raise failure
                if not waiting:
                    return
                outcome = self._outcome(runner, *waiting[0], others=_futures(waiting)[1:])
                waiting.popleft()  # allows the cluster to release the result
                yield outcome
        finally:
            with suppress(Exception):  # a lost cluster has nothing to cancel, and the original error is being raised
                self.client.cancel([runner, *_futures(waiting)], force=True)

    def _limit(self) -> int:
        if self.ahead is not None:
            return self.ahead
        now = time.monotonic()
        if now - self._counted > _COUNT_SECONDS:
            with _expect_cluster():
                threads = sum(self.client.nthreads().values())
            self._room = AHEAD_PER_THREAD * max(threads, 1)
            self._counted = now
        return self._room

    def _submit_batch(
        self, runner: Future, batch: Batch | FileBatch, output: Output | None
    ) -> Future | RelvmBatchError:
        """Submit the task of a batch, and return its future.  Return an error if its arguments cannot be sent."""
        sent, deferred = extract_deferred(batch)
        self._submitted += 1
        key = f"{self._name}-{self._submitted}"
        try:
            with _expect_cluster():
                computed = [self.client.compute(each, retries=self.retries) for each in deferred]
                return self._submit(
                    run_batch, runner, sent, output, *computed, key=key, **self._worker_options(computed)
                )
        except TypeError as error:  # raised by Dask for a value that cannot be pickled
            return _batch_error(batch, error.__cause__ if isinstance(error.__cause__, RelvmError) else error)

    def _worker_options(self, computed: list[Future]) -> dict[str, Any]:
        """Return the options that tell Dask which worker to prefer for the batch being submitted.

        The first batches are assigned to the workers in turn.  Otherwise Dask would send them all to the only worker
        that already has the executable.  After AHEAD_PER_THREAD batches for each thread, no options are returned.  Dask
        then detects that the group of tasks is larger than the cluster, and distributes the tasks itself.

        computed: the arguments of the batch that Dask computes.  If there are any, Dask chooses the worker.
        """
        if computed or self._submitted > AHEAD_PER_THREAD * len(self._slots):
            return {}
        return {"workers": [self._slots[self._submitted % len(self._slots)]], "allow_other_workers": True}

    def _submit(self, task: Callable, *arguments: Any, key: str, **options: Any) -> Future:
        """Submit `task` to Dask with `self.retries`, and without Dask's warning about large arguments."""
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):
            return self.client.submit(task, *arguments, key=key, retries=self.retries, pure=False, **options)

    def _outcome(
        self,
        runner: Future,
        batch: Batch | FileBatch,
        output: Output | None,
        future: Future | RelvmBatchError,
        *,
        others: list[Future],
    ) -> Outcome:
        from distributed import CancelledError, KilledWorker, wait

        if isinstance(future, RelvmBatchError):
            return Outcome(batch, error=future)
        try:
            try:
                result = future.result()
            except KilledWorker:
                # Dask blames all tasks of a worker that died.  Run the batch alone to find out whether it is the cause.
                wait(others)
                again = self._submit_batch(runner, batch, output)
                if isinstance(again, RelvmBatchError):
                    return Outcome(batch, error=again)
                result = again.result()
        except CancelledError as error:
            raise RelvmInterrupted(f"batch {batch.name}: the cluster lost the batch: {error}") from error
        except Exception as error:
            return Outcome(batch, error=_batch_error(batch, error))
        if not isinstance(result, Failure):
            return Outcome(batch, result)
        if not result.is_batch_error:
            raise result.error
        return Outcome(batch, error=_batch_error(batch, result.error))


@contextmanager
def _expect_cluster() -> Iterator[None]:
    """A context manager that raises RelvmInterrupted in place of two errors that its block can raise.

    The errors are that the client is closed, and that it cannot reach the scheduler.
    """
    from distributed.client import ClosedClientError

    try:
        yield
    except (ClosedClientError, OSError) as error:
        raise RelvmInterrupted(f"the client lost its connection to the cluster: {error}") from error


def _futures(waiting: Iterable[tuple]) -> list[Future]:
    return [future for _, _, future in waiting if not isinstance(future, RelvmBatchError)]


def _batch_error(batch: Batch | FileBatch, cause: Exception) -> RelvmBatchError:
    error = RelvmBatchError(f"batch {batch.name}: {type(cause).__name__}: {cause}")
    error.batch = batch.name
    error.__cause__ = cause
    return error


def _expect_client(client: Client | None) -> Client:
    try:
        from distributed import Client, default_client
    except ImportError:
        raise RelvmUnsupportedError("running on a cluster requires Dask: pip install 'relvm[dask]'") from None
    if client is None:
        try:
            return default_client()
        except ValueError:
            raise RelvmArgumentError("client: no client found; create one with distributed.Client(...)") from None
    expect_type("client", client, Client, "a distributed.Client")
    if client.asynchronous:
        raise RelvmTypeError("client: expected a synchronous client, got one created with asynchronous=True")
    return client


def _expect_count(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 1 << 63:  # Dask encodes 64 bits
        raise RelvmArgumentError(f"{name} is {value!r}, expected an integer of at least {least}")
    return value
