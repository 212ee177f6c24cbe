"""HTTP connections with limits on their number and their time."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose client is too slow or malformed.

    The head of the next request must arrive within the timeout of the service (`Service.timeout`) after the connection
    was opened or the previous answer was sent.  A client must not stop reading an answer for longer than the timeout.
    h11 limits the size of a head, and the service limits the time of a body.  Connections beyond
    `Service.max_connections` are closed immediately.
    """

    _head: asyncio.TimerHandle | None = None
    _reader: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.config.app.state.service.max_connections:
            self._reset()
        else:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head, self._reader):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._expect_head()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request and close the connection.

        If only the body is malformed, the application has already received the request.  It is then notified that the
        client has disconnected.  No answer is sent if h11 does not allow one, for example, because the request is
        already answered.
        """
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        with suppress(h11.LocalProtocolError):
            super().send_400_response(msg)
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader = self.loop.call_later(self._timeout, self._reset)

    def resume_writing(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
        super().resume_writing()

    @property
    def _timeout(self) -> float:
        return self.config.app.state.service.timeout

    def _reset(self) -> None:
        """Reset the connection: close it immediately, and discard all data not yet sent, also in system buffers."""
        connection = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _expect_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
        self._head = self.loop.call_later(self._timeout, self._end_without_request)

    def _end_without_request(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.timeout_keep_alive_handler()
