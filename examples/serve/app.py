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
    """The bodies of all unanswered requests together exceed the limit."""


class BodyLateError(Exception):
    """The body of a request did not arrive in time."""


# The HTTP status of an answer without a result.  The first row whose class fits the exception is used.
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
    """The metrics that GET /metrics reports, in a registry of their own.  max_batch: as for Batcher."""

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
    """A served model.

    Attributes
    ----------
    ready
        Whether clients should send more requests.  It becomes False at the start of the shutdown, during which requests
        are still answered.

    Parameters
    ----------
    executable, function
        The executable, and the name of the function that a request calls.  `signature.batch_signature` must accept it.
    workers
        The number of threads, each with its own machine.  None: one for each processor.
    max_batch, max_wait, max_queue
        As for Batcher.
    timeout
        The maximum time in seconds to receive a body, to convert it, to compute the result, and to convert the result.
        Each of these steps has this limit.  A request that exceeds it is answered with 504.
    max_body
        The maximum size of a body in bytes.
    max_bodies
        The maximum total size in bytes of the bodies of all unanswered requests.  A request beyond it is answered with
        503.
    max_connections
        The maximum number of connections of a LimitedProtocol.  A connection beyond it is closed immediately.

    Raises
    ------
    RelvmArgumentError
        A number is out of range.
    RelvmNameError, RelvmUnsupportedError
        The function does not exist, or its inputs and outputs are not batches.
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
        """Async context manager: serve requests during the block, and answer all accepted requests before it ends."""
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
        """Answer POST /predict: run the model on the arrays in the body.  The answer has the same content type."""
        began = time.perf_counter()
        try:
            answer = await self._predicted(request)
        except Exception as error:
            answer = self._refusal(error)
        self.metrics.requests.labels(answer.status_code).inc()
        self.metrics.seconds.observe(time.perf_counter() - began)
        return answer

    async def health(self, request: Request) -> Response:
        """Answer GET /health: 200 if the server is ready, 503 if it is shutting down or its batcher failed."""
        alive = self.batcher.alive
        ready = alive and self.ready
        return JSONResponse({"alive": alive, "ready": ready}, 200 if ready else 503)

    async def show_metrics(self, request: Request) -> Response:
        """Answer GET /metrics: the metrics in the text format of Prometheus."""
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
        """Async context manager: read and yield the body of a request.

        The bytes count towards `max_bodies` until the block ends.
        """
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
    """ASGI middleware that adds `Connection: close` to answers while the service is not ready.

    The client's next request then opens a new connection, which another server can accept.
    """

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
    """Return an ASGI application that serves a function.  Its `state.service` is the Service.

    executable, function, options: as for Service.
    """
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
