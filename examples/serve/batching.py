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


class QueueFullError(Exception):
    """The queue of requests is full."""


class DeadlineError(Exception):
    """A request was not answered in time."""


@dataclass(eq=False)
class Request:
    """A request: its input arrays, the future for its result, and the time when it was queued (time.monotonic)."""

    arrays: Sequence[np.ndarray]
    answer: asyncio.Future[tuple[np.ndarray, ...]]
    since: float = field(default_factory=time.monotonic)

    @property
    def rows(self) -> int:
        return len(self.arrays[0])

    @property
    def sizes(self) -> list[tuple[int, ...]]:
        """The shape of each array without the first axis.  Only requests with equal sizes can share a batch."""
        return [each.shape[1:] for each in self.arrays]


class Batcher:
    """Runs requests in batches: concatenates their arrays along the first axis, and splits the result.

    When a worker is free and a request waits, a batch is collected.  It contains that request and the requests with the
    same sizes that arrive within `max_wait` seconds of it.  The batch runs earlier if it reaches `max_batch` rows.
    While all workers are busy, requests wait in the queue.

    If a batch fails, each of its requests runs again alone, so that one bad request does not fail the others.

    Create and use a Batcher in an event loop.  The machines run in the threads of `runner`.

    Parameters
    ----------
    runner
        The runner of a function that `signature.batch_signature` accepts.
    max_batch
        The maximum number of rows of a batch.  A single request must not have more rows.
    max_wait
        The maximum time that a request waits for others, in seconds.
    max_queue
        The maximum number of requests that wait for a batch.
    on_batch
        A function that is called with the number of rows of each batch that runs.
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
        self._news = asyncio.Event()  # a request has come, or the end
        self._free = asyncio.Semaphore(runner.workers)
        self._running: set[asyncio.Task] = set()
        self._ends = False
        self._collecting = asyncio.create_task(self._collect())

    async def predict(self, arrays: Sequence[np.ndarray], timeout: float) -> tuple[np.ndarray, ...]:
        """Run the function on the arrays of one request, possibly in a batch with others, and return its outputs.

        arrays: the inputs, in the order of the parameters.   timeout: the maximum time in seconds.

        Raises
        ------
        QueueFullError
            `max_queue` requests wait already, or the batcher is closed.
        DeadlineError
            There is no result after `timeout` seconds.
        RelvmError
            The machine raised this error when it ran the request alone.
        """
        if self._ends or len(self.waiting) >= self.max_queue:
            raise QueueFullError("the server ends" if self._ends else f"{self.max_queue} requests are waiting")
        assert len(arrays[0]) <= self.max_batch, "Signature.arguments lets no larger one through"
        request = Request(arrays, asyncio.get_running_loop().create_future())
        self.waiting.append(request)
        self._news.set()
        try:
            await asyncio.wait([request.answer], timeout=timeout)
            if not request.answer.done():
                raise DeadlineError(f"no result within {timeout:g} seconds")
            return request.answer.result()
        finally:
            request.answer.cancel()  # nobody waits for it any more
            if request in self.waiting:
                self.waiting.remove(request)

    @property
    def alive(self) -> bool:
        """Whether the batcher runs batches: False if it is closed, or if its own code raised an exception."""
        return not self._collecting.done()

    async def close(self) -> None:
        """Accept no more requests, and wait until all waiting requests are answered."""
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
        """Wait until the oldest request has waited `max_wait` seconds, or the requests of its sizes fill a batch."""
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
        """Remove the next batch from the queue and return it: the oldest request, and the requests that fit with it.

        The batch is empty if all waiting requests have been cancelled.
        """
        batch, rows = [], 0
        for request in list(self.waiting):
            if (not batch or request.sizes == batch[0].sizes) and rows + request.rows <= self.max_batch:
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
        """Run a batch and answer its requests.  Return False, without answers, if a batch of several requests failed.

        If a single request fails, its answer is the exception, and the result is True.
        """
        self.on_batch(sum(each.rows for each in batch))
        try:
            inputs = zip(*(each.arrays for each in batch), strict=True)
            arguments = [each[0] if len(each) == 1 else np.concatenate(each) for each in inputs]
            result = await asyncio.wrap_future(self.runner.submit(*arguments))
        except Exception as error:
            if len(batch) > 1:
                return False
            if not batch[0].answer.done():
                batch[0].answer.set_exception(error)
            return True
        outputs = [np.asarray(each) for each in (result if isinstance(result, tuple) else (result,))]
        start = 0
        for request in batch:
            if not request.answer.done():
                request.answer.set_result(tuple(each[start : start + request.rows] for each in outputs))
            start += request.rows
        return True
