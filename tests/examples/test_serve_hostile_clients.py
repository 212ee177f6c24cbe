"""Tests of examples/serve with slow, greedy or malicious clients, on real sockets."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import re
import select
import socket
import subprocess
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from serve.load import start
from serve.protocol import read_request
from serve.signature import read_signature
from serving import HEADER_LENGTH, PATH, binary_body, json_body, outputs, post, rows, serving

from relvm import vm
from relvm.errors import RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.model import Model


@pytest.fixture
def serve(model: Path, listener: socket.socket) -> Iterator[Callable[..., subprocess.Popen]]:
    """Return a function that starts a server process on the listening socket with the given options."""
    servers: list[subprocess.Popen] = []

    def started(*options: str, of: Path = model) -> subprocess.Popen:
        servers.append(start(listener, of, options))
        return servers[-1]

    yield started
    for server in servers:
        server.kill()
        server.communicate()


def connected(listener: socket.socket, sent: bytes) -> socket.socket:
    connection = socket.create_connection(listener.getsockname(), timeout=600)
    connection.sendall(sent)
    return connection


def head(length: int, *headers: str) -> bytes:
    lines = (f"POST {PATH} HTTP/1.1", "host: here", f"content-length: {length}", *headers)
    return "\r\n".join((*lines, "", "")).encode()


def binary_request(x: np.ndarray) -> bytes:
    body, headers = binary_body({"x": x})
    return head(len(body), f"{HEADER_LENGTH}: {headers[HEADER_LENGTH]}") + body


def received(connection: socket.socket) -> bytes:
    """Receive data until the server closes the connection, and return it."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:  # the server had not read all sent data
        pass
    return b"".join(parts)


def is_healthy(listener: socket.socket) -> bool:
    with connected(listener, b"GET /v2/health/ready HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n") as connection:
        return received(connection).startswith(b"HTTP/1.1 200")


def test_a_server_answers_while_it_reads_large_json(serve: Callable, listener: socket.socket) -> None:
    serve("--timeout", "60")
    shape = b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 64], '
    body = shape + b'"data": [' + b"0.5, " * 6_000_000 + b"0.5]}]}"
    answered = threading.Event()
    with connected(listener, head(len(body)) + body[:-1]) as connection:
        assert is_healthy(listener)

        def wait() -> None:
            assert connection.recv(4096).startswith(b"HTTP/1.1 400")
            answered.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        connection.sendall(body[-1:])
        count = 0
        while not answered.is_set():
            assert is_healthy(listener)
            count += not answered.is_set()
        waiting.join()
    assert count >= 5


def test_all_bodies_together_are_bounded(serve: Callable, listener: socket.socket) -> None:
    server = serve("--timeout", "60", "--max-bodies-mb", "64")
    half = b" " * (15 << 20)
    connections, refused = [], 0
    for _ in range(12):
        connection = connected(listener, head(30 << 20))
        try:
            connection.sendall(half)
        except (BrokenPipeError, ConnectionResetError):
            refused += 1
        connections.append(connection)
    assert is_healthy(listener)
    refused += sum(is_refused(connection) for connection in connections[4:])
    assert refused >= 7, refused
    peak = next(line for line in Path(f"/proc/{server.pid}/status").read_text().splitlines() if "VmHWM" in line)
    assert int(peak.split()[1]) < 500_000
    for connection in connections:
        connection.close()
    for _ in range(100):
        if answers_one(listener):
            break
    else:
        raise AssertionError("the room of bodies is not given back")


def is_refused(connection: socket.socket) -> bool:
    connection.settimeout(0.5)
    try:
        answer = connection.recv(4096)
    except ConnectionResetError:
        return False  # the rejection was counted when data was sent
    except TimeoutError:
        return False
    return answer.startswith(b"HTTP/1.1 503")


def answers_one(listener: socket.socket) -> bool:
    with connected(listener, binary_request(rows(1))) as connection:
        return connection.recv(4096).startswith(b"HTTP/1.1 200")


GET = b"GET /v2/health/ready HTTP/1.1\r\nhost: here\r\n"
HALVES = {
    "nothing": b"",
    "half a head": b"GET /v2/health/ready HTTP/1.1\r\nhost: he",
    "half a second head": GET + b"\r\nGET /v2/health/ready HTT",
    "half a body": head(100) + b'{"inputs": ',
    "half a body to an endpoint that takes none": GET + b"content-length: 9\r\n\r\n12",
}


def test_what_is_half_sent_is_closed(serve: Callable, listener: socket.socket) -> None:
    serve("--timeout", "1")
    with ExitStack() as stack:
        opened = {name: stack.enter_context(connected(listener, sent)) for name, sent in HALVES.items()}
        got = {name: received(connection) for name, connection in opened.items()}
    assert got["nothing"] == got["half a head"] == b""
    assert got["half a body"].startswith(b"HTTP/1.1 504") and b"connection: close" in got["half a body"].lower()
    assert got["half a second head"].count(b"HTTP/1.1 200") == 1
    assert is_healthy(listener)


def test_a_head_that_drips_is_closed(serve: Callable, listener: socket.socket) -> None:
    serve("--timeout", "1")
    with (
        connected(listener, b"GET /v2/health/ready HTTP/1.1\r\n") as connection,
        pytest.raises((BrokenPipeError, ConnectionResetError)),
    ):
        for number in range(600):
            connection.sendall(f"x-{number}: 1\r\n".encode())
            time.sleep(0.1)
    assert is_healthy(listener)


def test_a_client_that_does_not_read_its_answer_is_left(
    serve: Callable, listener: socket.socket, tmp_path: Path
) -> None:
    vm.build(parse_module("def main(x: f32[n, m]) -> f32[n, m] = relu(x)"), target="numpy").save(tmp_path / "model.rvm")
    serve("--timeout", "1", of=tmp_path / "model.rvm")
    with connected(listener, binary_request(np.zeros((1, 8 << 20), np.float32))) as connection:
        poller = select.poll()
        poller.register(connection, 0)  # reports only a reset
        assert poller.poll(60_000)
    assert is_healthy(listener)


def test_the_process_for_large_json_is_replaced(layers: vm.Executable) -> None:
    values = np.full((400, 64), 0.125, np.float32)
    body = json_body({"x": values})
    assert len(body) > 1 << 16
    before = set(multiprocessing.active_children())

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        async with asyncio.timeout(50):
            first = await post(client, body)
            (process,) = set(multiprocessing.active_children()) - before
            process.kill()
            while (answer := await post(client, body)).status_code == 503:
                assert answer.json()["error"] == "the process that reads and writes large JSON has ended"
        small = outputs(await post(client, json_body({"x": values[:1]})))["output_0"]
        assert outputs(first)["output_0"].tolist() == outputs(answer)["output_0"].tolist() == small.tolist() * 400
        assert service.bodies.held_bytes == 0

    serving(test, layers)
    assert set(multiprocessing.active_children()) <= before


def test_work_that_a_broken_process_pool_loses_is_answered(layers: vm.Executable) -> None:
    body = json_body({"x": np.zeros((400, 64), np.float32)})

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        assert (await post(client, body)).status_code == 200
        pool = service.converter._process
        submit = pool.submit

        def submit_while_the_pool_breaks(*work: Any) -> Future:
            pool.submit = submit
            (process,) = pool._processes.values()
            process.kill()
            while not pool._broken:
                time.sleep(0.01)
            return Future()

        pool.submit = submit_while_the_pool_breaks
        answer = await post(client, body)
        assert (answer.status_code, (await post(client, body)).status_code) == (503, 200)

    serving(test, layers)


def test_text_in_json_takes_no_more_room_than_it_has_bytes(layers: vm.Executable) -> None:
    """NumPy would convert each number to a string as long as the longest text."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 64], "data": ["a" * 30_000, *range(7_000)]}
    body = json.dumps({"inputs": [tensor]}).encode()
    signature = read_signature(Model(layers))
    tracemalloc.start()
    with pytest.raises(RelvmTypeError, match="expected elements of FP32, got strings"):
        read_request(body, signature)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


CHUNKED = b"host: here\r\ntransfer-encoding: chunked\r\n\r\n"
MALFORMED = {
    "no HTTP": (b"\x16\x03\x01\x02\0\r\n\r\n", b"400"),
    "a chunk without length": (b"POST /v2/models/model/infer HTTP/1.1\r\n" + CHUNKED + b"zz\r\n", b"400"),
    "a chunk after the answer": (b"GET /v2/health/ready HTTP/1.1\r\n" + CHUNKED + b"1\r\nx\r\n", b"200"),
    "a body to HEAD": (b"HEAD /v2/health/ready HTTP/1.1\r\n" + CHUNKED + b"zz\r\n", b"400"),
}


def test_a_malformed_request_is_answered_once_and_logs_no_failure(
    serve: Callable, listener: socket.socket, capfd: pytest.CaptureFixture
) -> None:
    server = serve()
    for name, (sent, status) in MALFORMED.items():
        with connected(listener, sent) as connection:
            first = connection.recv(4096)
            if status == b"200":
                connection.sendall(b"zz\r\n")
            answer = first + received(connection)
        assert answer.startswith(b"HTTP/1.1 " + status) and answer.count(b"HTTP/1.1") == 1, (name, answer)
    assert is_healthy(listener)
    server.terminate()
    server.wait()
    logged = capfd.readouterr().err
    assert "Traceback" not in logged and "rror" not in logged, logged


def test_requests_on_one_connection_are_answered_in_order(serve: Callable, listener: socket.socket) -> None:
    """This includes pipelined requests, and requests after an invalid one."""
    serve()
    wrong = head(2) + b"{}"
    with connected(listener, binary_request(rows(1)) + wrong + GET + b"\r\n" + binary_request(rows(2))) as connection:
        connection.sendall(GET + b"connection: close\r\n\r\n")
        answer = received(connection)
    assert re.findall(rb"HTTP/1\.1 (\d+)", answer) == [b"200", b"400", b"200", b"200", b"200"]


def test_connections_are_bounded(serve: Callable, listener: socket.socket) -> None:
    serve("--max-connections", "3")
    with ExitStack() as stack:
        opened = [stack.enter_context(connected(listener, b"")) for _ in range(3)]
        time.sleep(0.5)
        for _ in range(20):
            with suppress(ConnectionResetError), connected(listener, b"") as more:
                assert received(more) == b""
        opened[0].sendall(b"GET /v2/health/ready HTTP/1.1\r\nhost: here\r\n\r\n")
        assert opened[0].recv(4096).startswith(b"HTTP/1.1 200")
    for _ in range(100):
        with suppress(ConnectionResetError):
            if is_healthy(listener):
                return
        time.sleep(0.1)
    raise AssertionError("the room of connections is not given back")


def test_a_refusal_has_only_the_beginning_of_what_was_sent(layers: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        for size in (50_000, 500_000):
            answer = await post(client, json_body({"y" * size: rows(1)}))
            assert answer.status_code == 400 and len(answer.content) < 2_000

    serving(test, layers)
