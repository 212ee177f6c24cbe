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
    """A request: arrays of `rows` rows each, and the future for their result."""

    arrays: Sequence[np.ndarray]
    answer: asyncio.Future[tuple[np.ndarray, ...]]
    since: float = field(default_factory=time.monotonic)

    @property
    def rows(self) -> int:
        return len(self.arrays[0])

    @property
    def sizes(self) -> list[tuple[int, ...]]:
        """What requests of one batch have in common."""
        return [each.shape[1:] for each in self.arrays]


class Batcher:
    """Runs requests in batches: their arrays, laid one behind the other along the first axis.

    A batch begins when a worker is free and a request waits.  It takes what else has come by `max_wait` seconds after
    that request, or at once where that is `max_batch` rows.  While all workers are busy, requests gather.

    Where a batch fails, each of its requests runs alone, so that only those fail that do so by themselves.

    It is made, and used, in an event loop; the machines run in the threads of `runner`.

    Parameters
    ----------
    runner
        Of a function that `signature.batch_signature` accepts.
    max_batch
        Rows of a batch.  A request must not have more.
    max_wait
        Seconds.
    max_queue
        How many requests may wait for a batch.
    on_batch
        Called with the rows of each batch that runs.
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
        """What the function gives for the rows of these arrays.

        Raises
        ------
        QueueFullError
            `max_queue` requests wait already, or the batcher is closed.
        DeadlineError
            There is no result after `timeout` seconds.
        RelvmError
            What the machine raises for them alone.
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
        """Whether it makes batches; False where it is closed, or failed by a mistake of its own."""
        return not self._collecting.done()

    async def close(self) -> None:
        """Answer all that waits, and end."""
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
        """Wait until the oldest request has waited long enough, or there are as many rows as a batch can have."""
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
        """The oldest request, and what fits into a batch with it; none where all were given up meanwhile."""
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
        """Run a batch and answer its requests; False: it failed, and there is more than one to answer."""
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
