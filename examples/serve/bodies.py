"""Bodies of requests and responses: limits on their size and time, and decompression."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from relvm.errors import RelvmFormatError
from serve.settings import Settings

_WINDOW_BITS = {"gzip": 31, "deflate": 15}  # the parameter `wbits` of zlib; "deflate" means the zlib format (RFC 9110)
_PART_BYTES = 1 << 20
_ALIGNMENT = 16


class BodyTooLargeError(Exception):
    """The body of a request exceeds the limit."""


class BodiesFullError(Exception):
    """The bodies of all requests and responses together exceed the limit."""


class BodyLateError(Exception):
    """The body of a request did not arrive in time."""


class UnsupportedEncodingError(Exception):
    """The body of a request has an encoding that the server cannot decode."""


class Bodies:
    """The bodies that are being processed.

    held_bytes: their total size, which is limited by `max_bodies` of the settings.
    """

    def __init__(self, settings: Settings) -> None:
        self.max_body = settings.max_body
        self.max_bodies = settings.max_bodies
        self.timeout = settings.timeout
        self.held_bytes = 0

    def hold(self) -> Hold:
        """Return a Hold for one request.  The caller must release it."""
        return Hold(self)

    async def read(self, request: Request, hold: Hold, json_bytes: int = 0) -> memoryview:
        """Return the body of a request, decompressed.

        json_bytes: the length of the JSON at the beginning.  The data after it is aligned, so that arrays can use it.

        Raises
        ------
        BodyTooLargeError, BodiesFullError, BodyLateError, UnsupportedEncodingError
            The body exceeds a limit, or has an unknown encoding.
        RelvmFormatError
            The body cannot be decompressed.
        ClientDisconnect
            The client has closed the connection.
        """
        padding = -json_bytes % _ALIGNMENT
        body = bytearray(padding)
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", *_WINDOW_BITS):
            expected = ", ".join(_WINDOW_BITS)
            raise UnsupportedEncodingError(f"content-encoding {encoding[:200]}: expected identity, {expected}")
        parts = request.stream() if encoding == "identity" else _decompressed(request.stream(), encoding)
        try:
            async with asyncio.timeout(self.timeout):
                async for part in parts:
                    if len(body) - padding + len(part) > self.max_body:
                        raise BodyTooLargeError(f"the body has more than {self.max_body} bytes")
                    hold.add(len(part))
                    body += part
        except TimeoutError:
            raise BodyLateError(f"the body is incomplete after {self.timeout:g} seconds") from None
        return memoryview(body)[padding:]


class Hold:
    """The bytes that one request holds, which count towards the total of `Bodies`."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._bytes = 0

    def add(self, size: int) -> None:
        """Add bytes.  If the total of all requests would exceed the limit, raise BodiesFullError and add nothing."""
        if self._bodies.held_bytes + size > self._bodies.max_bodies:
            raise BodiesFullError(f"the bodies of all requests and responses exceed {self._bodies.max_bodies} bytes")
        self._bodies.held_bytes += size
        self._bytes += size

    def release(self) -> None:
        """Release all bytes of this request."""
        self._bodies.held_bytes -= self._bytes
        self._bytes = 0


async def _decompressed(parts: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yield parts of at most _PART_BYTES, so that the caller can stop before a small body becomes a large one."""
    decoder = zlib.decompressobj(_WINDOW_BITS[encoding])
    try:
        async for part in parts:
            while part and not decoder.eof:
                yield await asyncio.to_thread(decoder.decompress, part, _PART_BYTES)
                part = decoder.unconsumed_tail
            if decoder.unused_data or (part and decoder.eof):
                raise RelvmFormatError(f"the body: data follows the end of the {encoding} data")
        while not decoder.eof and (part := await asyncio.to_thread(decoder.decompress, b"", _PART_BYTES)):
            yield part
    except zlib.error as error:
        raise RelvmFormatError(f"the body is not {encoding} data: {error}") from None
    if not decoder.eof:
        raise RelvmFormatError(f"the body: the {encoding} data is incomplete")


class PartsResponse(Response):
    """A response whose body consists of several parts, which are sent without a copy of the whole.

    The response releases `hold` after it was sent, or if it cannot be sent.
    """

    def __init__(self, parts: Sequence[bytes | memoryview], headers: dict[str, str], hold: Hold) -> None:
        self._parts = parts
        self._hold = hold
        self._length = sum(map(len, parts))
        super().__init__(None, 200, {**headers, "content-length": str(self._length)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if self._length <= _PART_BYTES:
                await send({"type": "http.response.body", "body": b"".join(self._parts)})
                return
            for part in self._parts:
                for at in range(0, len(part), _PART_BYTES):
                    piece = bytes(part[at : at + _PART_BYTES])
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._hold.release()
            self._parts = ()
