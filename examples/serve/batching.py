"""Dynamic batching: combine requests, run the batches on a pool of machines, and distribute the results."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relvm import ThreadPoolRunner
from relvm.errors import counted


class QueueFullError(Exception):
    """The queue of requests is full."""


class DeadlineError(Exception):
    """A request was not answered in time."""


@dataclass(eq=False)
class Request:
    """A request: the arguments of the function, and the future for its result.

    rows: the number of rows that the arguments add to a batch.
    """

    arguments: Sequence[Any]
    rows: int
    answer: asyncio.Future[tuple[Any, ...]]
    since: float = field(default_factory=time.monotonic)

    @property
    def sizes(self) -> list[tuple[int, ...]]:
        """The sizes that must be the same for all requests of a batch."""
        return [each.shape[1:] for each in self.arguments]


class Batcher:
    """Runs requests in batches: their arrays are concatenated along the first axis.

    A batch begins when a worker is free and a request waits.  The batch starts `max_wait` seconds after the oldest
    request arrived, or as soon as the waiting requests have `max_batch` rows.  While all workers are busy, requests
    wait.

    If a batch fails, each of its requests runs separately, so that one invalid request does not affect the others.

    A batcher belongs to an event loop.  The machines run on the threads of `runner`.

    Parameters
    ----------
    runner
        The pool of machines.
    max_batch
        The maximum number of rows in a batch.  A request must not have more.  1: each request runs alone.
    max_wait
        The maximum time that a request waits for others, in seconds.
    max_queue
        The maximum number of requests that wait for a batch.
    on_batch
        A function that is called with the rows of each batch that runs.
    """

    def __init__(
        self,
        runner: ThreadPoolRunner,
        *,
        max_batch: int,
        max_wait: float,
        max_queue: int,
        on_batch: Callable[[int], Any],
    ) -> None:
        self.runner = runner
        self.max_batch = max_batch
        self.max_wait = max_wait
        self.max_queue = max_queue
        self.on_batch = on_batch
        self.waiting: deque[Request] = deque()
        self._news = asyncio.Event()  # set when a request arrives or the batcher closes
        self._free = asyncio.Semaphore(runner.workers)
        self._running: set[asyncio.Task] = set()
        self._ends = False
        self._collecting = asyncio.create_task(self._collect())

    async def predict(self, arguments: Sequence[Any], rows: int, timeout: float) -> tuple[Any, ...]:
        """Return the outputs of the function for the arguments of one request.

        Parameters
        ----------
        arguments
            The arguments.  In a batch, arrays whose first axis is the batch.
        rows
            The size of this axis; 1 if requests are not batched.
        timeout
            The maximum time until the result, in seconds.

        Raises
        ------
        QueueFullError
            `max_queue` requests wait already, or the batcher is closed.
        DeadlineError
            There is no result after `timeout` seconds.
        RelvmError
            The run failed for these arguments.
        """
        if self._ends or len(self.waiting) >= self.max_queue:
            full = f"the queue of {counted(self.max_queue, 'request')} is full"
            raise QueueFullError("the server ends" if self._ends else full)
        assert rows <= self.max_batch, "signature.batch_rows lets no larger one through"
        request = Request(arguments, rows, asyncio.get_running_loop().create_future())
        self.waiting.append(request)
        self._news.set()
        try:
            await asyncio.wait([request.answer], timeout=timeout)
            if not request.answer.done():
                raise DeadlineError(f"no result within {timeout:g} seconds")
            return request.answer.result()
        finally:
            request.answer.cancel()  # the caller has given up
            if request in self.waiting:
                self.waiting.remove(request)

    @property
    def alive(self) -> bool:
        """Whether batches are formed.  False after it is closed, or after an internal error."""
        return not self._collecting.done()

    async def close(self) -> None:
        """Answer all waiting requests, and stop."""
        self._ends = True
        self._news.set()
        await self._collecting
        await asyncio.gather(*self._running)

    # ---- making batches ----

    async def _collect(self) -> None:
        while True:
            await self._free.acquire()
            while not self.waiting:
                if self._ends:
                    return
                await self._hear(None)
            await self._gather()
            task = asyncio.create_task(self._run(self._take()))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _gather(self) -> None:
        """Wait until the oldest request has waited for `max_wait` seconds, or the waiting requests fill a batch."""
        if self.max_batch == 1:
            return
        until = self.waiting[0].since + self.max_wait
        while self.waiting and not self._ends and (left := until - time.monotonic()) > 0:
            sizes = self.waiting[0].sizes
            if sum(each.rows for each in self.waiting if each.sizes == sizes) >= self.max_batch:
                return
            await self._hear(left)

    async def _hear(self, timeout: float | None) -> None:
        self._news.clear()
        try:
            await asyncio.wait_for(self._news.wait(), timeout)
        except TimeoutError:
            return

    def _take(self) -> list[Request]:
        """Remove the oldest request and others that fit into a batch with it from the queue, and return them.

        The list is empty if all requests were given up meanwhile.
        """
        batch: list[Request] = []
        rows = 0
        for request in list(self.waiting):
            if rows == self.max_batch:
                break
            if rows + request.rows <= self.max_batch and (not batch or request.sizes == batch[0].sizes):
                batch.append(request)
                rows += request.rows
                self.waiting.remove(request)
        return batch

    # ---- running them ----

    async def _run(self, batch: list[Request]) -> None:
        try:
            if batch and not await self._succeeds(batch):
                for request in batch:
                    if not request.answer.done():  # its deadline may have passed
                        await self._succeeds([request])
        finally:
            self._free.release()

    async def _succeeds(self, batch: list[Request]) -> bool:
        """Run a batch and answer its requests.

        Return False without answering if the batch failed and has several requests.
        """
        if self.max_batch > 1:
            self.on_batch(sum(each.rows for each in batch))
        try:
            if len(batch) == 1:
                arguments = batch[0].arguments
            else:
                arguments = [np.concatenate(each) for each in zip(*(each.arguments for each in batch), strict=True)]
            result = await asyncio.wrap_future(self.runner.submit(*arguments))
        except Exception as error:
            if len(batch) > 1:
                return False
            if not batch[0].answer.done():
                batch[0].answer.set_exception(error)
            return True
        outputs = result if isinstance(result, tuple) else (result,)
        if len(batch) == 1:
            if not batch[0].answer.done():
                batch[0].answer.set_result(outputs)
            return True
        arrays = [np.asarray(each) for each in outputs]
        start = 0
        for request in batch:
            if not request.answer.done():
                request.answer.set_result(tuple(each[start : start + request.rows] for each in arrays))
            start += request.rows
        return True
