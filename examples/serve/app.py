"""The endpoints of the Open Inference Protocol, and GET /metrics."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import relvm
from relvm.errors import RelvmError, RelvmFormatError, RelvmMemoryError, RelvmTimeoutError
from relvm.vm import Executable
from serve.batching import DeadlineError, QueueFullError
from serve.bodies import (
    Bodies,
    BodiesFullError,
    BodyLateError,
    BodyTooLargeError,
    Hold,
    PartsResponse,
    UnsupportedEncodingError,
)
from serve.conversion import ConversionError, Converter
from serve.protocol import InferRequest, read_json, write_response
from serve.repository import LoadError, ModelUnavailableError, Repository, ServedModel, UnknownModelError
from serve.settings import Settings

# The status of a failed request, by the class of the error.  The first matching class counts.
STATUS: dict[type[Exception], int] = {
    ClientDisconnect: 400,  # not received by the client
    LoadError: 400,
    UnknownModelError: 404,
    BodyTooLargeError: 413,
    UnsupportedEncodingError: 415,
    ModelUnavailableError: 503,
    QueueFullError: 503,
    BodiesFullError: 503,
    ConversionError: 503,
    BodyLateError: 504,
    DeadlineError: 504,
    RelvmMemoryError: 413,
    RelvmTimeoutError: 504,
    RelvmError: 400,
    MemoryError: 503,
    Exception: 500,
}
_TEMPORARY = (QueueFullError, BodiesFullError, ConversionError, MemoryError)
_BODY_REMAINS = (BodyTooLargeError, BodiesFullError, BodyLateError, UnsupportedEncodingError)
_HEADER_LENGTH = "inference-header-content-length"
_BUCKETS = [2**k for k in range(11)]


class Metrics:
    """The metrics that GET /metrics shows."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        model, of = ["model", "version"], {"registry": self.registry}
        self.requests = Counter("relvm_requests", "Inference requests by status.", [*model, "status"], **of)
        self.errors = Counter("relvm_errors", "Requests that failed, by the class of the error.", ["kind"], **of)
        self.batches = Histogram("relvm_batch_rows", "Rows of the batches that ran.", model, buckets=_BUCKETS, **of)
        self.queue = Gauge("relvm_queue_length", "Requests that wait for a worker.", model, **of)
        self.seconds = Histogram("relvm_request_seconds", "From a request's head to its answer.", model, **of)


class Service:
    """The models of a server, and its endpoints.

    Parameters
    ----------
    models
        A file, a folder, or executables by the names of the models.
    settings
        The settings.

    Attributes
    ----------
    ready
        Whether the server wants more requests.  False from the start of the shutdown; late requests are still answered.
    """

    def __init__(self, models: Path | Mapping[str, Executable], settings: Settings) -> None:
        self.timeout = settings.timeout
        self.max_connections = settings.max_connections
        self.max_body = settings.max_body
        self.control = settings.control
        self.bodies = Bodies(settings)
        self.converter = Converter()
        self.metrics = Metrics()
        self.repository = Repository(models, settings, self._count_batch)
        self.repository.load_all()
        self.ready = False

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Serve requests within the block.  At the end of the block, wait until all accepted requests are answered."""
        self.repository.start()
        self.ready = True
        yield
        self.ready = False
        await self.repository.close()
        await self.converter.close()

    # ---- health and metadata ----

    @property
    def is_alive(self) -> bool:
        """Whether all models can run requests.  False after an internal error has stopped the batches of a model."""
        return all(model.batcher.alive for model in self.repository.served)

    async def live(self, request: Request) -> Response:
        """Answer whether the server works."""
        return JSONResponse({"live": self.is_alive}, 200 if self.is_alive else 503)

    async def server_ready(self, request: Request) -> Response:
        """Answer whether the server accepts requests.  This is false during shutdown."""
        ready = self.is_alive and self.ready
        return JSONResponse({"ready": ready}, 200 if ready else 503)

    async def server_metadata(self, request: Request) -> Response:
        """Answer with the name, version and extensions of the server."""
        extensions = ["binary_tensor_data", *(["model_repository"] if self.control else [])]
        return JSONResponse({"name": "relvm", "version": relvm.__version__, "extensions": extensions})

    async def model_metadata(self, request: Request) -> Response:
        """Answer with the inputs and outputs of a model."""
        model = self._model(request)
        return JSONResponse({**model.metadata, "versions": self.repository.versions(model.name)})

    async def model_ready(self, request: Request) -> Response:
        """Answer whether a model is loaded."""
        model = self._model(request)
        ready = self.ready and model.batcher.alive
        return JSONResponse({"name": model.name, "ready": ready}, 200 if ready else 503)

    async def show_metrics(self, request: Request) -> Response:
        """Answer with the metrics in the text format of Prometheus."""
        for model in self.repository.served:
            self.metrics.queue.labels(model.name, model.version).set(len(model.batcher.waiting))
        return Response(generate_latest(self.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    # ---- the repository ----

    async def index(self, request: Request) -> Response:
        """Answer with all models and their states."""
        found = await self._parameters(request)
        rows = await self.repository.index()
        only_ready = found.get("ready", False)
        if not isinstance(only_ready, bool):
            raise RelvmFormatError("ready: expected true or false")
        return JSONResponse([row for row in rows if row["state"] == "READY" or not only_ready])

    async def load(self, request: Request) -> Response:
        """Load a model, or load it again."""
        found = await self._parameters(request)
        if found.get("parameters"):
            raise RelvmFormatError("parameters: this server loads models only as they are in its folder")
        await self.repository.load(request.path_params["name"])
        return JSONResponse({})

    async def unload(self, request: Request) -> Response:
        """Unload a model."""
        await self._parameters(request)
        await self.repository.unload(request.path_params["name"])
        return JSONResponse({})

    async def _parameters(self, request: Request) -> dict[str, Any]:
        hold = self.bodies.hold()
        try:
            body = await self.bodies.read(request, hold)
            return read_json(body) if body else {}
        finally:
            hold.release()

    # ---- inference ----

    async def infer(self, request: Request) -> Response:
        """Answer with the outputs of a model for the inputs in the body."""
        began = time.perf_counter()
        labels = ("", "")
        try:
            model = self._model(request)
            labels = (model.name, model.version)
            with model.in_use():
                answer = await self._inferred(model, request)
        except Exception as error:
            answer = self.refusal(error)
        self.metrics.requests.labels(*labels, answer.status_code).inc()
        self.metrics.seconds.labels(*labels).observe(time.perf_counter() - began)
        return answer

    async def _inferred(self, model: ServedModel, request: Request) -> Response:
        hold = self.bodies.hold()
        try:
            inferred, result = await self._run(model, request, hold)
            hold.release()
            return await self._response(model, inferred, result, hold)
        except BaseException:
            hold.release()
            raise

    async def _run(self, model: ServedModel, request: Request, hold: Hold) -> tuple[InferRequest, tuple[Any, ...]]:
        json_bytes = _header_length(request)
        body = await self.bodies.read(request, hold, json_bytes or 0)
        if json_bytes is None:
            json_bytes = len(body)
        if json_bytes > len(body):
            raise RelvmFormatError(f"{_HEADER_LENGTH}: expected at most {len(body)}, the length of the body")
        async with self._deadline("the body could not be read"):
            inferred, arrays = await self.converter.read(body, json_bytes, model.signature)
        timeout = min(self.timeout, inferred.timeout or self.timeout)
        return inferred, await model.predict(model.signature.arguments(arrays), timeout)

    async def _response(
        self, model: ServedModel, inferred: InferRequest, result: tuple[Any, ...], hold: Hold
    ) -> Response:
        found = dict(zip((each.name for each in model.signature.outputs), result, strict=True))
        specs = {each.name: each for each in model.signature.outputs}
        contents = []
        for name, is_binary in inferred.outputs.items():
            spec = specs[name]
            if spec.datatype == "BYTES":  # each string becomes an object
                array = await asyncio.to_thread(np.asarray, found[name], spec.dtype)
            else:
                array = np.asarray(found[name], spec.dtype)
            hold.add(array.nbytes)
            if not is_binary and array.nbytes > self.max_body:
                raise RelvmFormatError(f"output {name} has {array.nbytes} bytes: too many for JSON; set binary_data")
            async with self._deadline("the response could not be written"):
                content = await self.converter.write(spec, array, is_binary)
            if not is_binary or spec.datatype == "BYTES":  # `content` does not share the memory of the array
                hold.add(len(content))
            contents.append((spec, array.shape, content))
        parts = write_response(model.name, model.version, inferred.id, contents)
        headers = {"content-type": "application/json"}
        if any(inferred.outputs.values()):
            headers = {"content-type": "application/octet-stream", _HEADER_LENGTH: str(len(parts[0]))}
        return PartsResponse(parts, headers, hold)

    def _model(self, request: Request) -> ServedModel:
        return self.repository.find(request.path_params["name"], request.path_params.get("version"))

    @asynccontextmanager
    async def _deadline(self, what: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.timeout):
                yield
        except TimeoutError:
            raise DeadlineError(f"{what} within {self.timeout:g} seconds") from None

    # ---- errors ----

    def refusal(self, error: Exception) -> Response:
        """Return the answer to a failed request."""
        status = next(status for kind, status in STATUS.items() if isinstance(error, kind))
        message = str(error)
        if status == 500:
            logging.getLogger("serve").error("a request failed", exc_info=error)
            message = "internal error; the log of the server has the details"
        self.metrics.errors.labels(type(error).__name__).inc()
        headers = {"Retry-After": "1"} if isinstance(error, _TEMPORARY) else {}
        if isinstance(error, _BODY_REMAINS):
            headers["Connection"] = "close"  # do not wait for the rest of the body
        message = message.encode(errors="backslashreplace").decode()  # names from JSON can contain lone surrogates
        return JSONResponse({"error": message}, status, headers)

    def endpoint(self, handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """Return a version of `handle` that converts errors to answers."""

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except Exception as error:
                return self.refusal(error)

        return answer

    def _count_batch(self, name: str, version: str, rows: int) -> None:
        self.metrics.batches.labels(name, version).observe(rows)


def _header_length(request: Request) -> int | None:
    text = request.headers.get(_HEADER_LENGTH)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise RelvmFormatError(f"{_HEADER_LENGTH}: expected the length of the JSON in bytes, got {text[:100]!r}")
    return int(text)


class CloseAtEnd:
    """Middleware that makes every response during the shutdown close its connection.

    The next request of the client then goes to another server.
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


async def _http_error(request: Request, error: Exception) -> Response:
    """Return the answer to an unknown path or method."""
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path}: {error.detail}"[:500]
    message = message.encode(errors="backslashreplace").decode()
    return JSONResponse({"error": message}, error.status_code, error.headers)


def make_app(models: Path | Mapping[str, Executable], **settings: Any) -> Starlette:
    """Return the ASGI application.  Its `state.service` is the Service.

    Parameters
    ----------
    models
        A file, a folder, or executables by the names of the models.
    **settings
        The attributes of Settings.
    """
    service = Service(models, Settings(**settings))
    gets = {
        "/v2": service.server_metadata,
        "/v2/health/live": service.live,
        "/v2/health/ready": service.server_ready,
        "/v2/models/{name}": service.model_metadata,
        "/v2/models/{name}/ready": service.model_ready,
        "/v2/models/{name}/versions/{version}": service.model_metadata,
        "/v2/models/{name}/versions/{version}/ready": service.model_ready,
        "/metrics": service.show_metrics,
    }
    posts = {
        "/v2/models/{name}/infer": service.infer,
        "/v2/models/{name}/versions/{version}/infer": service.infer,
        "/v2/repository/index": service.index,
    }
    if service.control:
        posts["/v2/repository/models/{name}/load"] = service.load
        posts["/v2/repository/models/{name}/unload"] = service.unload
    routes = [Route(path, service.endpoint(handle)) for path, handle in gets.items()]
    routes += [Route(path, service.endpoint(handle), methods=["POST"]) for path, handle in posts.items()]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(CloseAtEnd, service=service)],
        lifespan=service.lifespan,
        exception_handlers={HTTPException: _http_error},
    )
    app.router.redirect_slashes = False  # would redirect to any host named in the request
    app.state.service = service
    return app
