"""Load test on the loopback interface:   python -m serve.load MODEL --clients 16 --seconds 5 --restart

The test starts the server, and optionally restarts it.  Every answer must be bit-identical to the result of a single
machine for the same input.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np

from relvm import vm
from relvm.errors import RelvmError, RelvmUnsupportedError
from serve.__main__ import load_executable
from serve.bodies import NPY, write_body
from serve.signature import Signature, batch_signature

TRIES = 20
CLOSED = (httpx.NetworkError, httpx.RemoteProtocolError)  # errors of a client whose connection was closed


@dataclass
class Report:
    """The measurements of all clients.

    Attributes
    ----------
    sent
        The number of requests.  A request that is sent again counts once.
    answered
        The number of requests with the expected result.
    wrong
        The number of requests with another result.
    refused
        The number of answers by HTTP status, for all statuses except 200.
    lost
        The number of requests that timed out, whose connection was closed during the answer, or whose connection was
        closed before the answer in all of TRIES attempts.
    retried
        How often a request was sent again, because the connection was closed before the answer.
    seconds
        The duration of the test.
    latencies
        The time in seconds of each request in `answered`, including repeated attempts.
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
        """Whether there were requests, and all of them got the expected result."""
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
    """Start a server process on a listening socket, and return it when it is ready.

    The socket remains open in this process.   options: other command-line options of the server.   Raise RuntimeError
    if the server ends instead.
    """
    command = [sys.executable, "-m", "serve", str(model), "--fd", str(listener.fileno()), *options]
    folder = Path(__file__).resolve().parent.parent
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, pass_fds=[listener.fileno()])
    if not server.stdout.readline().startswith("serving on"):
        server.communicate()
        raise RuntimeError(f"the server ended with status {server.returncode}")
    return server


def stop(server: subprocess.Popen) -> None:
    """Stop the server with SIGTERM, and wait for it.  Raise RuntimeError if its exit status is not 0."""
    server.terminate()
    if server.wait() != 0:
        raise RuntimeError(f"the server ended with status {server.returncode}")


# ---- the clients ----


def make_cases(executable: vm.Executable, function: str, rows: int, count: int = 50) -> list[tuple[bytes, bytes]]:
    """Return `count` pairs: the body of a request with random inputs, and the body of the expected answer.

    Raise RelvmUnsupportedError if the function cannot be served, or does not have exactly one input and one output.
    """
    signature = batch_signature(executable, function)
    if len(signature.inputs) != 1 or len(signature.outputs) != 1:
        raise RelvmUnsupportedError(f"{function}: the load test is of functions of one input and one output")
    run = vm.VirtualMachine(executable)[function]
    generator, cases = np.random.default_rng(0), []
    for _ in range(count):
        x = _random_input(signature, rows, generator)
        cases.append((write_body([x], NPY, signature), write_body([np.asarray(run(x))], NPY, signature)))
    return cases


def _random_input(signature: Signature, rows: int, generator: np.random.Generator) -> np.ndarray:
    """Return a random array for the only input.  Symbolic sizes are 8.  Integers are 0 or 1."""
    (only,) = signature.inputs
    shape = (rows, *(int(size) if size.isdecimal() else 8 for size in only.sizes))
    if only.dtype.kind == "f":
        return generator.standard_normal(shape).astype(only.dtype)
    return generator.integers(0, 2, shape).astype(only.dtype)


async def load(url: str, cases: list[tuple[bytes, bytes]], clients: int, end: asyncio.Event) -> Report:
    """Send requests until the event `end` is set, and return the measurements.

    Each of the `clients` clients has its own connection, and sends one request after another.   cases: as returned by
    `make_cases`.
    """
    report, began = Report(), time.perf_counter()

    async def work(number: int) -> None:
        async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False, verify=False) as client:
            while not end.is_set():
                await _ask(client, *cases[number % len(cases)], report)
                number += clients

    await asyncio.gather(*map(work, range(clients)))
    report.seconds = time.perf_counter() - began
    return report


async def _ask(client: httpx.AsyncClient, body: bytes, expected: bytes, report: Report) -> None:
    """Send one request and record the outcome in `report`.

    If the connection is closed before any answer, the request is sent again.
    """
    report.sent += 1
    began = time.perf_counter()
    try:
        for _ in range(TRIES):
            request = client.build_request("POST", "/predict", content=body, headers={"content-type": NPY})
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
    elif content != expected:
        report.wrong += 1
    else:
        report.answered += 1
        report.latencies.append(time.perf_counter() - began)


async def load_servers(
    listener: socket.socket,
    model: Path,
    cases: list[tuple[bytes, bytes]],
    *,
    clients: int,
    seconds: float,
    restart: bool,
    options: Sequence[str] = (),
) -> Report:
    """Run the load test against a server, and return the measurements.

    With `restart`, a second server replaces the first in the middle of the test.  Both listen on the same socket, so
    the second accepts the connections that are pending when the first ends.
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
    parser.add_argument("model", type=Path, help="a file whose function main has one input and one output")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5, help="what a restart takes comes on top")
    parser.add_argument("--rows", type=int, default=1, help="of each request")
    parser.add_argument("--restart", action="store_true", help="start another server in the middle, and end the first")
    options, servers = parser.parse_known_args(arguments)
    model = options.model.resolve()
    chosen = {"clients": options.clients, "seconds": options.seconds, "restart": options.restart}
    try:
        cases = make_cases(load_executable(model, False), "main", options.rows)
        with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
            report = asyncio.run(load_servers(listener, model, cases, **chosen, options=servers))
    except (OSError, RuntimeError, RelvmError) as error:
        print(f"serve.load: {error}", file=sys.stderr)
        return 1
    print(report)
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
