"""Conversion of large bodies in a separate process, so that the event loop is not blocked."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np

from serve.bodies import JSON, read_body, write_body
from serve.signature import Signature

_SMALL_BYTES = 1 << 16  # JSON of this size takes a few milliseconds
_SMALL_ELEMENTS = 1 << 13


class ConversionError(Exception):
    """The conversion process has ended, for example because the system is out of memory."""


class Converter:
    """Converts between bodies and arrays, as `read_body` and `write_body` do.  Large JSON is converted in a process.

    A thread would not help, because Python's json module holds the global interpreter lock while it converts a body.
    The process starts at the first large body.  If it has died, the next large body starts a new process.
    """

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self._process: ProcessPoolExecutor | None = None

    async def read(self, body: bytes | bytearray, content_type: str) -> dict[str, np.ndarray]:
        """Return the arrays in a body, by input name.  Raise the errors of `read_body`, and ConversionError."""
        is_small = content_type != JSON or len(body) <= _SMALL_BYTES
        return await self._converted(is_small, read_body, body, content_type)

    async def write(self, arrays: Sequence[np.ndarray], content_type: str) -> bytes:
        """Return the body of an answer.  Raise ConversionError if the process has died."""
        is_small = content_type != JSON or sum(each.size for each in arrays) <= _SMALL_ELEMENTS
        return await self._converted(is_small, write_body, arrays, content_type)

    async def close(self) -> None:
        """End the process after its current conversion.  Pending conversions are cancelled."""
        process, self._process = self._process, None
        if process is not None:
            await asyncio.to_thread(process.shutdown, cancel_futures=True)

    async def _converted(self, is_small: bool, convert: Callable, source: Any, content_type: str) -> Any:
        if is_small:
            return convert(source, content_type, self.signature)
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._process = ProcessPoolExecutor(1, mp_context=context, initializer=_prepare)
        process = self._process
        try:
            return await asyncio.wrap_future(process.submit(convert, source, content_type, self.signature))
        except BrokenProcessPool:
            if process is self._process:
                self._process = None
            raise ConversionError("the process that reads and writes large bodies has ended") from None


def _prepare() -> None:
    """Initialize the process: ignore Ctrl-C, which the server handles, and exit when the server exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)
