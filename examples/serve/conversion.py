"""Conversion between bodies and arrays, so that large ones do not block the event loop."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np

from relvm.errors import RelvmFormatError, counted
from serve.protocol import BinaryTensor, InferRequest, read_request, read_tensor, write_binary, write_data
from serve.signature import Signature, TensorSpec

_SMALL_BYTES = 1 << 16  # JSON of this size takes a few milliseconds
_SMALL_ELEMENTS = 1 << 13


class ConversionError(Exception):
    """The conversion process has ended, for example because the system is out of memory."""


class Converter:
    """Converts the bodies of requests to arrays, and arrays to the bodies of responses.

    Python's JSON holds the interpreter's lock from its first byte to its last, so large JSON needs a process instead of
    a thread.  The process starts with the first large body.  If it ends, the next large body starts another one.
    """

    def __init__(self) -> None:
        self._process: ProcessPoolExecutor | None = None

    async def read(
        self, body: memoryview, json_bytes: int, signature: Signature
    ) -> tuple[InferRequest, dict[str, np.ndarray]]:
        """Return a request and its inputs.  Arrays of binary data use the memory of `body`.

        json_bytes: the length of the JSON at the beginning of the body.

        Raises
        ------
        RelvmError
            As `read_request` and `read_tensor` raise it.
        ConversionError
            The conversion process has ended.
        """
        text = body[:json_bytes]
        if json_bytes <= _SMALL_BYTES:
            request = read_request(text, signature)
        else:
            request = await self._in_process(read_request, bytes(text), signature)
        specs = {each.name: each for each in signature.inputs}
        arrays, at = {}, json_bytes
        stated = sum(each.size_bytes for each in request.inputs.values() if isinstance(each, BinaryTensor))
        if stated != len(body) - json_bytes:
            raise RelvmFormatError(
                f"the inputs state {counted(stated, 'byte')} of binary data, but "
                f"{len(body) - json_bytes} follow the JSON; "
                "Inference-Header-Content-Length must be the length of the JSON"
            )
        for name, tensor in request.inputs.items():
            if isinstance(tensor, BinaryTensor):
                content = body[at : at + tensor.size_bytes]
                arrays[name] = await self._read_tensor(specs[name], tensor, content)
                at += tensor.size_bytes
            else:
                arrays[name] = tensor
        return request, arrays

    async def write(self, spec: TensorSpec, array: np.ndarray, is_binary: bool) -> str | memoryview:
        """Return the elements of an output, as `write_binary` or `write_data` do.

        Raises
        ------
        ConversionError
            The conversion process has ended.
        """
        convert = write_binary if is_binary else write_data
        is_small = array.size <= _SMALL_ELEMENTS and (
            spec.datatype != "BYTES" or sum(map(len, array.reshape(-1))) <= _SMALL_BYTES
        )
        if is_small or (is_binary and spec.datatype != "BYTES"):
            return convert(array, spec.datatype)
        if is_binary:
            return await asyncio.to_thread(convert, array, spec.datatype)
        return await self._in_process(convert, array, spec.datatype)

    async def close(self) -> None:
        """End the process as soon as it has completed its current work."""
        process, self._process = self._process, None
        if process is not None:
            await asyncio.to_thread(process.shutdown, cancel_futures=True)

    async def _read_tensor(self, spec: TensorSpec, tensor: BinaryTensor, content: memoryview) -> np.ndarray:
        if spec.datatype == "BYTES" and len(content) > _SMALL_BYTES:
            return await asyncio.to_thread(read_tensor, spec, tensor, content)
        return read_tensor(spec, tensor, content)

    async def _in_process(self, convert: Callable, *arguments: Any) -> Any:
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._process = ProcessPoolExecutor(1, mp_context=context, initializer=_prepare)
        process = self._process
        try:
            result = process.submit(convert, *arguments)
            # If the process ends during `submit`, Python 3.11 may lose `result`; the next `submit` raises then.
            process.submit(_do_nothing)
            return await asyncio.wrap_future(result)
        except BrokenProcessPool:
            if process is self._process:
                self._process = None
            raise ConversionError("the process that reads and writes large JSON has ended") from None


def _do_nothing() -> None:
    pass


def _prepare() -> None:
    """Ignore Ctrl-C, which the server handles, and end with the server."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)
