"""Tests of examples/serve: batched requests have correct results, invalid ones fail alone, and none is lost."""

from __future__ import annotations

import asyncio
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
from serve.__main__ import listen
from serve.__main__ import main as serve_main
from serve.app import STATUS, make_app
from serve.load import TRIES, Case, Report, load, load_servers, make_cases, start
from serve.load import main as load_main
from serve.repository import ServedModel, Source
from serve.settings import Settings
from serve.signature import batch_axis, read_signature
from serving import (
    GENERATOR,
    PATH,
    client_of,
    json_body,
    metric,
    output,
    outputs,
    post,
    rows,
    serving,
)
from starlette.requests import Request
from support.modes import MODES

from relvm import vm
from relvm.errors import RelvmArgumentError, RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx
from relvm.frontend.text import parse_module
from relvm.model import Model

ROOT = Path(__file__).resolve().parent.parent.parent
CHECKED = 'def main(x: f32[n, 2]) => f32[n, 2] { return packed("test.serve", x) : f32[n, 2] }'


@pytest.fixture
def packed() -> Iterator[Callable[[Callable], vm.Executable]]:
    """Return a function that builds an executable whose runs call a given Python function."""

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
        assert [output(each).tobytes() for each in answers] == expected
        assert await metric(client, "relvm_batch_rows_sum") == sum(map(len, inputs))
        assert await metric(client, "relvm_batch_rows_count") < 30
        assert await metric(client, "relvm_batch_rows_bucket", le="16.0") == await metric(
            client, "relvm_batch_rows_count"
        )

    serving(test, layers, workers=2, max_batch=16, max_wait=0.2)


def layer(name: str) -> onnx.ModelProto:
    """Return a model with a layer whose kernel processes several rows of a batch at a time."""
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
    (x,) = read_signature(Model(executable)).inputs
    run = vm.VirtualMachine(executable, num_threads=1)["main"]
    batch = GENERATOR.standard_normal((33, *map(int, x.sizes[1:]))).astype(np.float32)
    alone = [run(batch[k : k + 1]).numpy().tobytes() for k in range(33)]
    for begin, end in ((0, 2), (0, 33), (1, 8), (5, 21), (30, 33)):
        assert run(batch[begin:end]).numpy().tobytes() == b"".join(alone[begin:end]), (begin, end)


def test_no_answer_leads_elsewhere(layers: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        for path in ("/v2/", "/v2/health/live/", "//elsewhere/v2/"):
            assert (await client.get(path, headers={"host": "elsewhere"})).status_code == 404

    serving(test, layers)


def test_requests_of_other_sizes_are_in_other_batches(layers: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        bodies = [json_body({"x": rows(1, 2 + k % 3), "k": np.int32([k])}) for k in range(12)]
        found = [outputs(each) for each in await asyncio.gather(*(post(client, body) for body in bodies))]
        assert [each["output_1"].tolist() for each in found] == [[2 * k] for k in range(12)]
        assert [each["output_0"].shape for each in found] == [(1, 2 + k % 3) for k in range(12)]
        assert await metric(client, "relvm_batch_rows_count") == 3

    serving(test, layers, function="two", workers=1, max_batch=4, max_wait=50)


def test_a_full_batch_does_not_wait(layers: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        answers = await asyncio.gather(*(post(client, rows(2)) for _ in range(4)))
        assert [each.status_code for each in answers] == [200] * 4
        assert await metric(client, "relvm_batch_rows_count") == 2

    serving(test, layers, workers=1, max_batch=4, max_wait=50)


# ---- requests without a result ----

REFUSED = [
    (json_body({"y": rows(1)}), 400, "no input y"),
    (rows(2).astype(np.float64), 400, "input x: expected the datatype FP32, got FP64"),
    (rows(2, 65), 400, "input x: expected f32[n, 64], got the shape [2, 65]"),
    (rows(2)[0], 400, "input x: expected f32[n, 64], got the shape [64]"),
    (rows(0), 400, "expected from 1 to 8 rows, got 0"),
    (rows(9), 400, "expected from 1 to 8 rows, got 9"),
    (b"1" * 5000, 413, "the body has more than 4000 bytes"),
]


def test_what_does_not_fit_is_refused_by_itself(layers: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        good = [post(client, rows(1)) for _ in REFUSED]
        bad = [post(client, body) for body, _, _ in REFUSED]
        answers = await asyncio.gather(*good, *bad)
        assert [each.status_code for each in answers[: len(good)]] == [200] * len(good)
        for answer, (_, status, message) in zip(answers[len(good) :], REFUSED, strict=True):
            assert answer.status_code == status and answer.json()["error"].startswith(message), answer.text
        for status in (400, 413):
            count = sum(row[1] == status for row in REFUSED)
            assert await metric(client, "relvm_requests_total", status=str(status)) == count
        assert 'relvm_errors_total{kind="RelvmShapeError"} 4.0' in (await client.get("/metrics")).text
        assert await metric(client, "relvm_requests_total", status="200") == len(good)

    serving(test, layers, max_batch=8, max_body=4000)


def test_a_request_that_fails_when_it_runs_fails_alone(packed: Callable) -> None:
    def check(x: np.ndarray) -> np.ndarray:
        if (x < 0).any():
            raise RelvmArgumentError("no negative numbers")
        return 2 * x

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        inputs = [np.full((1, 2), -1 if k == 3 else k, np.float32) for k in range(6)]
        answers = await asyncio.gather(*(post(client, x) for x in inputs))
        assert [each.status_code for each in answers] == [200, 200, 200, 400, 200, 200]
        assert answers[3].json() == {"error": "no negative numbers"}
        assert all(np.array_equal(output(answers[k]), 2 * inputs[k]) for k in range(6) if k != 3)
        assert await metric(client, "relvm_batch_rows_count") == 7

    serving(test, packed(check), max_batch=6, max_wait=50)


def test_what_is_our_own_mistake_is_no_secret_told(packed: Callable, caplog: pytest.LogCaptureFixture) -> None:
    def fail(x: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError("a secret")

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        answer = await post(client, rows(1, 2))
        assert answer.status_code == 500
        assert answer.json() == {"error": "internal error; the log of the server has the details"}

    serving(test, packed(fail))
    assert "a secret" in caplog.text


def test_no_row_of_the_statuses_is_hidden_by_one_before_it() -> None:
    kinds = list(STATUS)
    assert not [(a, b) for k, b in enumerate(kinds) for a in kinds[:k] if issubclass(b, a)]


SCOPE = {"type": "http", "method": "POST", "headers": [], "path_params": {"name": "model"}}


def batcher_of(service: Any) -> Any:
    return service.repository.find("model", None).batcher


def test_a_server_that_makes_no_batches_is_not_alive(layers: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        batcher = batcher_of(service)
        batcher._collecting.cancel()
        await asyncio.wait([batcher._collecting])
        for path, said in (("live", {"live": False}), ("ready", {"ready": False})):
            health = await client.get(f"/v2/health/{path}")
            assert (health.status_code, health.json()) == (503, said)

    with pytest.raises(asyncio.CancelledError):  # closing the server raises the error, too
        serving(test, layers)


def test_a_client_that_goes_away_is_counted(layers: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        assert (await service.infer(Request(SCOPE, receive=gone))).status_code == 400
        assert 'relvm_errors_total{kind="ClientDisconnect"} 1.0' in (await client.get("/metrics")).text

    async def gone() -> dict:
        return {"type": "http.disconnect"}

    serving(test, layers)


def test_a_body_that_does_not_end_is_given_up(layers: vm.Executable) -> None:
    parts = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def slow() -> dict:
        return parts.pop() if parts else await asyncio.Event().wait()

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        answer = await service.infer(Request(SCOPE, receive=slow))
        assert (answer.status_code, b"the body is incomplete after 0.05 seconds" in answer.body) == (504, True)

    serving(test, layers, timeout=0.05)


# ---- requests during a run ----


def test_a_full_queue_a_deadline_and_the_end(packed: Callable) -> None:
    """All of this happens during a run, while the server still answers requests."""
    inside, go_on = threading.Event(), threading.Event()

    def wait(x: np.ndarray) -> np.ndarray:
        inside.set()
        assert go_on.wait(30)
        return x

    async def until(holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.001)

    async def test() -> None:
        async with client_of(packed(wait), workers=1, max_wait=0, max_queue=2) as (client, service):
            batcher = batcher_of(service)
            first = asyncio.create_task(post(client, rows(1, 2)))
            await until(inside.is_set)
            health = await client.get("/v2/health/ready")
            assert (health.status_code, health.json()) == (200, {"ready": True})
            assert "connection" not in health.headers
            others = [asyncio.create_task(post(client, rows(1, 2))) for _ in range(2)]
            await until(lambda: len(batcher.waiting) == 2)
            assert await metric(client, "relvm_queue_length") == 2
            refused = await post(client, rows(1, 2))
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert refused.json() == {"error": "the queue of 2 requests is full"}

            others.pop().cancel()  # a client disconnects
            await until(lambda: len(batcher.waiting) == 1)
            service.timeout = 0.05
            late = await post(client, rows(1, 2))
            assert late.status_code == 504 and late.json()["error"] == "no result within 0.05 seconds"
            assert len(batcher.waiting) == 1

            service.ready = False
            assert (await client.get("/v2/health/live")).status_code == 200
            health = await client.get("/v2/health/ready")
            assert (health.status_code, health.json()) == (503, {"ready": False})
            assert health.headers["connection"] == "close"
            closing = asyncio.create_task(batcher.close())
            await asyncio.sleep(0)
            assert (await post(client, rows(1, 2))).json()["error"] == "the server ends"
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


# ---- models that can be batched ----

UNFIT = [
    ("main() -> f32[2] = const(f32[2], [1, 2])", "there are no inputs"),
    ("main(x: f32[4, n]) -> f32[n, 4] = transpose(x)", r"input x is f32\[4, n\]; its first axis is not the batch"),
    ("main(x: f32[n], y: f32[m]) -> f32[n] = x", r"input y is f32\[m\]; .* the batch, \[n, ...\]"),
    ("main(x: f32[n]) -> f32[] = sum(x)", r"output output_0 is f32\[\]; its first axis is not the batch, \[n, ...\]"),
    ("main(x: f32[]) -> f32[] = x", r"its first axis is not the batch, \[n, ...\], n being any size"),
    ("main(x: bool) -> bool = x", "input x is bool; "),
    ("main(x: f32[n]) -> f32[2 * n] = concat(x, x, axis=0)", r"its first axis is not the batch, \[n, ...\]"),
    ("main(x: f32[n, n]) -> f32[n] = sum(x, axes=(1,))", "an axis that grows with the batch cannot be split"),
    ("main(x: f32[n], k: i64) -> f32[n] = x", "input k is i64; its first axis is not the batch"),
    ("main(x: f32[n]) -> (f32[n], i64) { return (x, 1) }", "output output_1 is i64; "),
]


@pytest.mark.parametrize(("text", "message"), UNFIT)
def test_a_model_without_a_batch_axis_is_not_batched(text: str, message: str) -> None:
    executable = vm.build(parse_module(f"def {text}"), target="numpy")
    with pytest.raises(RelvmUnsupportedError, match=message):
        batch_axis(read_signature(Model(executable)))
    model = ServedModel(Source("model", "1", executable), Settings(workers=1, max_batch=8))
    assert not model.is_batched and model.unbatched_because.startswith("cannot be batched: ")
    with pytest.raises(RelvmUnsupportedError, match=message):
        ServedModel(Source("model", "1", executable), Settings(workers=1, model_batches={"model": 8}))


@pytest.mark.parametrize("type_", ["f8e5m2[n]", "i4[n]", "list[f32[2]]", "(f32[n], f32[n])"])
def test_a_type_that_the_protocol_does_not_have_is_not_served(type_: str) -> None:
    executable = vm.build(parse_module(f"def main(x: {type_}) -> {type_} {{ return x }}"), target="numpy")
    with pytest.raises(RelvmUnsupportedError, match=r"input x is .*: the protocol cannot send it; expected a tensor"):
        read_signature(Model(executable))


def test_only_models_that_the_operator_names_are_batched() -> None:
    bounded = 'def main(x: f32[n]) -> f32[n] with (upper_bounds=(("n", 8),)) = relu(x)'
    executable = vm.build(parse_module(bounded), target="numpy")

    def max_batch(name: str = "model", **settings: Any) -> int:
        return ServedModel(Source(name, "1", executable), Settings(workers=1, **settings)).max_batch

    assert max_batch() == max_batch("other", model_batches={"model": 4}) == 1
    assert max_batch(model_batches={"model": 4}) == max_batch(max_batch=4) == 4
    assert max_batch(max_batch=9) == 8
    assert max_batch(max_batch=9, model_batches={"model": 1}) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_batch": 0}, "max_batch is 0, expected at least 1 row"),
        ({"model_batches": {"a": -1}}, "a is -1, expected at least 1 row"),
        ({"timeout": 0}, "expected max_wait >= 0 and timeout > 0, both finite"),
        ({"max_connections": 0}, "max_connections is 0, expected at least 1"),
        ({"max_body": 6, "max_bodies": 5}, "max_bodies is 5, expected at least max_body, 6"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(RelvmArgumentError, match=message):
        make_app({}, **settings)


# ---- as a process ----


def answer(body: bytes, length: int, status: str = "200 OK") -> bytes:
    """Return an HTTP response whose header states that the body has `length` bytes."""
    return f"HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n".encode() + body


def test_the_load_test_counts_what_goes_wrong() -> None:
    """The server sends nothing, half of an answer, an error, a wrong answer, and the right one.

    Afterwards it sends no more answers.
    """
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
            return await load(f"http://127.0.0.1:{port}", [Case("/", {}, b"body", b"right")], 1, end)

    report = asyncio.run(asyncio.wait_for(test(), 30))
    assert (report.sent, report.answered, report.wrong, report.refused) == (5, 1, 1, {503: 1})
    assert (report.lost, report.retried, report.is_clean) == (2, 1 + TRIES, False)


def test_no_request_is_lost_over_a_restart(model: Path, listener: socket.socket) -> None:
    """Each request gets its own result exactly once, and both servers exit with status 0."""
    cases = make_cases(model, rows=2)
    report = asyncio.run(
        load_servers(
            listener,
            model,
            cases,
            clients=6,
            seconds=1.5,
            restart=True,
            options=["--workers", "2", "--drain", "0.2", "--max-batch", "32"],
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
            assert client.get("/v2/health/ready").json() == {"ready": True}
            server.terminate()
            while (health := client.get("/v2/health/ready")).status_code == 200:
                continue
            assert health.json() == {"ready": False} and health.headers["connection"] == "close"
            answer = client.post(PATH, content=json_body({"x": rows(1)}))
            assert (answer.status_code, answer.headers["connection"]) == (200, "close")
            server.terminate()  # a second signal skips the rest of the waiting time
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
    (tmp_path / "two.relvm").write_text("def main(x: f32[n], y: list[f32[2]]) -> f32[n] { return x }")
    (tmp_path / "one.relvm").write_text("def main(x: f32[n]) -> f32[n] = relu(x)")
    assert load_main([str(tmp_path / "two.relvm")]) == 1
    assert load_main([str(tmp_path / "one.relvm"), "--max-batch", "0"]) == 1
    assert load_main([str(tmp_path / "none.relvm")]) == 1
    said = capsys.readouterr().err
    assert "serve.load: input y is list[f32[2]]: the protocol cannot send it; expected a tensor" in said
    assert "serve.load: the server ended with status 1\n" in said and "none.relvm" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "99999"], "--port 99999: expected 0 to 65535"),
        (["--fd", "-5"], "--fd -5: expected the number of an open file"),
        (["--drain", "nan"], "--drain nan: expected seconds"),
        (["--timeout", "inf"], "timeout > 0, both finite"),
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
