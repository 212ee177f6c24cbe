"""Invalid requests to examples/serve get a 4xx status with a message, and the server keeps running."""

from __future__ import annotations

import asyncio
import gzip
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from serve.bodies import Bodies
from serve.settings import Settings
from serving import HEADER_LENGTH, PATH, binary_body, json_body, outputs, rows, serving, tensor

from relvm import vm
from relvm.frontend.text import parse_module

TEXT = """
def main(x: f32[n, 2]) -> f32[n, 2] = multiply(x, x)
def many(x: f32[n, 2], k: i32[m], b: bool[m], t: str[m], u: u64[m], h: f16[m])
  -> (f32[n, 2], i32[m], bool[m], str[m], u64[m], f16[m]) { return (x, k, b, t, u, h) }
def narrow(x: f32[n, m]) -> f32[n] = sum(x, axes=(1,))
"""


@pytest.fixture(scope="module")
def executable() -> vm.Executable:
    return vm.build(parse_module(TEXT), target="bytecode")


X = np.float32([[1, 2], [3, 4]])


def asked(**changes: Any) -> bytes:
    """Return the body of a request in which some fields of the input are changed, or removed if they are None."""
    fields = {**tensor("x", X), "data": X.ravel().tolist()} | changes
    return json.dumps({"inputs": [{key: each for key, each in fields.items() if each is not None}]}).encode()


def with_fields(**fields: Any) -> bytes:
    return json.dumps({"inputs": [{**tensor("x", X), "data": X.ravel().tolist()}], **fields}).encode()


INPUT = asked()[len(b'{"inputs": ') : -1]
WRONG_JSON = [
    (b"", "the body is not JSON"),
    (b"{", "the body is not JSON"),
    (b"[" * 100_000, "the body is not JSON"),
    (b"\xff", "the body is not JSON"),
    (b"[]", "the body: expected a JSON object, got a list"),
    (b'{"inputs": ' + b"1" * 5000 + b"}", "the body is not JSON"),
    (b"{}", 'expected "inputs"'),
    (b'{"inputs": {}}', "inputs: expected a list of objects"),
    (b'{"inputs": [1]}', "inputs: expected a list of objects"),
    (b'{"inputs": [{}]}', "inputs: expected a name"),
    (b'{"inputs": []}', "expected the inputs x, got none"),
    (b'{"inputs": [' + INPUT[1:-1] + b"," + INPUT[1:-1] + b"]}", "input x is given twice"),
    (asked(name="y"), "no input y"),
    (asked(name="x" * 100_000), "no input xxx"),
    (asked(name="\ud800"), "no input \\ud800"),
    (asked(datatype=None), "input x: expected the datatype FP32, got None"),
    (asked(datatype="INT32"), "input x: expected the datatype FP32, got INT32"),
    (asked(datatype=[[]]), "input x: expected the datatype FP32"),
    (asked(shape=None), "input x: shape: expected a list of integers"),
    (asked(shape=[2, 2.0]), "input x: shape: expected a list of integers"),
    (asked(shape=[2, True]), "input x: shape: expected a list of integers"),
    (asked(shape=[-2, -2]), "input x: shape: expected a list of integers"),
    (asked(shape=[2, 10**30]), "input x: shape: expected a list of integers"),
    (asked(shape=[4]), "input x: expected f32[n, 2], got the shape [4]"),
    (asked(shape=[1] * 100_000), "input x: expected f32[n, 2], got the shape [1, 1"),
    (asked(shape=[1, 4]), "input x: expected f32[n, 2], got the shape [1, 4]"),
    (asked(shape=[3, 2]), "input x: shape [3, 2] has 6 elements, got 4 elements"),
    (asked(shape=[2**62, 2]), "input x: shape"),
    (asked(data=None), "input x: expected data, or the parameter binary_data_size"),
    (asked(data={}), "input x: expected elements of FP32, got null or objects"),
    (asked(data="abcd"), "input x: expected elements of FP32, got strings"),
    (asked(data=[1, 2, 3, "4"]), "input x: expected elements of FP32, got strings"),
    (asked(data=[1, 2, 3, True]), "input x: expected elements of FP32, got booleans"),
    (asked(data=[1, 2, 3, [None]]), "input x: expected elements of FP32, got null or objects"),
    (asked(data=[[1, 2], [3]]), "input x: data is not an array"),
    (asked(data=[[1, 2, 3, 4]]), "input x: shape [2, 2] has 4 elements, got nested lists of the shape [1, 4]"),
    (asked(data=[1, 2, 3, float("nan")]), "the body is not JSON: NaN is not a number of JSON"),
    (asked(data=[1, 2, 3, float("-inf")]), "the body is not JSON: -Infinity is not a number of JSON"),
    (asked(data=[1, 2, 3, "#"]).replace(b'"#"', b"1e999"), "input x: a number is outside of the range of FP32"),
    (asked(data=[1, 2, 3, 1e39]), "input x: a number is outside of the range of FP32"),
    (asked(data=[1, 2, 3, 10**400]), "input x: a number is outside of the range of FP32"),
    (asked(data="#").replace(b'"#"', b"[" * 900 + b"]" * 900), "input x: "),
    (asked(data="#").replace(b'"#"', b"[" * 70 + b"1" + b"]" * 70), "input x: "),
    (asked(parameters=[]), "input x: parameters: expected an object, got a list"),
    (asked(parameters={"binary_data_size": 16}), "input x: expected data or the parameter binary_data_size, not both"),
    (asked(parameters={"shared_memory_region": "a"}), "input x: parameter shared_memory_region: this server does not"),
    (with_fields(id=7), "id: expected a string, got an integer"),
    (with_fields(parameters=7), "the request: parameters: expected an object"),
    (with_fields(parameters={"binary_data_output": 1}), "the request: parameter binary_data_output: expected true or"),
    (with_fields(parameters={"timeout": -1}), "the request: parameter timeout: expected microseconds"),
    (with_fields(parameters={"timeout": 1.5}), "the request: parameter timeout: expected microseconds"),
    (with_fields(parameters={"sequence_id": 1}), "the request: parameter sequence_id: this server does not support"),
    (with_fields(outputs=[{"name": "y"}]), "no output y"),
    (with_fields(outputs=[{"name": "output_0"}] * 2), "output output_0 is given twice"),
    (with_fields(outputs=[{"name": "output_0", "parameters": {"binary_data": "yes"}}]), "output output_0: parameter"),
    (with_fields(outputs=7), "outputs: expected a list of objects"),
]


def test_wrong_json_is_refused(executable: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        for body, message in WRONG_JSON:
            answer = await client.post(PATH, content=body)
            assert answer.status_code == 400, (body[:200], answer.text)
            assert list(answer.json()) == ["error"] and answer.json()["error"].startswith(message), answer.text
            assert len(answer.content) < 2000
        answer = await client.post(PATH, content=asked())
        assert answer.json() == {
            "model_name": "model",
            "model_version": "1",
            "outputs": [{"name": "output_0", "datatype": "FP32", "shape": [2, 2], "data": [1, 4, 9, 16]}],
        }
        assert (await client.post(PATH, content=asked(data=X.tolist()))).json() == answer.json()
        assert (await client.post(PATH, content=asked(parameters={"other": 1}))).json() == answer.json()
        assert service.bodies.held_bytes == 0

    serving(test, executable)


MANY = {
    "x": X,
    "k": np.int32([1]),
    "b": np.array([True]),
    "t": np.array(["a"], object),
    "u": np.uint64([1]),
    "h": np.float16([1]),
}
WRONG_ELEMENTS = [
    ("k", [1.0], "input k: expected elements of INT32, got floats"),
    ("k", [True], "input k: expected elements of INT32, got booleans"),
    ("k", [2**31], "input k: a number is outside of the range of INT32"),
    ("k", [2**70], "input k: a number is outside of the range of INT32"),
    ("u", [-1], "input u: a number is outside of the range of UINT64"),
    ("u", [2**64], "input u: a number is outside of the range of UINT64"),
    ("b", [1], "input b: expected elements of BOOL, got integers"),
    ("t", [1], "input t: expected elements of BYTES, got integers"),
    ("t", ["\ud800"], "input t: data is not an array: 'utf-8' codec can't encode"),
    ("t", [["a", "b"]], "input t: shape [1] has 1 element, got nested lists of the shape [1, 2]"),
    ("t", ["a", "b"], "input t: shape [1] has 1 element, got 2 elements"),
    ("h", [70000.0], "input h: a number is outside of the range of FP16"),
]


def test_elements_are_of_their_datatype(executable: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        for name, data, message in WRONG_ELEMENTS:
            request = json.loads(json_body(MANY))
            (changed,) = (each for each in request["inputs"] if each["name"] == name)
            changed["data"] = data
            answer = await client.post(PATH, content=json.dumps(request).encode())
            assert answer.status_code == 400 and answer.json()["error"].startswith(message), answer.text
        answer = outputs(await client.post(PATH, content=json_body(MANY)))
        assert [each.tolist() for each in answer.values()] == [each.tolist() for each in MANY.values()]

    serving(test, executable, function="many")


def test_lists_of_strings_have_one_length() -> None:
    executable = vm.build(parse_module("def main(t: str[n]) -> str[n] = t"), target="bytecode")

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        for data in ([["a"], "b"], ["a", ["b", "c"]]):
            fields = {"name": "t", "datatype": "BYTES", "shape": [2], "data": data}
            answer = await client.post(PATH, content=json.dumps({"inputs": [fields]}).encode())
            assert answer.status_code == 400 and "its lists have different lengths" in answer.text

    serving(test, executable)


def binary(head: dict[str, Any] | bytes, data: bytes, length: int | str | None = None) -> tuple[bytes, dict[str, str]]:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return text + data, {HEADER_LENGTH: str(len(text) if length is None else length)}


def sized(name: str, array: np.ndarray, size: object) -> dict[str, Any]:
    return {"inputs": [tensor(name, array, parameters={"binary_data_size": size})]}


WRONG_BINARY = [
    (binary(sized("x", X, 16), X.tobytes()[:-1]), "the inputs state 16 bytes of binary data, but 15 follow the JSON"),
    (binary(sized("x", X, 16), X.tobytes() + b"a"), "the inputs state 16 bytes of binary data, but 17 follow"),
    (binary(sized("x", X, 8), X.tobytes()[:8]), "input x: shape [2, 2] of FP32 has 16 bytes, got 8"),
    (binary(sized("x", X, -16), X.tobytes()), "input x: parameter binary_data_size: expected an integer"),
    (binary(sized("x", X, 16.0), X.tobytes()), "input x: parameter binary_data_size: expected an integer"),
    (binary(sized("x", X, 10**30), X.tobytes()), "input x: shape [2, 2] of FP32 has 16 bytes"),
    (binary(sized("x", X, 16), X.tobytes(), 10**6), "inference-header-content-length: expected at most"),
    (binary(sized("x", X, 16), X.tobytes(), -1), "inference-header-content-length: expected the length of the JSON"),
    (binary(sized("x", X, 16), X.tobytes(), "1" * 50), "inference-header-content-length: expected the length"),
    (binary(sized("x", X, 16), X.tobytes(), 0), "the body is not JSON"),
    (binary(sized("x", X, 16), X.tobytes(), 20), "the body is not JSON"),
    (binary(asked(), b"abc"), "the inputs state 0 bytes of binary data, but 3 follow the JSON"),
    ((json.dumps(sized("x", X, 16)).encode(), {}), "the inputs state 16 bytes of binary data, but 0 follow the JSON"),
]


def test_binary_data_that_does_not_add_up_is_refused(executable: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        for (body, headers), message in WRONG_BINARY:
            answer = await client.post(PATH, content=body, headers=headers)
            assert answer.status_code == 400 and answer.json()["error"].startswith(message), answer.text
        for padding in range(16):  # the JSON can have any length, because arrays are aligned or copied
            body, headers = binary_body({"x": X}, id="a" * padding)
            assert (
                outputs(await client.post(PATH, content=body, headers=headers))["output_0"].tolist() == (X * X).tolist()
            )
        assert service.bodies.held_bytes == 0

    serving(test, executable)


WRONG_STRINGS = [
    (b"", "input t: expected 1 string, got 0 in 0 bytes"),
    (b"\1\0\0", "input t: expected 1 string, got 0 in 3 bytes"),
    (b"\xff\xff\xff\xff", "input t: string 0 of 4294967295 bytes exceeds the binary data"),
    (b"\1\0\0\0", "input t: string 0 of 1 byte exceeds the binary data"),
    (b"\1\0\0\0ab", "input t: after 1 string, the binary data has 1 byte more"),
]


def test_strings_that_do_not_add_up_are_refused(executable: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        others = {name: array for name, array in MANY.items() if name not in ("t", "b")}
        for strings, message in WRONG_STRINGS:
            assert message in await refused(client, others, strings, b"\1")
        assert "input b: expected 0 or 1 for each BOOL" in await refused(client, others, b"\1\0\0\0a", b"\2")

    async def refused(client: httpx.AsyncClient, others: dict[str, Any], strings: bytes, flag: bytes) -> str:
        listed = json.loads(json_body(others))["inputs"]
        listed += sized("t", MANY["t"], len(strings))["inputs"] + sized("b", MANY["b"], len(flag))["inputs"]
        body, headers = binary({"inputs": listed}, strings + flag)
        answer = await client.post(PATH, content=body, headers=headers)
        assert answer.status_code == 400
        return answer.json()["error"]

    serving(test, executable, function="many")


def test_the_number_of_strings_is_bounded() -> None:
    executable = vm.build(parse_module("def main(t: str[n]) -> str[n] = t"), target="bytecode")

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        content = struct.pack("<I", 0) * (1 << 21)
        head = {"name": "t", "datatype": "BYTES", "shape": [1 << 21], "parameters": {"binary_data_size": len(content)}}
        body, headers = binary({"inputs": [head]}, content)
        answer = await client.post(PATH, content=body, headers=headers)
        assert (answer.status_code, "at most 1048576 strings" in answer.text) == (400, True)

    serving(test, executable)


def test_a_small_request_cannot_ask_for_much_memory(executable: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        for count in (1 << 28, 1 << 45, 1 << 62):
            fields = {"name": "x", "datatype": "FP32", "shape": [count, 0], "data": []}
            answer = await client.post(PATH, content=json.dumps({"inputs": [fields]}).encode())
            assert answer.status_code in (400, 413), answer.text
        fields["shape"] = [1 << 16, 0]
        wanted = json.dumps({"inputs": [fields]}).encode()
        answer = await client.post(PATH, content=wanted)
        assert (answer.status_code, "too many for JSON; set binary_data" in answer.text) == (400, True)
        assert service.bodies.held_bytes == 0

    serving(test, executable, function="narrow", max_run_bytes=1 << 24, max_body=1 << 16)


def test_responses_count_towards_the_bytes_that_are_held(executable: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        fields = {"name": "x", "datatype": "FP32", "shape": [1 << 16, 0], "data": []}
        body = json.dumps({"inputs": [fields], "parameters": {"binary_data_output": True}}).encode()
        answer = await client.post(PATH, content=body)
        assert (answer.status_code, "requests and responses exceed 131072 bytes" in answer.text) == (503, True)
        assert answer.headers["retry-after"] == "1" and service.bodies.held_bytes == 0
        fields["shape"] = [1 << 12, 0]  # the JSON is longer
        answer = await client.post(PATH, content=json.dumps({"inputs": [fields]}).encode())
        assert answer.status_code == 200 and service.bodies.held_bytes == 0
        fields["shape"] = [(1 << 15) - 1, 0]
        answer = await client.post(PATH, content=json.dumps({"inputs": [fields]}).encode())
        assert answer.status_code == 503 and service.bodies.held_bytes == 0

    serving(test, executable, function="narrow", max_body=1 << 17, max_bodies=1 << 17)


# ---- compressed bodies ----


def test_compressed_bodies_are_bounded(executable: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        bomb = gzip.compress(b" " * (100 << 20))
        assert len(bomb) < 200_000
        for encoding, content, status, message in (
            ("gzip", gzip.compress(asked()), 200, ""),
            ("deflate", zlib.compress(asked()), 200, ""),
            ("GZIP", gzip.compress(asked()), 200, ""),
            ("identity", asked(), 200, ""),
            ("gzip", bomb, 413, "the body has more than 1048576 bytes"),
            ("gzip", gzip.compress(bomb), 400, "the body is not JSON"),
            ("gzip", gzip.compress(asked())[:-1], 400, "the body: the gzip data is incomplete"),
            ("gzip", gzip.compress(asked()) + b"a", 400, "the body: data follows the end of the gzip data"),
            ("gzip", b"", 400, "the body: the gzip data is incomplete"),
            ("gzip", asked(), 400, "the body is not gzip data"),
            ("deflate", gzip.compress(asked()), 400, "the body is not deflate data"),
            ("br", asked(), 415, "content-encoding br: expected identity, gzip, deflate"),
            ("gzip, gzip", asked(), 415, "content-encoding gzip, gzip: expected"),
        ):
            answer = await client.post(PATH, content=content, headers={"content-encoding": encoding})
            assert answer.status_code == status, (encoding, answer.text)
            assert status == 200 or answer.json()["error"].startswith(message), answer.text
        assert service.bodies.held_bytes == 0

    serving(test, executable, max_body=1 << 20)


def test_a_decompressed_body_counts_with_its_size(executable: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        bomb = gzip.compress(b" " * (3 << 20))
        answers = [client.post(PATH, content=bomb, headers={"content-encoding": "gzip"}) for _ in range(8)]
        statuses = [each.status_code for each in await asyncio.gather(*answers)]
        assert set(statuses) <= {400, 503} and 503 in statuses
        assert service.bodies.held_bytes == 0

    serving(test, executable, max_body=4 << 20, max_bodies=4 << 20)


def test_bodies_are_released() -> None:
    bodies = Bodies(Settings())
    hold = bodies.hold()
    hold.add(5)
    hold.release()
    hold.release()
    assert bodies.held_bytes == 0


# ---- paths ----


def test_paths_lead_only_to_models(executable: vm.Executable) -> None:
    async def test(client: httpx.AsyncClient, service: Any) -> None:
        for path in (
            "/v2/models/../infer",
            "/v2/models/%2e%2e/infer",
            "/v2/models/..%2f..%2fetc%2fpasswd/infer",
            "/v2/models/a%00b/infer",
            "/v2/models//infer",
            "/v2/models/none/infer",
            "/v2/models/model/versions/2/infer",
            "/v2/models/model/versions/%ff/infer",
            "/v2/models/model/versions/01/infer",
            "/v2/repository/models/model/load",
            "/v2/repository/models/model/unload",
        ):
            answer = await client.post(path, content=asked())
            assert answer.status_code == 404 and list(answer.json()) == ["error"], path
        for method, path in (("GET", PATH), ("POST", "/v2"), ("DELETE", "/v2/models/model")):
            answer = await client.request(method, path)
            assert answer.status_code == 405 and list(answer.json()) == ["error"]
        assert (await client.post("/v2/models/model/versions/1/infer", content=asked())).status_code == 200

    serving(test, executable)


def test_a_request_may_ask_for_less_time(tmp_path: Path) -> None:
    text = """
    def main(x: f32[n]) -> f32[n] = @loop(1000000000, x)
    def loop(i: i64, x: f32[n]) -> f32[n] { return if i < 1 then x else @loop(i - 1, x) }"""

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        body = json_body({"x": rows(1, 3)[0]}, parameters={"timeout": 50_000})
        answer = await client.post(PATH, content=body)
        assert (answer.status_code, answer.json()) == (504, {"error": "no result within 0.05 seconds"})

    serving(test, vm.build(parse_module(text)), timeout=1)
