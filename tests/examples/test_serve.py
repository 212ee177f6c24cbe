"""examples/serve: requests in batches give what a machine gives, bad ones fail alone, and none is lost at the end."""

from __future__ import annotations

import asyncio
import io
import json
import multiprocessing
import select
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnx
import pytest
from modes import MODES
from serve.__main__ import listen
from serve.__main__ import main as serve_main
from serve.app import STATUS, make_app
from serve.bodies import JSON, NPY, read_body
from serve.load import TRIES, Report, load, load_servers, make_cases, start
from serve.load import main as load_main
from serve.signature import batch_signature
from starlette.requests import Request

from relvm import vm
from relvm.errors import RelvmArgumentError, RelvmNameError, RelvmTypeError, RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx
from relvm.frontend.text import parse_module

ROOT = Path(__file__).resolve().parent.parent.parent
GENERATOR = np.random.default_rng(0)
W = GENERATOR.standard_normal((64, 24)).astype(np.float32)
LAYERS = f"""
def main(x: f32[n, 64]) -> f32[n, 24] = softmax(matmul(tanh(x), const(f32[64, 24], {W.tolist()})), axis=1)
def two(x: f32[n, m], k: i32[n]) -> (f32[n, m], i32[n]) {{ return (tanh(x), add(k, k)) }}
"""
CHECKED = 'def main(x: f32[n, 2]) => f32[n, 2] { return packed("test.serve", x) : f32[n, 2] }'


@pytest.fixture(scope="module", params=MODES)
def layers(request: pytest.FixtureRequest) -> vm.Executable:
    return vm.build(parse_module(LAYERS), request.param)


@pytest.fixture
def packed() -> Iterator[Callable[[Callable], vm.Executable]]:
    """An executable whose runs call a function."""

    def calling(function: Callable) -> vm.Executable:
        vm.register_func("test.serve", lambda x: function(x.numpy()), override=True)
        return vm.build(parse_module(CHECKED), target="numpy")

    yield calling
    vm.unregister_func("test.serve")


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


# ---- results ----


def test_results_in_batches_are_those_of_one_machine_bit_for_bit(layers: vm.Executable) -> None:
    inputs = [rows(1 + k % 5) for k in range(60)]
    one = vm.VirtualMachine(layers)["main"]
    expected = [one(x).numpy().tobytes() for x in inputs]

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        answers = await asyncio.gather(*(post(client, x) for x in inputs))
        assert [each.status_code for each in answers] == [200] * 60
        assert [np.load(io.BytesIO(each.content)).tobytes() for each in answers] == expected
        assert await metric(client, "relvm_batch_rows_sum") == sum(map(len, inputs))
        assert await metric(client, "relvm_batch_rows_count") < 30
        assert await metric(client, 'relvm_batch_rows_bucket{le="16.0"}') == await metric(
            client, "relvm_batch_rows_count"
        )

    serving(test, layers, workers=2, max_batch=16, max_wait=0.2)


def layer(name: str) -> onnx.ModelProto:
    """A model with one of the layers whose kernels take several rows of the batch at a time."""
    constants = {"wide": rows(12, 20), "steps": rows(60, 12)[None], "states": rows(60, 15)[None]}
    constants |= {"windows": GENERATOR.standard_normal((5, 3, 3, 3)).astype(np.float32), "axis": np.array([0])}
    make = onnx.helper.make_node
    nodes, inputs, output = {
        "product": ([make("MatMul", ["x", "wide"], ["y"])], [12], [20]),
        "convolution": ([make("Conv", ["x", "windows"], ["y"])], [3, 9, 10], [5, 7, 8]),
        "recurrent": (
            [
                make("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
                make("LSTM", ["t", "steps", "states"], ["", "h"], hidden_size=15),
                make("Squeeze", ["h", "axis"], ["y"]),
            ],
            [6, 12],
            [15],
        ),
        "attention": (
            [
                make("MatMul", ["x", "wide"], ["q"]),
                make("Transpose", ["q"], ["k"], perm=[0, 2, 1]),
                make("MatMul", ["q", "k"], ["scores"]),
                make("Softmax", ["scores"], ["p"]),
                make("MatMul", ["p", "q"], ["y"]),
            ],
            [25, 12],
            [25, 20],
        ),
    }[name]
    used = {each for node in nodes for each in node.input}
    weights = [onnx.numpy_helper.from_array(array, key) for key, array in constants.items() if key in used]
    ends = [
        onnx.helper.make_tensor_value_info(key, onnx.TensorProto.FLOAT, ["n", *sizes])
        for key, sizes in (("x", inputs), ("y", output))
    ]
    graph = onnx.helper.make_graph(nodes, name, ends[:1], ends[1:], weights)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["product", "convolution", "recurrent", "attention"])
def test_the_bits_of_a_row_do_not_depend_on_the_batch(name: str, mode: str) -> None:
    executable = vm.build(from_onnx(layer(name)), mode)
    (x,) = batch_signature(executable).inputs
    run = vm.VirtualMachine(executable, num_threads=1)["main"]
    batch = GENERATOR.standard_normal((33, *map(int, x.sizes))).astype(np.float32)
    alone = [run(batch[k : k + 1]).numpy().tobytes() for k in range(33)]
    for begin, end in ((0, 2), (0, 33), (1, 8), (5, 21), (30, 33)):
        assert run(batch[begin:end]).numpy().tobytes() == b"".join(alone[begin:end]), (begin, end)


def test_json_has_inputs_and_outputs_by_name(layers: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        x = rows(2, 3)
        body = json.dumps({"x": x.tolist(), "k": [5, -6]}).encode()
        answer = await post(client, body, f"{JSON}; charset=utf-8")
        assert (answer.status_code, answer.headers["content-type"]) == (200, JSON)
        found = answer.json()
        assert found["result1"] == [10, -12] and list(found) == ["result0", "result1"]
        expected = vm.VirtualMachine(layers)["two"](x, np.int32([5, -6]))[0].numpy()
        assert np.float32(found["result0"]).tobytes() == expected.tobytes()

    serving(test, layers, "two")


def test_requests_of_other_sizes_are_in_other_batches(layers: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        bodies = [json.dumps({"x": rows(1, 2 + k % 3).tolist(), "k": [k]}).encode() for k in range(12)]
        answers = await asyncio.gather(*(post(client, body, JSON) for body in bodies))
        assert [each.json()["result1"] for each in answers] == [[2 * k] for k in range(12)]
        assert [len(each.json()["result0"][0]) for each in answers] == [2 + k % 3 for k in range(12)]
        assert await metric(client, "relvm_batch_rows_count") == 3

    serving(test, layers, "two", workers=1, max_batch=4, max_wait=50)


def test_a_full_batch_does_not_wait(layers: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        answers = await asyncio.gather(*(post(client, rows(2)) for _ in range(4)))
        assert [each.status_code for each in answers] == [200] * 4
        assert await metric(client, "relvm_batch_rows_count") == 2

    serving(test, layers, workers=1, max_batch=4, max_wait=50)


# ---- requests that get no result ----

REFUSED = [
    (b"no array", NPY, 400, "the body is no .npy file"),
    (npy(np.array([None])), NPY, 400, "the body is no .npy file"),
    (npy(rows(3))[:-1], NPY, 400, "the body is no .npy file"),
    (npy(rows(3)) + b"ab", NPY, 400, "the body is no .npy file: it has 2 bytes more"),
    (b"\x93NUMPY\x01\x00\x05\x00(((((", NPY, 400, "the body is no .npy file"),
    (npy(rows(3)).replace(b"(3, 64), }" + b" " * 20, b"(%d, 64), }" % 10**20), NPY, 400, "the body is no .npy file"),
    (b"{", JSON, 400, "the body is no JSON"),
    (b"[" * 3000, JSON, 400, "the body is no JSON"),
    (b"[[1]]", JSON, 400, "expected a JSON object of the inputs, got list"),
    (b'{"x": [[1], [2, 3]]}', JSON, 400, "input x: no array"),
    (b"x", "text/plain", 400, "content-type text/plain: expected application/x-npy or application/json"),
    (b"{}", JSON, 422, "expected the inputs x, got none"),
    (b'{"x": [[1]], "y": 2}', JSON, 422, "expected the inputs x, got x, y"),
    (b'{"\\ud800": 1}', JSON, 422, "expected the inputs x, got \\ud800"),
    (b'{"x": [["a"]]}', JSON, 422, "input x: expected f32[n, 64], got elements of str"),
    (rows(2).astype(np.float64), NPY, 422, "input x: expected f32[n, 64], got elements of float64"),
    (rows(2, 65), NPY, 422, "input x: expected f32[n, 64], got the shape (2, 65)"),
    (rows(2)[0], NPY, 422, "input x: expected f32[n, 64], got the shape (64,)"),
    (rows(0), NPY, 422, "expected 1 to 8 rows, got 0"),
    (rows(9), NPY, 422, "expected 1 to 8 rows, got 9"),
    (b"1" * 5000, NPY, 413, "the body has more than 4000 bytes"),
]


def test_what_does_not_fit_is_refused_by_itself(layers: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        good = [post(client, rows(1)) for _ in REFUSED]
        bad = [post(client, body, content_type) for body, content_type, _, _ in REFUSED]
        answers = await asyncio.gather(*good, *bad)
        assert [each.status_code for each in answers[: len(good)]] == [200] * len(good)
        for answer, (_, _, status, message) in zip(answers[len(good) :], REFUSED, strict=True):
            assert answer.status_code == status and answer.json()["message"].startswith(message), answer.text
        for status in (400, 422):
            count = sum(row[2] == status for row in REFUSED)
            assert await metric(client, f'relvm_requests_total{{status="{status}"}}') == count
        assert await metric(client, 'relvm_errors_total{kind="RelvmFormatError"}') == sum(
            row[2] == 400 for row in REFUSED
        )
        assert await metric(client, 'relvm_requests_total{status="200"}') == len(good)

    serving(test, layers, max_batch=8, max_body=4000)


INTEGERS = [
    ([1, -2], 200),
    ([1.0, 2.0], 422),
    ([True, False], 422),
    ([1, 2**31], 422),
    ([1, 2**70], 422),
    ([1], 422),
]


def test_integers_in_json_are_integers_in_their_range(layers: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        for k, status in INTEGERS:
            answer = await post(client, json.dumps({"x": [[1], [2]], "k": k}).encode(), JSON)
            assert answer.status_code == status, answer.text
        answer = await post(client, np.ones((2, 1), np.float32))
        assert (
            answer.json()["message"] == "application/x-npy is for one input and one output: expected application/json"
        )

    serving(test, layers, "two")


def test_a_request_that_fails_when_it_runs_fails_alone(packed: Callable) -> None:
    def check(x: np.ndarray) -> np.ndarray:
        if (x < 0).any():
            raise RelvmArgumentError("no negative numbers")
        return 2 * x

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        inputs = [np.full((1, 2), -1 if k == 3 else k, np.float32) for k in range(6)]
        answers = await asyncio.gather(*(post(client, x) for x in inputs))
        assert [each.status_code for each in answers] == [200, 200, 200, 422, 200, 200]
        assert answers[3].json() == {"error": "RelvmArgumentError", "message": "no negative numbers"}
        assert all(np.array_equal(np.load(io.BytesIO(answers[k].content)), 2 * inputs[k]) for k in range(6) if k != 3)
        assert await metric(client, "relvm_batch_rows_count") == 7

    serving(test, packed(check), max_batch=6, max_wait=50)


def test_what_is_our_own_mistake_is_no_secret_told(packed: Callable, caplog: pytest.LogCaptureFixture) -> None:
    def fail(x: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError("a secret")

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        answer = await post(client, rows(1, 2))
        assert answer.status_code == 500
        assert answer.json() == {"error": "ZeroDivisionError", "message": "the server failed; its log says why"}

    serving(test, packed(fail))
    assert "a secret" in caplog.text


def test_no_row_of_the_statuses_is_hidden_by_one_before_it() -> None:
    kinds = list(STATUS)
    assert not [(a, b) for k, b in enumerate(kinds) for a in kinds[:k] if issubclass(b, a)]


def test_a_server_that_makes_no_batches_is_not_alive(layers: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        batcher = service.batcher
        batcher._collecting.cancel()
        await asyncio.wait([batcher._collecting])
        health = await client.get("/health")
        assert (health.status_code, health.json()) == (503, {"alive": False, "ready": False})

    with pytest.raises(asyncio.CancelledError):  # closing it says so, too
        serving(test, layers)


def test_a_client_that_goes_away_is_counted(layers: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        request = Request({"type": "http", "method": "POST", "headers": []}, receive=gone)
        assert (await service.predict(request)).status_code == 400
        assert await metric(client, 'relvm_errors_total{kind="ClientDisconnect"}') == 1

    async def gone() -> dict:
        return {"type": "http.disconnect"}

    serving(test, layers)


def test_a_body_that_does_not_end_is_given_up(layers: vm.Executable) -> None:
    parts = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def slow() -> dict:
        return parts.pop() if parts else await asyncio.Event().wait()

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        answer = await service.predict(Request({"type": "http", "method": "POST", "headers": []}, receive=slow))
        assert (answer.status_code, b"no whole body within 0.05 seconds" in answer.body) == (504, True)

    serving(test, layers, timeout=0.05)


# ---- while runs last ----


def test_a_full_queue_a_deadline_and_the_end(packed: Callable) -> None:
    """All while a run lasts, which does not keep the server from answering."""
    inside, go_on = threading.Event(), threading.Event()

    def wait(x: np.ndarray) -> np.ndarray:
        inside.set()
        assert go_on.wait(30)
        return x

    async def until(holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.001)

    async def test() -> None:
        async with client_of(packed(wait), workers=1, max_batch=1, max_wait=0, max_queue=2) as (client, service):
            first = asyncio.create_task(post(client, rows(1, 2)))
            await until(inside.is_set)
            health = await client.get("/health")
            assert (health.status_code, health.json()) == (200, {"alive": True, "ready": True})
            assert "connection" not in health.headers
            others = [asyncio.create_task(post(client, rows(1, 2))) for _ in range(2)]
            await until(lambda: len(service.batcher.waiting) == 2)
            assert await metric(client, "relvm_queue_length") == 2
            refused = await post(client, rows(1, 2))
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert refused.json() == {"error": "QueueFullError", "message": "2 requests are waiting"}

            others.pop().cancel()  # one gives up
            await until(lambda: len(service.batcher.waiting) == 1)
            service.timeout = 0.05
            late = await post(client, rows(1, 2))
            assert late.status_code == 504 and late.json()["message"] == "no result within 0.05 seconds"
            assert len(service.batcher.waiting) == 1

            service.ready = False
            health = await client.get("/health")
            assert (health.status_code, health.json()) == (503, {"alive": True, "ready": False})
            assert health.headers["connection"] == "close"
            closing = asyncio.create_task(service.batcher.close())
            await asyncio.sleep(0)
            assert (await post(client, rows(1, 2))).json()["message"] == "the server ends"
            go_on.set()
            await closing
            assert [(await each).status_code for each in (first, *others)] == [200, 200]

    asyncio.run(asyncio.wait_for(test(), 60))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("relvm")]


def test_a_run_that_takes_too_long_is_ended() -> None:
    text = """
    def main(x: f32[n]) -> f32[n] = @loop(1000000000, x)
    def loop(i: i64, x: f32[n]) -> f32[n] { return if i < 1 then x else @loop(i - 1, x) }"""

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        assert (await post(client, np.ones(3, np.float32))).status_code == 504

    serving(test, vm.build(parse_module(text)), timeout=0.2)


# ---- what can be served ----

UNFIT = [
    ("main() -> f32[2] = const(f32[2], [1, 2])", "main has no inputs"),
    (
        "main(x: f32[4, n]) -> f32[n, 4] = transpose(x)",
        r"main: input x is f32\[4, n\]: its first axis is not the batch",
    ),
    ("main(x: f32[n], y: f32[m]) -> f32[n] = x", r"main: input y is f32\[m\]: .* the batch, \[n, ...\]"),
    (
        "main(x: f32[n]) -> f32[] = sum(x)",
        r"main: output result0 is f32\[\]: its first axis is not the batch, \[n, ...\]",
    ),
    ("main(x: f32[]) -> f32[] = x", r"its first axis is not the batch, \[n, ...\], n being any size"),
    ("main(x: bool) -> bool = x", "main: input x is bool: "),
    ("main(x: f32[n]) -> f32[2 * n] = concat(x, x, axis=0)", r"its first axis is not the batch, \[n, ...\]"),
    ("main(x: f32[n, n]) -> f32[n] = sum(x, axes=(1,))", "an axis that grows with the batch cannot be split"),
    ("main(x: f32[n], k: i64) -> f32[n] = x", "main: input k is i64: its first axis is not the batch"),
    ("main(x: bf16[n]) -> bf16[n] = x", r"main: input x is bf16\[n\]: expected a tensor"),
    ("main(x: str[n]) -> str[n] = x", r"main: input x is str\[n\]: expected a tensor"),
    ("main(x: f32[n]) -> (f32[n], i64) { return (x, 1) }", r"main returns \(f32\[n\], i64"),
]


@pytest.mark.parametrize(("text", "message"), UNFIT)
def test_what_cannot_be_served_is_refused_at_the_start(text: str, message: str) -> None:
    with pytest.raises(RelvmUnsupportedError, match=message):
        make_app(vm.build(parse_module(f"def {text}"), target="numpy"))


def test_options_out_of_their_range_are_refused() -> None:
    bounded = 'def main(x: f32[n]) -> f32[n] with (upper_bounds=(("n", 8),)) = relu(x)'
    executable = vm.build(parse_module(bounded), target="numpy")
    assert batch_signature(executable).most_rows == 8
    make_app(executable, max_batch=8)
    with pytest.raises(RelvmArgumentError, match="max_batch is 9, expected 1 to 8"):
        make_app(executable, max_batch=9)
    with pytest.raises(RelvmArgumentError, match="expected max_wait >= 0"):
        make_app(executable, max_batch=1, timeout=0)
    with pytest.raises(RelvmArgumentError, match="max_bodies is 5, expected at least max_body, 6"):
        make_app(executable, max_batch=1, max_body=6, max_bodies=5)
    with pytest.raises(RelvmNameError, match="no function other: there are main"):
        make_app(executable, "other")


# ---- as a process ----


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("serve") / "model.rvm"
    vm.build(parse_module(LAYERS), "compiled").save(path)
    return path


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=256) as opened:
        yield opened


def answer(body: bytes, length: int, status: str = "200 OK") -> bytes:
    """Of HTTP: a body that is said to have so many bytes."""
    return f"HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n".encode() + body


def test_the_load_test_counts_what_goes_wrong() -> None:
    """One answer each: none, half of one, a refusal, another request's, the right one; then none in all tries."""
    answers = [b"", answer(b"ri", 5), answer(b"", 0, "503 Unavailable"), answer(b"wrong", 5), answer(b"right", 5)]
    answers += [b""] * TRIES

    async def test() -> Report:
        end = asyncio.Event()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\nbody")
            writer.write(answers.pop(0))
            if not answers:
                end.set()
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return await load(f"http://127.0.0.1:{port}", [(b"body", b"right")], 1, end)

    report = asyncio.run(asyncio.wait_for(test(), 30))
    assert (report.sent, report.answered, report.wrong, report.refused) == (5, 1, 1, {503: 1})
    assert (report.lost, report.retried, report.is_clean) == (2, 1 + TRIES, False)


def test_no_request_is_lost_over_a_restart(model: Path, listener: socket.socket) -> None:
    """Each is answered once, with its own result; both servers end with status 0."""
    cases = make_cases(vm.load(model), "main", rows=2)
    report = asyncio.run(
        load_servers(
            listener, model, cases, clients=6, seconds=1.5, restart=True, options=["--workers", "2", "--drain", "0.2"]
        )
    )
    assert report.is_clean and report.answered == report.sent > 50, report
    assert (report.wrong, report.lost, +report.refused) == (0, 0, {})
    assert "p99" in str(report) and f"{report.sent} sent, {report.sent} answered" in str(report)


def test_a_server_that_ends_says_so_and_goes_on_for_a_while(model: Path, listener: socket.socket) -> None:
    server = start(listener, model, ["--drain", "60"])
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        with httpx.Client(base_url=url) as client:
            assert client.get("/health").json() == {"alive": True, "ready": True}
            server.terminate()
            while (health := client.get("/health")).status_code == 200:
                continue
            assert health.json() == {"alive": True, "ready": False} and health.headers["connection"] == "close"
            answer = client.post("/predict", content=npy(rows(1)), headers={"content-type": NPY})
            assert (answer.status_code, answer.headers["connection"]) == (200, "close")
            server.terminate()  # which ends that while
            assert server.wait(30) == 0
    finally:
        server.kill()
        server.communicate()


# ---- clients that mean harm, on sockets ----


@pytest.fixture
def serve(model: Path, listener: socket.socket) -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts a server on the listener with options."""
    servers: list[subprocess.Popen] = []

    def started(*options: str, of: Path = model) -> subprocess.Popen:
        servers.append(start(listener, of, options))
        return servers[-1]

    yield started
    for server in servers:
        server.kill()
        server.communicate()


def connected(listener: socket.socket, sent: bytes) -> socket.socket:
    connection = socket.create_connection(listener.getsockname(), timeout=60)
    connection.sendall(sent)
    return connection


def head(length: int, content_type: str = JSON) -> bytes:
    lines = ("POST /predict HTTP/1.1", "host: here", f"content-type: {content_type}", f"content-length: {length}")
    return "\r\n".join((*lines, "", "")).encode()


def received(connection: socket.socket) -> bytes:
    """All that comes until the server closes the connection."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:  # what was sent had not been read
        pass
    return b"".join(parts)


def is_healthy(listener: socket.socket) -> bool:
    with connected(listener, b"GET /health HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n") as connection:
        return received(connection).startswith(b"HTTP/1.1 200")


def test_a_server_answers_while_it_reads_large_json(serve: Callable, listener: socket.socket) -> None:
    serve("--timeout", "60")
    body = b'{"x": [[' + b"0.5, " * 6_000_000 + b"0.5]]}"
    answered = threading.Event()
    with connected(listener, head(len(body)) + body[:-1]) as connection:
        assert is_healthy(listener)

        def wait() -> None:
            assert connection.recv(4096).startswith(b"HTTP/1.1 422")
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
        return False  # counted when it was sent to
    except TimeoutError:
        return False
    return answer.startswith(b"HTTP/1.1 503")


def answers_one(listener: socket.socket) -> bool:
    body = npy(rows(1))
    with connected(listener, head(len(body), NPY) + body) as connection:
        return connection.recv(4096).startswith(b"HTTP/1.1 200")


HALVES = {
    "nothing": b"",
    "half a head": b"GET /health HTTP/1.1\r\nhost: he",
    "half a second head": b"GET /health HTTP/1.1\r\nhost: here\r\n\r\nGET /health HTT",
    "half a body": head(100) + b'{"x": ',
    "half a body to an endpoint that takes none": b"GET /health HTTP/1.1\r\nhost: here\r\ncontent-length: 9\r\n\r\n12",
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
        connected(listener, b"GET /health HTTP/1.1\r\n") as connection,
        pytest.raises((BrokenPipeError, ConnectionResetError)),
    ):
        for number in range(600):
            connection.sendall(f"x-{number}: 1\r\n".encode())
            time.sleep(0.1)
    assert is_healthy(listener)


def test_a_client_that_does_not_read_its_answer_is_left(
    serve: Callable, listener: socket.socket, tmp_path: Path
) -> None:
    vm.build(parse_module("def main(x: f32[n, m]) -> f32[n, m] = relu(x)"), target="numpy").save(tmp_path / "wide.rvm")
    serve("--timeout", "1", of=tmp_path / "wide.rvm")
    body = npy(np.zeros((1, 8 << 20), np.float32))
    with connected(listener, head(len(body), NPY) + body) as connection:
        poller = select.poll()
        poller.register(connection, 0)  # for a reset alone
        assert poller.poll(60_000)
    assert is_healthy(listener)


def test_the_process_for_large_json_is_replaced(layers: vm.Executable) -> None:
    values = [[0.125] * 64] * 400
    body = json.dumps({"x": values}).encode()
    assert len(body) > 1 << 16

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        async with asyncio.timeout(50):
            first = await post(client, body, JSON)
            (process,) = multiprocessing.active_children()
            process.kill()
            while (answer := await post(client, body, JSON)).status_code == 503:
                assert answer.json()["error"] == "ConversionError"
        small = await post(client, json.dumps({"x": values[:1]}).encode(), JSON)
        assert first.status_code == answer.status_code == small.status_code == 200
        assert first.json() == answer.json() == {"result0": small.json()["result0"] * 400}
        assert service.held_bytes == 0

    serving(test, layers, max_batch=400)
    assert not multiprocessing.active_children()


def test_text_in_json_takes_no_more_room_than_it_has_bytes(layers: vm.Executable) -> None:
    """NumPy would make each of the numbers as long as the text."""
    body = json.dumps({"x": ["a" * 30_000, *range(7_000)]}).encode()
    tracemalloc.start()
    with pytest.raises(RelvmTypeError, match="got elements of str"):
        read_body(body, JSON, batch_signature(layers))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


def test_answers_do_not_wait_for_acknowledgements() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_load_test_says_what_it_cannot_do(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "two.relvm").write_text("def main(x: f32[n], y: f32[n]) -> f32[n] = add(x, y)")
    (tmp_path / "one.relvm").write_text("def main(x: f32[n]) -> f32[n] = relu(x)")
    assert load_main([str(tmp_path / "two.relvm")]) == 1
    assert load_main([str(tmp_path / "one.relvm"), "--max-batch", "0"]) == 1
    assert load_main([str(tmp_path / "none.relvm")]) == 1
    said = capsys.readouterr().err
    assert "serve.load: main: the load test is of functions of one input and one output\n" in said
    assert "serve.load: the server ended with status 1\n" in said and "none.relvm" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "99999"], "--port 99999: expected 0 to 65535"),
        (["--fd", "-5"], "--fd -5: expected the number of an open file"),
        (["--drain", "nan"], "--drain nan: expected seconds"),
        (["--timeout", "inf"], "timeout > 0, max_body >= 1, all finite"),
        (["--max-wait-ms", "nan"], "expected max_wait >= 0"),
        ([], "can't decode byte 0xff"),
    ],
)
def test_wrong_options_are_said_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture, options: list[str], message: str
) -> None:
    text = b"def main(x: f32[n]) -> f32[n] = relu(x)" if options else b"\xff"
    (tmp_path / "one.relvm").write_bytes(text)
    assert serve_main([str(tmp_path / "one.relvm"), *options]) == 1
    said = capsys.readouterr().err
    assert said.startswith("serve: ") and said.count("\n") == 1 and message in said


def test_what_cannot_be_read_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "bad.rvm").write_text("no executable")
    command = [sys.executable, "-m", "serve", str(tmp_path / "bad.rvm")]
    done = subprocess.run(command, cwd=ROOT / "examples", capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("serve: ") and done.stderr.count("\n") == 1 and "bad.rvm" in done.stderr
