"""Fuzz tests of the server example: each damaged request soon gets an answer with a status listed in the README.

One test calls the application.  The other one passes bytes to the HTTP protocol that examples/serve uses.
"""

from __future__ import annotations

import asyncio
import logging
import re
import resource
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import Any

import pytest
import uvicorn
from limits import at_most, rounds
from request_mutations import Request, mutated, pieces, right_request, unchanged, written
from serve.app import make_app
from serve.connections import LimitedProtocol
from serve.signature import Signature
from uvicorn.server import ServerState

from relvm import vm
from relvm.frontend.text.parser import parse_module

DOCUMENTED = {200, 400, 404, 405, 413, 415}  # without 503 and 504, which a single request should not get
SERVED = {
    "one": "def one(x: f32[n, 3]) -> f32[n, 3] = relu(x)",
    "two": "def two(x: f32[n, m], k: i32[n]) -> (f32[n, m], i32[n]) { return (tanh(x), add(k, k)) }",
    "dtypes": "def dtypes(a: bool[n], b: i8[n], c: u8[n, m], d: i64[n], e: u64[n], f: f16[n], g: f64[n, 2])"
    " -> f64[n, 2] = relu(g)",
    "others": "def others(a: f32[], b: i64, c: bool, d: f64, e: str[n], f: bf16[n, m])"
    " -> (i64, bool, str[n], bf16[n, m]) { return (b, c, e, f) }",
}
MORE_BYTES = 300 << 20  # limit on the growth of the process's peak memory


class Transport(asyncio.Transport):
    """A connection in memory.  It records the bytes that the server sends and whether the server has paused reading."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.sent, self.closed, self.paused = bytearray(), False, False

    def write(self, data: bytes) -> None:
        if not self.closed:
            self.sent += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


async def call(app: Any, request: Request, random: Random) -> list[int]:
    """Call the application and return the statuses of its answers.

    The list is empty if the client disconnects before the answer.
    """
    path, _, query = request.target.partition("?")
    headers = [
        (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace"))
        for name, value in request.headers
    ]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "headers": headers,
    }
    scope |= {
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "scheme": "http",
        "root_path": "",
    }
    scope |= {"server": ("here", 80), "client": ("127.0.0.1", 1)}
    parts = pieces(request.body, random)
    is_left = random.random() < 0.05  # the client disconnects before it has sent the whole body
    events = [{"type": "http.request", "body": part, "more_body": is_left or part is not parts[-1]} for part in parts]
    waiting, statuses = iter(events), []

    async def receive() -> dict[str, Any]:
        return next(waiting, {"type": "http.disconnect"})

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    task = asyncio.create_task(app(scope, receive, send))
    if random.random() < 0.02:  # as if the server were shut down
        await asyncio.sleep(random.choice((0, 0.001)))
        task.cancel()
        await asyncio.wait([task])
        return statuses
    await task
    return statuses


async def connect(app: Any, request: Request, random: Random) -> list[int]:
    """Send one or several requests over a connection, and return the statuses of the answers."""
    data = b"".join(written(request, random) for _ in range(random.choice((1, 1, 1, 2, 5))))
    return await send(app, pieces(data, random), is_lost=random.random() < 0.02)


async def send(app: Any, parts: list[bytes], is_lost: bool = False) -> list[int]:
    """Send `parts` over a connection, and return the statuses of the answers.

    is_lost: whether the connection is closed without waiting for an answer.
    """
    state = ServerState()
    protocol = LimitedProtocol(app.state.config, state, {})
    transport = Transport()
    protocol.connection_made(transport)
    for part in filter(None, parts):
        while transport.paused and state.tasks and not transport.closed:
            await asyncio.sleep(0.0005)
        if transport.closed or transport.paused:
            break
        protocol.data_received(part)
    while state.tasks and not is_lost:
        is_lost = "SEND_BODY" in str(protocol.conn.their_state)  # the request is incomplete
        await asyncio.wait(state.tasks, timeout=0.002 if is_lost else 30)
    protocol.connection_lost(None)
    if state.tasks:
        _, left = await asyncio.wait(state.tasks, timeout=600)
        assert not left, "a request goes on whose client is gone"
    return [int(status) for status in re.findall(rb"HTTP/1\.1 ([2-5]\d\d) [A-Za-z -]*\r\n", transport.sent)]


class Failures(logging.Handler):
    """A log handler that collects the errors that the server logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(self.format(record))


@asynccontextmanager
async def applications() -> AsyncIterator[list[Any]]:
    executable = vm.build(parse_module("\n".join(SERVED.values())), target="numpy")
    async with AsyncExitStack() as stack:
        apps = []
        for function in SERVED:
            batch = 1 if function == "others" else 5
            app = make_app({"model": executable}, function=function, workers=1, max_batch=batch, max_wait=0)
            app.state.config = uvicorn.Config(app, http=LimitedProtocol, log_config=None, access_log=False)
            app.state.config.load()
            await stack.enter_async_context(app.router.lifespan_context(app))
            apps.append(app)
        yield apps


async def expect_healthy(app: Any) -> None:
    service = app.state.service
    health = b"GET /v2/health/ready HTTP/1.1\r\nhost: here\r\n\r\n"
    right = unchanged(right_request(signature_of(app), Random(1)))
    assert await send(app, [health, right, health, right]) == [200] * 4
    assert service.bodies.held_bytes == 0 and not service.repository.find("model", None).batcher.waiting


def signature_of(app: Any) -> Signature:
    return app.state.service.repository.find("model", None).signature


@pytest.mark.parametrize("take", [call, connect])
def test_changed_requests(take: Callable[[Any, Request, Random], Awaitable[list[int]]]) -> None:
    came: Counter[int] = Counter()
    failures = Failures()
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "serve", "asyncio")]

    async def run() -> None:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + MORE_BYTES
        async with applications() as apps:
            for seed, random in rounds(300):
                app = random.choice(apps)
                request = mutated(signature_of(app), random)
                try:
                    with at_most(100):
                        statuses = await take(app, request, random)
                    came.update(statuses)
                    assert set(statuses) <= DOCUMENTED, statuses
                    assert not failures.found, failures.found[0]
                    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < most
                    if seed % 100 == 0:
                        await expect_healthy(app)
                except BaseException as error:
                    error.add_note(f"seed {seed}; the request is {str(request)[:3000]}")
                    raise

    for logger in loggers:
        logger.addHandler(failures)
        logger.setLevel(logging.ERROR)
    try:
        asyncio.run(run())
    finally:
        for logger in loggers:
            logger.removeHandler(failures)
            logger.setLevel(logging.NOTSET)
    print(came.total(), dict(came))
    assert min(came[200], came[400], came[404]) > 0, came
