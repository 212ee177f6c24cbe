"""Helpers that run the server of examples/serve: its application in this process, or a process on a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from serve.app import make_app
from serve.protocol import write_binary
from serve.signature import DATATYPES

from relvm.numpy_dtypes import numpy_dtype
from relvm.tables import DTYPES
from relvm.vm import Executable

GENERATOR = np.random.default_rng(0)
W = GENERATOR.standard_normal((64, 24)).astype(np.float32)
LAYERS = f"""
def main(x: f32[n, 64]) -> f32[n, 24] = softmax(matmul(tanh(x), const(f32[64, 24], {W.tolist()})), axis=1)
def two(x: f32[n, m], k: i32[n]) -> (f32[n, m], i32[n]) {{ return (tanh(x), add(k, k)) }}
"""
PATH = "/v2/models/model/infer"
HEADER_LENGTH = "inference-header-content-length"
_DATATYPES = {numpy_dtype(row.index): DATATYPES[row.name] for row in DTYPES if row.name in DATATYPES}
_DTYPES = {datatype: dtype for dtype, datatype in _DATATYPES.items()}
_SECONDS = 600  # until a test that waits for something that does not happen fails


def serving(
    test: Callable[[httpx.AsyncClient, Any], Awaitable[None]],
    models: Executable | Path | Mapping[str, Executable],
    **options: Any,
) -> None:
    """Run the application in this process, and call `test` with a client of it and with its Service.

    models: a file, a folder, executables by name, or one executable, which gets the name "model".   options: settings.
    """

    async def run() -> None:
        async with client_of(models, **options) as (client, service):
            await test(client, service)

    asyncio.run(asyncio.wait_for(run(), _SECONDS))


@asynccontextmanager
async def client_of(
    models: Executable | Path | Mapping[str, Executable], **options: Any
) -> AsyncIterator[tuple[httpx.AsyncClient, Any]]:
    options = {"timeout": _SECONDS} | options
    app = make_app({"model": models} if isinstance(models, Executable) else models, **options)
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://here") as it:
        yield it, app.state.service


def tensor(name: str, array: np.ndarray, **fields: Any) -> dict[str, Any]:
    """Return the JSON of an input of a request, without its elements.  fields: further fields."""
    return {"name": name, "datatype": _DATATYPES[array.dtype], "shape": list(array.shape), **fields}


def json_body(inputs: Mapping[str, np.ndarray], **fields: Any) -> bytes:
    """Return the body of a request in JSON."""
    listed = [tensor(name, array, data=array.tolist()) for name, array in inputs.items()]
    return json.dumps({"inputs": listed, **fields}).encode()


def binary_body(inputs: Mapping[str, np.ndarray], **fields: Any) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a request with binary data for all inputs and outputs."""
    parts = {name: write_binary(array, _DATATYPES[array.dtype]) for name, array in inputs.items()}
    listed = [tensor(name, array, parameters={"binary_data_size": len(parts[name])}) for name, array in inputs.items()]
    head = json.dumps({"inputs": listed, "parameters": {"binary_data_output": True}, **fields}).encode()
    return b"".join((head, *parts.values())), {HEADER_LENGTH: str(len(head))}


async def post(client: httpx.AsyncClient, content: np.ndarray | bytes, path: str = PATH) -> httpx.Response:
    """Post a request and return the response.  content: an array, sent as the input x in binary form, or JSON."""
    if isinstance(content, bytes):
        return await client.post(path, content=content)
    body, headers = binary_body({"x": content})
    return await client.post(path, content=body, headers=headers)


def outputs(answer: httpx.Response) -> dict[str, np.ndarray]:
    """Return the outputs in a response, by name."""
    assert answer.status_code == 200, answer.text
    length = int(answer.headers.get(HEADER_LENGTH, len(answer.content)))
    found, at = {}, length
    for each in json.loads(answer.content[:length])["outputs"]:
        dtype = _DTYPES[each["datatype"]]
        if "data" in each:
            flat = np.array(each["data"], dtype)
        else:
            size = each["parameters"]["binary_data_size"]
            flat = np.frombuffer(answer.content[at : at + size], dtype)
            at += size
        found[each["name"]] = flat.reshape(each["shape"])
    assert at == len(answer.content)
    return found


def output(answer: httpx.Response) -> np.ndarray:
    """Return the only output in a response."""
    (array,) = outputs(answer).values()
    return array


async def metric(client: httpx.AsyncClient, name: str, **labels: str) -> float:
    """Return the value of a metric of the model "model" with exactly these labels."""
    text = (await client.get("/metrics")).text
    wanted = [f'{key}="{value}"' for key, value in ({"model": "model"} | labels).items()]
    lines = [line for line in text.splitlines() if line.startswith(name) and all(each in line for each in wanted)]
    lines = [line for line in lines if line[len(name)] in "{ "]
    (line,) = lines
    return float(line.split()[-1])


def rows(count: int, columns: int = 64) -> np.ndarray:
    return GENERATOR.standard_normal((count, columns)).astype(np.float32)
