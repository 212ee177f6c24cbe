"""A server of examples/serve: in this process, by its application, and as a process on a socket."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import numpy as np
from serve.app import make_app
from serve.bodies import NPY

GENERATOR = np.random.default_rng(0)
W = GENERATOR.standard_normal((64, 24)).astype(np.float32)
LAYERS = f"""
def main(x: f32[n, 64]) -> f32[n, 24] = softmax(matmul(tanh(x), const(f32[64, 24], {W.tolist()})), axis=1)
def two(x: f32[n, m], k: i32[n]) -> (f32[n, m], i32[n]) {{ return (tanh(x), add(k, k)) }}
"""


def serving(test: Callable[[httpx.AsyncClient, Any], Awaitable[None]], *arguments: Any, **options: Any) -> None:
    """Runs `test` on a client of an application of these options, which is in the same process, and its Service."""

    async def run() -> None:
        async with client_of(*arguments, **options) as (client, service):
            await test(client, service)

    asyncio.run(asyncio.wait_for(run(), 60))


@asynccontextmanager
async def client_of(*arguments: Any, **options: Any) -> AsyncIterator[tuple[httpx.AsyncClient, Any]]:
    app = make_app(*arguments, **options)
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://here") as it:
        yield it, app.state.service


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


async def post(client: httpx.AsyncClient, content: bytes | Any, content_type: str = NPY) -> httpx.Response:
    body = content if isinstance(content, bytes) else npy(content)
    return await client.post("/predict", content=body, headers={"content-type": content_type})


async def metric(client: httpx.AsyncClient, name: str) -> float:
    """The value in the line of /metrics that begins with `name`."""
    text = (await client.get("/metrics")).text
    (line,) = (line for line in text.splitlines() if line.startswith(name + " "))
    return float(line.split()[-1])


def rows(count: int, columns: int = 64) -> np.ndarray:
    return GENERATOR.standard_normal((count, columns)).astype(np.float32)
