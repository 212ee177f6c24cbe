"""Load test on the loopback interface:   python -m serve.load MODEL --clients 16 --seconds 5 --restart

The test starts the server, and optionally restarts it.  Every answer must be bit-identical to the result of a single
machine for the same input.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import httpx
import numpy as np

from relvm import load_model
from relvm.errors import RelvmError
from serve.protocol import write_binary
from serve.signature import TensorSpec, read_signature

HEADER_LENGTH = "inference-header-content-length"
TRIES = 20
CLOSED = (httpx.NetworkError, httpx.RemoteProtocolError)  # errors raised if the server closes the connection


@dataclass
class Report:
    """The measurements of the clients.

    Attributes
    ----------
    sent, answered
        The number of requests, and the number of requests with a correct answer.
    wrong
        The number of wrong results.
    refused
        The number of answers by their status, except 200.
    lost
        The number of requests without an answer: the connection was closed during the answer, it was closed TRIES times
        before an answer, or the request timed out.
    retried
        How often a request was sent again because the connection was closed before the answer began.
    seconds
        The duration of the test.
    latencies
        The seconds of each answered request, including retries.
    """

    sent: int = 0
    answered: int = 0
    wrong: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    lost: int = 0
    retried: int = 0
    seconds: float = 0
    latencies: list[float] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether every request received its correct answer."""
        return self.sent == self.answered > 0

    def __str__(self) -> str:
        p50, p90, p99 = 1e3 * np.percentile(self.latencies or [np.nan], [50, 90, 99])
        refused = ", ".join(f"{count} of status {status}" for status, count in self.refused.items()) or "0"
        return (
            f"{self.answered / self.seconds:.0f} requests a second; ms: p50 {p50:.2f}, p90 {p90:.2f}, p99 {p99:.2f}\n"
            f"{self.sent} sent, {self.answered} answered; wrong {self.wrong}, refused {refused}, lost {self.lost},"
            f" retried {self.retried}"
        )


# ---- the server ----


def start(listener: socket.socket, model: Path, options: Sequence[str] = ()) -> subprocess.Popen:
    """Start a server process that uses an open listening socket, and return it when it is ready.

    Raise RuntimeError if the process ends.
    """
    command = [sys.executable, "-m", "serve", str(model), "--fd", str(listener.fileno()), *options]
    folder = Path(__file__).resolve().parent.parent
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, pass_fds=[listener.fileno()])
    if not server.stdout.readline().startswith("serving on"):
        server.communicate()
        raise RuntimeError(f"the server ended with status {server.returncode}")
    return server


def stop(server: subprocess.Popen) -> None:
    """Terminate a server and wait for its end.  Raise RuntimeError if its exit status is not 0."""
    server.terminate()
    if server.wait() != 0:
        raise RuntimeError(f"the server ended with status {server.returncode}")


# ---- the clients ----


@dataclass(frozen=True)
class Case:
    """A request, and the binary data of its response."""

    path: str
    headers: dict[str, str]
    body: bytes
    expected: bytes


def make_cases(path: Path, function: str = "main", rows: int = 1, count: int = 50) -> list[Case]:
    """Return requests with random inputs to a model, and the responses of a single machine.

    rows: the symbolic sizes that an input's type begins with.  Other symbolic sizes are 8.

    Raises
    ------
    OSError, RelvmError
        The model cannot be loaded, served, or run on such inputs.
    """
    model = load_model(path, function=function)
    signature = read_signature(model)
    generator, cases = np.random.default_rng(0), []
    for _ in range(count):
        arrays = [_random_input(spec, rows, generator) for spec in signature.inputs]
        arguments = [
            array.item() if spec.is_scalar else array for spec, array in zip(signature.inputs, arrays, strict=True)
        ]
        result = model(*arguments)
        outputs = result if isinstance(result, tuple) else (result,)
        parts = [write_binary(array, spec.datatype) for spec, array in zip(signature.inputs, arrays, strict=True)]
        expected = [
            write_binary(np.asarray(each, spec.dtype), spec.datatype)
            for spec, each in zip(signature.outputs, outputs, strict=True)
        ]
        cases.append(_case(path.stem, signature.inputs, arrays, parts, b"".join(expected)))
    return cases


def _case(
    name: str,
    specs: Sequence[TensorSpec],
    arrays: Sequence[np.ndarray],
    parts: Sequence[memoryview],
    expected: bytes,
) -> Case:
    inputs = [
        {**spec.metadata, "shape": list(array.shape), "parameters": {"binary_data_size": len(part)}}
        for spec, array, part in zip(specs, arrays, parts, strict=True)
    ]
    head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    path = f"/v2/models/{quote(name)}/infer"
    return Case(path, {HEADER_LENGTH: str(len(head))}, b"".join((head, *parts)), expected)


def _random_input(spec: TensorSpec, rows: int, generator: np.random.Generator) -> np.ndarray:
    """Return a random array for an input.

    Floats are normally distributed.  Integers, booleans and strings are 0 or 1.
    """
    shape = [int(size) if size.isdecimal() else 8 if axis else rows for axis, size in enumerate(spec.sizes)]
    if spec.datatype.startswith(("FP", "BF")):
        return generator.standard_normal(shape).astype(spec.dtype)
    numbers = np.asarray(generator.integers(0, 2, shape))
    return (numbers.astype(str) if spec.datatype == "BYTES" else numbers).astype(spec.dtype)


async def load(url: str, cases: list[Case], clients: int, end: asyncio.Event) -> Report:
    """Run `clients` clients and return their measurements.

    Each client sends one request after another on its own connection until `end` is set.
    """
    report, began = Report(), time.perf_counter()

    async def work(number: int) -> None:
        async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False, verify=False) as client:
            while not end.is_set():
                await _ask(client, cases[number % len(cases)], report)
                number += clients

    await asyncio.gather(*map(work, range(clients)))
    report.seconds = time.perf_counter() - began
    return report


async def _ask(client: httpx.AsyncClient, case: Case, report: Report) -> None:
    """Send a request and record the outcome.

    If the connection is closed before the answer begins, the request is sent again, up to TRIES times in total.
    """
    report.sent += 1
    began = time.perf_counter()
    try:
        for _ in range(TRIES):
            request = client.build_request("POST", case.path, content=case.body, headers=case.headers)
            try:
                response = await client.send(request, stream=True)
                break
            except CLOSED:
                report.retried += 1
        else:
            report.lost += 1
            return
        content = await response.aread()
    except httpx.TransportError:
        report.lost += 1
        return
    if response.status_code != 200:
        report.refused[response.status_code] += 1
    elif content[int(response.headers.get(HEADER_LENGTH, 0)) :] != case.expected:
        report.wrong += 1
    else:
        report.answered += 1
        report.latencies.append(time.perf_counter() - began)


async def load_servers(
    listener: socket.socket,
    model: Path,
    cases: list[Case],
    *,
    clients: int,
    seconds: float,
    restart: bool,
    options: Sequence[str] = (),
) -> Report:
    """Run the load test on one server, or with `restart` on two servers, and return the report.

    The second server takes over in the middle of the test.  Both servers listen on the same socket, so that the second
    server accepts the connections that still wait when the first one ends.
    """
    url, end = f"http://127.0.0.1:{listener.getsockname()[1]}", asyncio.Event()
    servers = [start(listener, model, options)]
    try:
        loading = asyncio.create_task(load(url, cases, clients, end))
        await asyncio.sleep(seconds / 2)
        if restart:
            servers.append(await asyncio.to_thread(start, listener, model, options))
            await asyncio.to_thread(stop, servers[0])
        await asyncio.sleep(seconds / 2)
        end.set()
        report = await loading
        await asyncio.to_thread(stop, servers[-1])
        return report
    finally:
        for server in servers:
            server.kill()
            server.communicate()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m serve.load", description="Loads a server; other options are its.")
    parser.add_argument("model", type=Path, help="a .onnx, .rvm, .relvm or .so file")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5, help="what a restart takes comes on top")
    parser.add_argument("--rows", type=int, default=1, help="of each request")
    parser.add_argument("--restart", action="store_true", help="start another server in the middle, and end the first")
    options, servers = parser.parse_known_args(arguments)
    model = options.model.resolve()
    chosen = {"clients": options.clients, "seconds": options.seconds, "restart": options.restart}
    try:
        cases = make_cases(model, rows=options.rows)
        with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
            report = asyncio.run(load_servers(listener, model, cases, **chosen, options=servers))
    except (OSError, RuntimeError, RelvmError) as error:
        print(f"serve.load: {error}", file=sys.stderr)
        return 1
    print(report)
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
