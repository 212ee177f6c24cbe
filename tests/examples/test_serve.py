"""examples/serve: requests in batches give what a machine gives, bad ones fail alone, and none is lost at the end."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
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
from serve.bodies import JSON, NPY
from serve.load import TRIES, Report, load, load_servers, make_cases, start
from serve.load import main as load_main
from serve.signature import batch_signature
from serving import GENERATOR, client_of, metric, npy, post, rows, serving
from starlette.requests import Request

from relvm import vm
from relvm.errors import RelvmArgumentError, RelvmNameError, RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx
from relvm.frontend.text import parse_module

ROOT = Path(__file__).resolve().parent.parent.parent
CHECKED = 'def main(x: f32[n, 2]) => f32[n, 2] { return packed("test.serve", x) : f32[n, 2] }'


@pytest.fixture
def packed() -> Iterator[Callable[[Callable], vm.Executable]]:
    """An executable whose runs call a function."""

    def calling(function: Callable) -> vm.Executable:
        vm.register_func("test.serve", lambda x: function(x.numpy()), override=True)
        return vm.build(parse_module(CHECKED), target="numpy")

    yield calling
    vm.unregister_func("test.serve")


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


def test_json_may_have_integers_without_elements() -> None:
    executable = vm.build(parse_module("def main(x: i32[n, m]) -> i32[n, m] = add(x, x)"), target="numpy")

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        answer = await post(client, b'{"x": [[], []]}', JSON)
        assert (answer.status_code, answer.json()) == (200, {"result0": [[], []]})

    serving(test, executable)


def test_no_answer_leads_elsewhere(layers: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        for path in ("/health/", "/predict/", "//elsewhere/health/"):
            assert (await client.get(path, headers={"host": "elsewhere"})).status_code == 404

    serving(test, layers)


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
    (b"{", JSON, 400, "the body is not JSON"),
    (b"[" * 3000, JSON, 400, "the body is not JSON"),
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
    with pytest.raises(RelvmArgumentError, match="max_connections is 0, expected at least 1"):
        make_app(executable, max_batch=1, max_connections=0)
    with pytest.raises(RelvmArgumentError, match="max_bodies is 5, expected at least max_body, 6"):
        make_app(executable, max_batch=1, max_body=6, max_bodies=5)
    with pytest.raises(RelvmNameError, match="no function other: there are main"):
        make_app(executable, "other")


# ---- as a process ----


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
