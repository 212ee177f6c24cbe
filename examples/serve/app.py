"""The endpoints: POST /predict, GET /health, GET /metrics."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relvm import ThreadPoolRunner
from relvm.errors import RelvmArgumentError, RelvmError, RelvmFormatError, RelvmMemoryError, RelvmTimeoutError
from relvm.vm import Executable
from serve.batching import Batcher, DeadlineError, QueueFullError
from serve.conversion import ConversionError, Converter
from serve.signature import batch_signature


class BodyTooLargeError(Exception):
    """The body of a request exceeds the limit."""


class BodiesFullError(Exception):
    """The bodies of all requests together have more bytes than they may."""


class BodyLateError(Exception):
    """A body was not there in time."""


# What a request that gets no result is told; the first row that fits.
STATUS: dict[type[Exception], int] = {
    ClientDisconnect: 400,  # which nobody reads
    BodyTooLargeError: 413,
    QueueFullError: 503,
    BodiesFullError: 503,
    ConversionError: 503,
    BodyLateError: 504,
    DeadlineError: 504,
    RelvmFormatError: 400,
    RelvmMemoryError: 503,
    RelvmTimeoutError: 504,
    RelvmError: 422,
    Exception: 500,
}


class Metrics:
    """What GET /metrics shows, in a registry of its own."""

    def __init__(self, max_batch: int) -> None:
        self.registry = CollectorRegistry()
        of = {"registry": self.registry}
        rows = sorted({2**k for k in range(max_batch.bit_length())} | {max_batch})
        self.requests = Counter("relvm_requests", "Answers of /predict by their status.", ["status"], **of)
        self.errors = Counter("relvm_errors", "Requests without a result, by the class of the error.", ["kind"], **of)
        self.batches = Histogram("relvm_batch_rows", "Rows of the batches that ran.", buckets=rows, **of)
        self.queue = Gauge("relvm_queue_length", "Requests that wait for a batch.", **of)
        self.seconds = Histogram("relvm_request_seconds", "From a request's head to its answer.", **of)


class Service:
    """A model that is served.

    Attributes
    ----------
    ready
        Whether it wants more requests.  False from the beginning of the end on; those that come are still answered.

    Parameters
    ----------
    executable, function
        What runs; see `signature.batch_signature`.
    workers
        Threads, each with a machine; None: one for each processor.
    max_batch, max_wait, max_queue
        See Batcher.
    timeout
        Seconds in which the body has to be there, and then the result: 504; and the most that a run may take.
    max_body
        Bytes of a request.
    max_bodies
        Bytes of all requests that are not answered yet; one that would be more: 503.
    max_connections
        How many there may be at a time, where LimitedProtocol makes them; one more is closed at once.

    Raises
    ------
    RelvmArgumentError
        One of these numbers is out of its range.
    RelvmNameError, RelvmUnsupportedError
        The function is not there, or none of batches.
    """

    def __init__(
        self,
        executable: Executable,
        function: str = "main",
        *,
        workers: int | None = None,
        max_batch: int = 32,
        max_wait: float = 0.002,
        max_queue: int = 256,
        timeout: float = 10,
        max_body: int = 64 << 20,
        max_bodies: int = 256 << 20,
        max_connections: int = 512,
    ) -> None:
        self.signature = batch_signature(executable, function)
        most = self.signature.most_rows
        if max_batch < 1 or (most is not None and max_batch > most):
            raise RelvmArgumentError(f"max_batch is {max_batch}, expected 1 to {most or 'any number'}")
        if not (0 <= max_wait < math.inf and max_queue >= 1 and 0 < timeout < math.inf and max_body >= 1):
            raise RelvmArgumentError("expected max_wait >= 0, max_queue >= 1, timeout > 0, max_body >= 1, all finite")
        self.timeout = timeout
        self.max_body = max_body
        if max_bodies < max_body:
            raise RelvmArgumentError(f"max_bodies is {max_bodies}, expected at least max_body, {max_body}")
        self.max_bodies = max_bodies
        if max_connections < 1:
            raise RelvmArgumentError(f"max_connections is {max_connections}, expected at least 1")
        self.max_connections = max_connections
        self.held_bytes = 0  # of bodies
        self.converter = Converter(self.signature)
        self.limits = {"max_batch": max_batch, "max_wait": max_wait, "max_queue": max_queue}
        self.metrics = Metrics(max_batch)
        self.runner = ThreadPoolRunner(executable, workers, function, max_seconds=timeout)
        self.ready = False

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Ready from here to the end, when all that was accepted has been answered."""
        with self.runner:
            self.batcher = Batcher(self.runner, **self.limits, on_batch=self.metrics.batches.observe)
            self.metrics.queue.set_function(lambda: len(self.batcher.waiting))
            self.ready = True
            yield
            self.ready = False
            await self.batcher.close()
            await self.converter.close()

    # ---- the endpoints ----

    async def predict(self, request: Request) -> Response:
        """The result for the arrays in the body, in the form of the body."""
        began = time.perf_counter()
        try:
            answer = await self._predicted(request)
        except Exception as error:
            answer = self._refusal(error)
        self.metrics.requests.labels(answer.status_code).inc()
        self.metrics.seconds.observe(time.perf_counter() - began)
        return answer

    async def health(self, request: Request) -> Response:
        """200 while the server is ready for more requests, 503 while it ends or where it is broken."""
        alive = self.batcher.alive
        ready = alive and self.ready
        return JSONResponse({"alive": alive, "ready": ready}, 200 if ready else 503)

    async def show_metrics(self, request: Request) -> Response:
        """The metrics in the text form of Prometheus."""
        return Response(generate_latest(self.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    def _refusal(self, error: Exception) -> Response:
        status = next(status for kind, status in STATUS.items() if isinstance(error, kind))
        kind, message = type(error).__name__, str(error)
        if status == 500:
            logging.getLogger("serve").error("a request failed", exc_info=error)
            message = "the server failed; its log says why"
        self.metrics.errors.labels(kind).inc()
        headers = {"Retry-After": "1"} if status == 503 else {}
        if isinstance(error, BodyTooLargeError | BodiesFullError | BodyLateError):
            headers["Connection"] = "close"  # what is left of the body is not waited for
        message = message.encode(errors="backslashreplace").decode()  # JSON may hold halves of characters
        return JSONResponse({"error": kind, "message": message}, status, headers)

    async def _predicted(self, request: Request) -> Response:
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        async with self._body_of(request) as body:
            with self._deadline("the body could not be read"):
                arrays = await asyncio.wait_for(self.converter.read(body, content_type), self.timeout)
            arguments = self.signature.arguments(arrays, self.limits["max_batch"])
            result = await self.batcher.predict(arguments, self.timeout)
            with self._deadline("the answer could not be written"):
                answer = await asyncio.wait_for(self.converter.write(result, content_type), self.timeout)
            return Response(answer, media_type=content_type)

    @contextmanager
    def _deadline(self, what: str) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise DeadlineError(f"{what} within {self.timeout:g} seconds") from None

    @asynccontextmanager
    async def _body_of(self, request: Request) -> AsyncIterator[bytearray]:
        """A block with the body of a request, whose bytes are held until the block ends."""
        body = bytearray()
        try:
            try:
                async with asyncio.timeout(self.timeout):
                    async for part in request.stream():
                        body += part
                        self.held_bytes += len(part)
                        self._expect_room(len(body))
            except TimeoutError:
                raise BodyLateError(f"no whole body within {self.timeout:g} seconds") from None
            yield body
        finally:
            self.held_bytes -= len(body)

    def _expect_room(self, body_bytes: int) -> None:
        if body_bytes > self.max_body:
            raise BodyTooLargeError(f"the body has more than {self.max_body} bytes")
        if self.held_bytes > self.max_bodies:
            raise BodiesFullError(f"the bodies of all requests together have more than {self.max_bodies} bytes")


class CloseAtEnd:
    """Middleware: answers of a server that is not ready any more close their connection, so that the client's next
    request goes to another server."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app = app
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_closing(message: Message) -> None:
            if message["type"] == "http.response.start" and not self.service.ready:
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
            await send(message)

        await self.app(scope, receive, send_closing)


def make_app(executable: Executable, function: str = "main", **options: Any) -> Starlette:
    """The ASGI application; its `state.service` is the Service of these options."""
    service = Service(executable, function, **options)
    routes = [
        Route("/predict", service.predict, methods=["POST"]),
        Route("/health", service.health),
        Route("/metrics", service.show_metrics),
    ]
    app = Starlette(routes=routes, middleware=[Middleware(CloseAtEnd, service=service)], lifespan=service.lifespan)
    app.router.redirect_slashes = False  # to wherever the request's host says
    app.state.service = service
    return app
