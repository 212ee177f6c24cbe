"""Tests of the server of `relvm explore`, without a browser."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import onnx.parser
import pytest
import uvicorn
from starlette.testclient import TestClient
from support.c_compiler import started_compilers, stuck_compiler, wait_until_ended

from relvm.cli import main
from relvm.explore.live import connections
from relvm.explore.live.app import MAX_BYTES, Settings, make_app
from relvm.explore.live.build_request import BuildRequest
from relvm.explore.live.builder import Builder, BuildError
from relvm.explore.live.server import server_config

TOKEN = "secret-token"
BASE = "http://127.0.0.1:8000"
TEXT = "def main(x: f32[n, 4]) -> f32[n, 4] {\n  a = relu(add(x, x))\n  b = relu(add(x, x))\n  return add(a, b)\n}\n"
SETTINGS = Settings(BuildRequest(TEXT), TOKEN, 8000, "model.relvm")


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(make_app(SETTINGS), base_url=BASE, headers={"origin": BASE}) as client:
        yield client


def post(client: TestClient, **changes: Any):
    request = json.loads(BuildRequest(TEXT).to_json()) | changes
    return client.post(f"/{TOKEN}/build", json=request)


def stages(client: TestClient, **changes: Any) -> dict[str, str]:
    """Request a build, and return the texts of the stages by name."""
    return {stage["name"]: "\n".join(stage["lines"]) for stage in post(client, **changes).json()["stages"]}


def test_the_page_has_the_text_and_asks_for_nothing_elsewhere(client: TestClient) -> None:
    page = client.get(f"/{TOKEN}/")
    assert page.status_code == 200
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page.text)[1])
    assert json.loads(data["live"]["request"])["text"] == TEXT
    assert "http:" not in page.text and "https:" not in page.text
    assert "connect-src 'self'" in page.headers["content-security-policy"]
    assert (page.headers["referrer-policy"], page.headers["cache-control"]) == ("no-referrer", "no-store")


REJECTED = {
    "no_token": ("/", {}),
    "another_token": ("/secret-tokem/", {}),
    "a_token_that_is_not_ascii": ("/%C3%A9/", {}),
    "another_host": (f"/{TOKEN}/", {"host": "evil.example:8000"}),
    "another_port": (f"/{TOKEN}/", {"host": "127.0.0.1:8001"}),
    "another_origin": (f"/{TOKEN}/", {"origin": "https://evil.example"}),
    "a_frame_without_origin": (f"/{TOKEN}/", {"origin": "null"}),
}


@pytest.mark.parametrize("name", REJECTED)
def test_requests_of_others_are_rejected(client: TestClient, name: str) -> None:
    path, headers = REJECTED[name]
    for answer in (client.get(path, headers=headers), client.post(f"{path}build", headers=headers)):
        assert answer.status_code == 403 and answer.text.startswith("rejected: "), answer.text
        assert TOKEN not in answer.text and "access-control-allow-origin" not in answer.headers


def test_a_post_without_an_origin_is_rejected(client: TestClient) -> None:
    with_origin = client.headers.pop("origin")
    try:
        assert client.get(f"/{TOKEN}/").status_code == 200  # a browser that opens an address sends no Origin
        assert post(client).status_code == 403
    finally:
        client.headers["origin"] = with_origin


def test_localhost_is_the_same_server(client: TestClient) -> None:
    local = {"host": "localhost:8000", "origin": "http://localhost:8000"}
    assert client.get(f"/{TOKEN}/", headers=local).status_code == 200


def test_an_address_without_its_last_slash_leads_to_the_page(client: TestClient) -> None:
    answer = client.get(f"/{TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, f"/{TOKEN}/")
    assert client.get(f"/{TOKEN[:-1]}", follow_redirects=False).status_code == 403


def test_options_change_the_stages(client: TestClient) -> None:
    fused, unfused = stages(client), stages(client, fused=False)
    assert "fuse_ops" in fused and "bytecode" in fused and "fuse_ops" not in unfused
    compiled = stages(client, exec_mode="compiled")
    assert "bytecode" not in compiled and compiled["c"] != fused["c"]
    assert "kernels" not in stages(client, target="numpy")


def test_optional_passes_can_be_left_out(client: TestClient) -> None:
    answer = post(client, without=["cse"]).json()
    assert "cse" not in [stage["name"] for stage in answer["stages"]]
    optional = {each["name"]: each["optional"] for each in answer["passes"]}
    assert optional["cse"] and not optional["to_anf"]
    assert stages(client)["dce"].count("relu(") == 1
    assert stages(client, without=["cse"])["dce"].count("relu(") == 2
    assert "fuse_ops" not in stages(client, without=["fuse_ops", "cse"])
    required = post(client, without=["to_anf"]).json()["problem"]["message"]
    assert required.startswith("without=to_anf: only optional passes can be left out: inline,")


PROBLEMS = {
    "syntax": ("# é🙂\ndef main(x: f32[n]) -> f32[n] = relu(x]\n", (2, 39, 1), "got ]"),
    "after_a_wide_character": ('def main(x: f32[n]) -> f32[n] = relu("🙂" x)', (1, 42, 1), "got x"),
    "an_unknown_name": ("def main(x: f32[n]) -> f32[n] {\n  return relux(x)\n}", (2, 10, 5), "relux"),
    "a_type": ("def main(x: f32[2], y: f32[3]) -> f32[2] = add(x, y)", (1, 44, 3), "add"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_errors_have_a_line_and_a_column(client: TestClient, name: str) -> None:
    text, place, words = PROBLEMS[name]
    problem = post(client, text=text).json()["problem"]
    assert words in problem["message"]
    assert (problem["line"], problem["column"], problem["length"]) == place


def test_an_error_without_a_place_has_no_line(client: TestClient) -> None:
    problem = post(client, exec_mode="slow").json()["problem"]
    assert list(problem) == ["message"] and "slow" in problem["message"]


def run(client: TestClient, **changes: Any) -> dict[str, Any]:
    """Request a run, and return its answer."""
    request = json.loads(BuildRequest(TEXT).to_json()) | changes
    return client.post(f"/{TOKEN}/run", json=request).json()


@pytest.mark.parametrize("changes", [{}, {"target": "numpy"}, {"target": "bytecode", "exec_mode": "compiled"}], ids=str)
def test_a_run_has_inputs_outputs_and_times(client: TestClient, changes: dict[str, Any]) -> None:
    text = "def f(x: f32[n, 4], i: i64, b: bool) -> (f32[n, 4], i64) = (softmax(x, axis=1), i)"
    answer = run(client, text=text, **changes)
    assert [(each["name"], each["type"]) for each in answer["inputs"]] == [
        ("x", "float32[1, 4]"),
        ("i", "int64"),
        ("b", "bool"),
    ]
    assert answer["function"] == "f" and answer["outputs"][0]["type"] == "float32[1, 4]"
    assert answer["outputs"][1]["text"] == answer["inputs"][1]["text"]
    assert 0 < answer["best"] <= answer["median"] and answer["runs"] >= 1
    assert len(answer["times"]["kernels"]) == 1


def test_a_run_leaves_out_the_passes_that_the_request_names(client: TestClient) -> None:
    counts = [
        run(client, fused=False, without=names)["times"]["kernels"]["relu_f32"]["count"] for names in ([], ["cse"])
    ]
    assert counts == [1, 2]


@pytest.mark.parametrize("exec_mode", ["bytecode", "compiled"])
def test_errors_of_a_run_have_a_line_and_a_column(client: TestClient, exec_mode: str) -> None:
    text = "def main(x: f32[4]) -> f32[1] {\n  a = exp(x)\n  return gather(a, const(i64[1], [9]))\n}"
    problem = run(client, text=text, exec_mode=exec_mode)["problem"]
    assert problem == {
        "message": "gather: index 9 is outside axis 0 of size 4",
        "line": 3,
        "column": 10,
        "length": 6,
    }


NOT_RUN = {
    "private": ("private def f(x: f32[4]) -> f32[4] = x", "the program has no public function to run"),
    "large_inputs": ("def f(x: f32[100000, 100000]) -> f32[100000, 100000] = x", "10,000,000,000 elements"),
    "large_values": (
        "def f(x: f32[1]) -> f32[100000, 100000] = broadcast_to(x, shape(100000, 100000))",
        "memory",
    ),
    "no_random_value": (
        "def f(x: (f32[2], f32[2])) -> (f32[2], f32[2]) = x",
        "input x: cannot create a random value of type (f32[2], ",
    ),
    "wrong": ("def f(x: f32[2]) -> f32[3] = x", "expected dimension 0 to be 3"),
}


@pytest.mark.parametrize("name", NOT_RUN)
def test_what_cannot_run_is_told(client: TestClient, name: str) -> None:
    text, words = NOT_RUN[name]
    assert words in run(client, text=text)["problem"]["message"]


def test_the_graph_is_a_page(client: TestClient) -> None:
    request = json.loads(BuildRequest(TEXT).to_json())
    page = client.post(f"/{TOKEN}/graph", json=request).json()["graph"]
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page)[1])
    assert data["items"] and data["stage"] in stages(client)
    problem = client.post(f"/{TOKEN}/graph", json=request | {"text": "def"}).json()["problem"]
    assert problem["line"] == 1
    assert client.post("/other/graph", json=request).status_code == 403


def test_a_process_that_is_ended_leaves_no_files_and_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of a live page that is ended, at the time limit or when nobody waits, also ends its C compiler."""
    for name, value in stuck_compiler(tmp_path).items():
        monkeypatch.setenv(name, value)
    temporary = tmp_path / "temporary"
    monkeypatch.setattr(tempfile, "tempdir", None)
    request = BuildRequest(TEXT, assembly=True)

    async def is_wanted() -> bool:
        return False

    async def is_abandoned() -> bool:
        return bool(started_compilers(tmp_path))

    async def end(max_seconds: int, abandoned: Callable[[], Awaitable[bool]]) -> None:
        builder = Builder("model.relvm", max_seconds=max_seconds)
        try:
            assert await builder.build(request, abandoned) is None
        finally:
            await builder.close()

    for max_seconds, abandoned in ((60, is_abandoned), (4, is_wanted)):
        with (
            pytest.raises(BuildError, match="took more than 4 seconds")
            if max_seconds == 4
            else contextlib.nullcontext()
        ):
            asyncio.run(end(max_seconds, abandoned))
        for compiler, child, folder in started_compilers(tmp_path):
            assert folder.is_relative_to(temporary)  # also the compiler's temporary files are there
            wait_until_ended(compiler)
            wait_until_ended(child)
        assert list(temporary.iterdir()) == []
        (tmp_path / "started").unlink()


def test_a_run_that_takes_too_long_is_ended() -> None:
    settings = replace(SETTINGS, max_seconds=2)
    text = "def main(i: i64) -> i64 = if i < -1 then i else @main(i + 1 - 1)"
    with TestClient(make_app(settings), base_url=BASE, headers={"origin": BASE}) as client:
        assert run(client, text=text)["problem"] == {"message": "the run took more than 2 seconds and was ended"}
        assert run(client)["function"] == "main"


MALFORMED = {
    "not_json": b"{",
    "deep": b"[" * 100_000,
    "a_list": b"[]",
    "a_field_is_missing": b'{"text": ""}',
    "a_number_as_text": BuildRequest("").to_json().replace('"text": ""', '"text": 1').encode(),
    "a_surrogate": BuildRequest("\ud800").to_json().encode(),
    "a_name_as_a_list": BuildRequest("").to_json().replace('"without": []', '"without": "cse"').encode(),
    "a_number_as_a_flag": BuildRequest("").to_json().replace("true", "1").encode(),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_requests_are_told(client: TestClient, name: str) -> None:
    answer = client.post(f"/{TOKEN}/build", content=MALFORMED[name])
    assert answer.status_code == 400 and "expected" in answer.json()["problem"]["message"]


def test_a_large_program_is_rejected(client: TestClient) -> None:
    answer = post(client, text="#" * MAX_BYTES)
    assert answer.status_code == 413 and "at most" in answer.json()["problem"]["message"]
    assert post(client, text=f"{'#' * (MAX_BYTES // 2)}\n{TEXT}").status_code == 200


def test_the_text_survives_a_reload(client: TestClient) -> None:
    """The text can contain control characters and `</script>`."""
    text = f"# </script> \u202e é \x07\n{TEXT}"
    assert "stages" in post(client, text=text).json()
    page = client.get(f"/{TOKEN}/").text
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page)[1])
    assert json.loads(data["live"]["request"])["text"] == text


def test_a_model_is_built_with_its_dims(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    text = '<ir_version: 10, opset_import: ["" : 20]> g (float[batch, 4] x) => (float[batch, 4] y) { y = Relu(x) }'
    onnx.save(onnx.parser.parse_model(text), path)
    settings = replace(SETTINGS, start=BuildRequest(""), model=str(path))
    with TestClient(make_app(settings), base_url=BASE, headers={"origin": BASE}) as client:
        assert "x: f32[batch, 4]" in stages(client, text="")["given"]
        assert "x: f32[3, 4]" in stages(client, text="", dims="batch=3")["given"]
        assert "unknown dimension seq len" in post(client, text="", dims="'seq len=3'").json()["problem"]["message"]
        assert "y: f32[batch, 4] = relu(x)" in stages(client, text="")["infer_types"]
        for dims, words in (("batch", "expected NAME=SIZE"), ("height=3", "height")):
            problem = post(client, text="", dims=dims).json()["problem"]
            assert words in problem["message"] and "line" not in problem
        problem = post(client, text="", dims="'batch=3").json()["problem"]
        assert "No closing quotation" in problem["message"]
        path.unlink()
        assert "model.onnx" in post(client, text="", dims="batch=5").json()["problem"]["message"]


def test_save_writes_the_file_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "out.relvm"
    with TestClient(make_app(replace(SETTINGS, output=path)), base_url=BASE, headers={"origin": BASE}) as client:
        text = f"# é\r\n{TEXT}"
        answer = client.post(f"/{TOKEN}/save", content=BuildRequest(text).to_json())
        assert answer.json() == {"saved": str(path)} and path.read_bytes().decode() == text
        assert client.post("/other/save", content=BuildRequest("").to_json()).status_code == 403
        assert path.read_bytes().decode() == text
        path.unlink()
        tmp_path.rmdir()
        answer = client.post(f"/{TOKEN}/save", content=BuildRequest(text).to_json())
        assert answer.status_code == 500 and "was not written" in answer.json()["problem"]["message"]


def test_without_an_output_there_is_nothing_to_save_to(client: TestClient) -> None:
    assert client.post(f"/{TOKEN}/save", content=BuildRequest(TEXT).to_json()).status_code == 404


def long_program(lines: int) -> str:
    steps = "\n".join(f"  a{i + 1} = relu(add(a{i}, a{i}))" for i in range(lines))
    return f"def main(a0: f32[n, 4]) -> f32[n, 4] {{\n{steps}\n  return a{lines}\n}}"


def test_a_build_that_takes_too_long_is_ended_and_the_next_one_runs() -> None:
    settings = replace(SETTINGS, max_seconds=1)
    with TestClient(make_app(settings), base_url=BASE, headers={"origin": BASE}) as client:
        problem = post(client, text=long_program(20_000)).json()["problem"]
        assert problem == {"message": "the build took more than 1 seconds and was ended"}
        assert "stages" in post(client, text="def main(x: f32[4]) -> f32[4] = x").json()


def test_a_long_build_that_nobody_waits_for_is_ended() -> None:
    asked = []

    async def is_wanted() -> bool:
        return False

    async def is_abandoned() -> bool:
        asked.append(True)
        return len(asked) > 1  # the first call is before the build starts

    async def run() -> None:
        builder = Builder("model.relvm")
        process = await builder.start()
        assert b"stages" in await builder.build(BuildRequest(TEXT), is_wanted)
        assert await builder.build(BuildRequest(long_program(20_000)), is_abandoned) is None
        assert process.returncode == -signal.SIGKILL
        # The client has already gone away, so the build does not start.
        assert await builder.build(BuildRequest(TEXT), is_abandoned) is None and builder.process is None
        assert b"stages" in await builder.build(BuildRequest(TEXT), is_wanted)
        await builder.close()
        assert await builder.build(BuildRequest(TEXT), is_wanted) is None and builder.process is None

    asyncio.run(run())


def process_seconds(number: str) -> float:
    """Return the CPU time of a process in seconds.  number: its process ID."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_ctrl_c_ends_the_command_and_its_process(tmp_path: Path) -> None:
    (tmp_path / "model.relvm").write_text(TEXT)
    command = [sys.executable, "-P", "-m", "relvm", "explore", "model.relvm", "--no-browser"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True) as server:
        address = re.search(r"http://127\.0\.0\.1:(\d+)/[\w-]{43}/", server.stdout.readline())
        assert address
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        assert len(children) == 1
        page = httpx.get(address[0])
        assert page.status_code == 200 and "return add(a, b)" in page.text
        with pytest.raises(OSError):  # the server listens only on 127.0.0.1
            socket.create_connection(("127.0.0.2", int(address[1])), timeout=5).close()
        with ThreadPoolExecutor(2) as pool:  # one build runs, and the other one waits for it
            origin = {"origin": f"http://127.0.0.1:{address[1]}"}
            body = BuildRequest(long_program(20_000)).to_json()
            send = functools.partial(httpx.post, f"{address[0]}build", content=body, headers=origin, timeout=600)
            builds = [pool.submit(send) for _ in range(2)]
            while process_seconds(children[0]) < 2:  # starting the process takes less than this
                time.sleep(0.05)
            server.send_signal(signal.SIGINT)
            assert [build.result().status_code for build in builds] == [204, 204]
        assert server.communicate(timeout=600) == ("", "")
    assert server.returncode == 0
    assert not Path(f"/proc/{children[0]}").exists()


def test_the_command_opens_the_browser(tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    os.mkfifo(opened)
    browser = f"{sys.executable} -c \"import sys; open('{opened}', 'w').write(sys.argv[1])\" %s"
    command = [sys.executable, "-P", "-m", "relvm", "explore"]
    environment = os.environ | {"BROWSER": browser}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        printed = server.stdout.readline()
        assert opened.read_text() in printed.split()
        server.terminate()


MISTAKES = {
    "an_executable": (["model.rvm"], "expected a model (.onnx or .relvm)"),
    "a_missing_file": (["missing.relvm"], "missing.relvm: No such file or directory"),
    "dims_of_a_text": (["model.relvm", "--dim", "n=4"], "--dim applies to ONNX models"),
    "dims_of_the_example": (["--dim", "n=4"], "--dim requires an ONNX model"),
    "an_output_for_a_model": (["model.onnx", "-o", "out.relvm"], "the text of an ONNX model is read-only"),
    "an_output_that_is_a_folder": (["model.relvm", "-o", "."], "expected a file, but it is a folder"),
    "an_output_with_another_suffix": (
        ["model.relvm", "-o", "out.onnx"],
        "-o out.onnx: expected a file ending in .relvm",
    ),
    "options_of_a_processor": (["--target", "c -march=haswell"], "the stages do not depend on the processor"),
    "a_port": (["--port", "65536"], "--port 65536: expected at least 0"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_wrong_options_are_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("model.relvm", "model.rvm", "model.onnx"):
        Path(file).write_text(TEXT)
    options, words = MISTAKES[name]
    assert main(["explore", *options, "--no-browser"]) == 1
    assert words in capsys.readouterr().err


def test_the_extra_is_named_if_it_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.delitem(sys.modules, "relvm.explore.live.server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["explore", "--no-browser"]) == 1
    assert "pip install 'relvm[explore]'" in capsys.readouterr().err


@contextlib.contextmanager
def served() -> Iterator[int]:
    """Run the server of the command in a thread, and yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = uvicorn.Server(server_config(make_app(replace(SETTINGS, port=port))))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield port
        finally:
            server.should_exit = True
            thread.join()


def get(port: int) -> int:
    return httpx.get(f"http://127.0.0.1:{port}/{TOKEN}/", timeout=600).status_code


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nX-Slow: "], ids=["no head", "half a head"])
def test_idle_connections_do_not_stop_the_server(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections beyond the limit replace the oldest ones, long before these have to send a request."""
    monkeypatch.setattr(connections, "MAX_SECONDS", 3600.0)
    with served() as port, contextlib.ExitStack() as stack:
        for _ in range(connections.MAX_CONNECTIONS + 8):
            idle = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            idle.sendall(sent)
        assert get(port) == 200


def test_a_connection_without_a_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_SECONDS", 0.05)
    with served() as port:
        for sent in (b"", b"GET / HTTP/1.1\r\n"):
            with socket.create_connection(("127.0.0.1", port), timeout=600) as idle:
                idle.sendall(sent)
                with contextlib.suppress(ConnectionResetError):
                    assert idle.recv(1) == b""


def test_a_body_that_does_not_arrive_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relvm.explore.live.app._BODY_SECONDS", 0.05)
    with served() as port, socket.create_connection(("127.0.0.1", port), timeout=600) as slow:
        host = f"127.0.0.1:{port}"
        head = f"POST /{TOKEN}/build HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Length: 99\r\n\r\n{{"
        slow.sendall(head.encode())
        assert slow.recv(1000).startswith(b"HTTP/1.1 408 ")
