"""HTTP connections with limits on their number and on the time of their clients."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 32
MAX_SECONDS = 5.0


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 that closes the connections of clients that only keep the server waiting.

    The head of a request must arrive within MAX_SECONDS after the connection was opened or the previous answer was
    sent, and the client must not stop reading an answer for longer.  If there are more than MAX_CONNECTIONS
    connections, the connection that has waited longest for a request is closed.  If none waits for a request, the new
    connection is closed.
    """

    _head: asyncio.TimerHandle | None = None
    _reader: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_head()
        if len(self.connections) > MAX_CONNECTIONS:
            waiting = [each for each in self.connections if isinstance(each, LimitedProtocol) and each.is_waiting]
            min(waiting, key=LimitedProtocol.deadline).reset()  # this connection is one of them

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head, self._reader):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._expect_head()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader = self.loop.call_later(MAX_SECONDS, self.reset)

    def resume_writing(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
        super().resume_writing()

    @property
    def is_waiting(self) -> bool:
        """Whether the connection waits for the head of a request."""
        return self.cycle is None or self.cycle.response_complete

    def deadline(self) -> float:
        """Return the time by which the head of a request must arrive."""
        assert self._head is not None
        return self._head.when()

    def reset(self) -> None:
        """Close the connection immediately, and discard all data not yet sent, also in system buffers."""
        connection = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connections.discard(self)
        self.transport.abort()

    def _expect_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
        self._head = self.loop.call_later(MAX_SECONDS, self._end_if_waiting)

    def _end_if_waiting(self) -> None:
        if self.is_waiting:
            self.reset()
