"""The application: the page, builds, and saving the program."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from relvm.data_classes import dataclass
from relvm.errors import RelvmArgumentError
from relvm.explore.live.build_request import BuildRequest
from relvm.explore.live.builder import MAX_SECONDS, Builder, BuildError
from relvm.explore.live.guard import Guard
from relvm.explore.stages.page import live_page
from relvm.explore.stages.view import Line, View
from relvm.quoting import html_data
from relvm.runtime.file_io import complete_file

MAX_BYTES = 1 << 20  # limit on the body of a request, which contains the program
_BODY_SECONDS = 10.0  # limit on the time in which the body arrives


@dataclass(frozen=True)
class Settings:
    """The program that the server explores, and the settings of the server.

    Attributes
    ----------
    start
        The program and the build options with which the server starts.
    token
        The secret that the path of each request begins with.
    port
        The port of the server.
    name
        Name of the program in the title of the page, in messages and in source locations.
    model
        Path of an ONNX model, whose text cannot be edited, or "".
    output
        The file that the button "Save" writes, or None for no such button.
    max_seconds
        Limit on the time of a build, at least 1.
    """

    start: BuildRequest
    token: str
    port: int
    name: str
    model: str = ""
    output: Path | None = None
    max_seconds: int = MAX_SECONDS


def make_app(settings: Settings) -> Starlette:
    """Return the application, which starts a process for builds, and ends it at shutdown.

    Its attribute `state.builder` is the Builder that controls the process.
    """
    live = _Endpoints(settings)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await live.builder.start()
        try:
            yield
        finally:
            await live.builder.close()

    routes = [
        Route("/", live.page),
        Route("/build", live.build, methods=["POST"]),
        Route("/run", live.run, methods=["POST"]),
        Route("/graph", live.graph, methods=["POST"]),
    ]
    if settings.output is not None:
        routes.append(Route("/save", live.save, methods=["POST"]))
    guard = Middleware(Guard, token=settings.token, port=settings.port)
    handlers = {_TooLargeError: _too_large, TimeoutError: _too_slow, RelvmArgumentError: _malformed}
    app = Starlette(routes=routes, middleware=[guard], lifespan=lifespan, exception_handlers=handlers)
    app.state.builder = live.builder
    return app


class _Endpoints:
    """The HTTP endpoints of the application.

    latest: the last build request.  If the page is reloaded, it shows the program of this request.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.latest = settings.start
        self.builder = Builder(settings.name, settings.model, settings.max_seconds)

    async def page(self, request: Request) -> Response:
        """Return the page, which shows the program.  Its script then sends a request to `build` for the stages."""
        about = "The program, which is not built yet."
        lines = tuple(map(Line, self.latest.text.splitlines()))
        given = View("given", about, 0.0, True, True, lines)
        # The text is encoded as JSON twice, because the page's data must not contain control characters.
        live = {
            "request": self.latest.to_json(),
            "isModel": bool(self.settings.model),
            "output": str(self.settings.output or ""),
            "maxBytes": MAX_BYTES,
        }
        return HTMLResponse(live_page(self.settings.name, [given], live))

    async def build(self, request: Request) -> Response:
        """Build the program in the request.  Return its stages as JSON, or its error under the key "problem"."""
        return await self._answer(request, "build")

    async def run(self, request: Request) -> Response:
        """Run the program in the request.  Return its outputs and times as JSON, or its error as `build` does."""
        return await self._answer(request, "run")

    async def graph(self, request: Request) -> Response:
        """Build the program in the request.  Return the page of its graph as JSON, or its error as `build` does."""
        return await self._answer(request, "graph")

    async def _answer(self, request: Request, action: str) -> Response:
        self.latest = build_request = BuildRequest.from_json(await _read_body(request))
        started = time.perf_counter()
        try:
            answer = await self.builder.build(build_request, request.is_disconnected, action)
        except BuildError as error:
            return _problem(str(error), 200)
        if answer is None:
            return Response(status_code=204)  # the client has gone away
        milliseconds = f"{(time.perf_counter() - started) * 1000:.0f}"
        return Response(answer, media_type="application/json", headers={"x-build-milliseconds": milliseconds})

    async def save(self, request: Request) -> Response:
        """Write the program in the request to the file `Settings.output`."""
        assert self.settings.output is not None
        build_request = BuildRequest.from_json(await _read_body(request))
        try:
            with complete_file(self.settings.output) as partial:
                partial.write_text(build_request.text, encoding="utf-8", newline="")
        except OSError as error:
            return _problem(f"{self.settings.output} was not written: {error.strerror}", 500)
        return JSONResponse({"saved": str(self.settings.output)})


class _TooLargeError(Exception):
    """Raised if the body of a request exceeds MAX_BYTES."""


async def _read_body(request: Request) -> bytes:
    """Return the body of a request.

    Raise _TooLargeError as soon as it exceeds MAX_BYTES, and TimeoutError if it does not arrive in time.
    """
    body = bytearray()
    async with asyncio.timeout(_BODY_SECONDS):
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BYTES:
                raise _TooLargeError
    return bytes(body)


def _too_large(request: Request, error: Exception) -> Response:
    return _problem(f"the program is too large: expected at most {MAX_BYTES} bytes", 413)


def _too_slow(request: Request, error: Exception) -> Response:
    return _problem(f"the program did not arrive within {_BODY_SECONDS:g} seconds", 408)


def _malformed(request: Request, error: Exception) -> Response:
    return _problem(str(error), 400)


def _problem(message: str, status: int) -> Response:
    text = html_data({"problem": {"message": message}})
    return Response(text, status, media_type="application/json")
