"""Tests of examples/serve with tritonclient, an existing client of the protocol, and of the examples in its README."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
import tritonclient.http as triton
from serve.load import start
from support.documents import ROOT, blocks, commands
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

import relvm
from relvm import vm
from relvm.frontend.text import parse_module

README = ROOT / "examples/serve/README.md"
DTYPES = ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64", "str"]
TYPES = {f"x{number}": f"{dtype}[n]" for number, dtype in enumerate(DTYPES)}
MODELS = {
    "softmax": "def main(x: f32[n, 2]) -> f32[n, 2] = softmax(x, axis=1)",
    "two inputs": "def main(x: f32[n, 3], k: i64[n]) -> (f32[n, 3], i64[n]) { return (tanh(x), add(k, k)) }",
    "echo": f"def main({', '.join(f'{name}: {type_}' for name, type_ in TYPES.items())}) -> "
    f"({', '.join(TYPES.values())}) {{ return ({', '.join(TYPES)}) }}",
    "scalars": "def main(x: f32[], k: i64, b: bool, f: f64) -> (f32[], i64, bool, f64)"
    " { return (multiply(x, x), k + 1, b, f) }",
    "number/1": "def main() -> i32[2] = const(i32[2], [1, 1])",
    "number/2": "def main() -> i32[2] = const(i32[2], [2, 2])",
    "number/10": "def main() -> i32[2] = const(i32[2], [10, 10])",
    "pair": "def main(x: f32[2, 2]) -> f32[2, 2] = relu(x)",
    "wide": "def main(x: f32[n, m]) -> f32[n, m] = relu(x)",
    "texts": "def main(x: str[n]) -> str[n] = x",
}
ECHOED = [
    np.array([True, False]),
    *(np.array([0, np.iinfo(f"i{2**k}").max], f"i{2**k}") for k in range(4)),
    *(np.array([0, np.iinfo(f"u{2**k}").max], f"u{2**k}") for k in range(4)),
    np.array([0.5, -65504], np.float16),
    np.array([1.5, -3e38], ml_dtypes.bfloat16),
    np.array([0.1, -1e-40], np.float32),
    np.array([0.1, 1e300], np.float64),
    np.array(["", "\u00e9\0 \U0001f600"], object),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder of models in bytecode."""
    folder = tmp_path_factory.mktemp("models")
    for name, text in MODELS.items():
        path = folder / name / "model.rvm" if "/" in name else folder / f"{name}.rvm"
        path.parent.mkdir(parents=True, exist_ok=True)
        vm.build(parse_module(text), target="bytecode").save(path)
    node = onnx.helper.make_node("Neg", ["x"], ["y"])
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, []) for name in "xy"]
    graph = onnx.helper.make_graph([node], "g", ends[:1], ends[1:])
    (folder / "negative").mkdir()
    onnx.save(onnx.helper.make_model(graph, ir_version=8), folder / "negative" / "model.onnx")
    (folder / "broken.onnx").write_bytes(b"no model")
    (folder / "empty").mkdir()
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Start a server for the folder, and yield its address.  Clients may load and unload models."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        server = start(listener, folder, ["--allow-control", "--workers", "1"])
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        server.kill()
        server.communicate()


@pytest.fixture
def client(address: str) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(address) as opened:
        yield opened


def inputs(arrays: dict[str, np.ndarray], binary: bool = True) -> list[triton.InferInput]:
    made = [triton.InferInput(name, list(each.shape), np_to_triton_dtype(each.dtype)) for name, each in arrays.items()]
    return [each.set_data_from_numpy(array, binary) for each, array in zip(made, arrays.values(), strict=True)]


def test_health_and_metadata(client: triton.InferenceServerClient) -> None:
    assert client.is_server_live() and client.is_server_ready()
    metadata = client.get_server_metadata()
    assert (metadata["name"], metadata["version"]) == ("relvm", relvm.__version__)
    assert metadata["extensions"] == ["binary_tensor_data", "model_repository"]
    assert client.get_model_metadata("two inputs") == {
        "name": "two inputs",
        "versions": ["1"],
        "platform": "relvm_rvm",
        "inputs": [
            {"name": "x", "datatype": "FP32", "shape": [-1, 3]},
            {"name": "k", "datatype": "INT64", "shape": [-1]},
        ],
        "outputs": [
            {"name": "output_0", "datatype": "FP32", "shape": [-1, 3]},
            {"name": "output_1", "datatype": "INT64", "shape": [-1]},
        ],
    }
    negative = client.get_model_metadata("negative")
    assert negative["platform"] == "relvm_onnx" and negative["outputs"] == [
        {"name": "y", "datatype": "FP32", "shape": []}
    ]
    assert client.is_model_ready("number", "10") and not client.is_model_ready("number", "3")
    assert not client.is_model_ready("broken") and not client.is_model_ready("none")


@pytest.mark.parametrize("binary", [True, False])
def test_each_datatype_arrives_and_returns(client: triton.InferenceServerClient, binary: bool) -> None:
    arrays = dict(zip(TYPES, ECHOED, strict=True))
    bf16 = {} if binary else {"x10": arrays.pop("x10")}  # the client sends bf16 only as binary data
    wanted = [triton.InferRequestedOutput(f"output_{k}", binary) for k in range(len(ECHOED))]
    result = client.infer("echo", inputs(arrays, binary) + inputs(bf16), outputs=wanted, request_id="seven")
    assert result.get_response()["id"] == "seven" and result.get_response()["model_version"] == "1"
    for number, array in enumerate(ECHOED[:-1]):
        got = result.as_numpy(f"output_{number}")
        assert got.dtype == array.dtype and got.tobytes() == array.tobytes(), DTYPES[number]
    texts = result.as_numpy("output_13")
    assert [each.decode() if binary else each for each in texts] == list(ECHOED[-1])


def test_bytes_that_are_not_text(client: triton.InferenceServerClient) -> None:
    raw = np.array([b"\xff\x00", b""], object)
    listed = inputs({"x": raw})
    assert list(client.infer("texts", listed).as_numpy("output_0")) == list(raw)
    with pytest.raises(InferenceServerException, match="strings that are not UTF-8; request it as binary data"):
        client.infer("texts", listed, outputs=[triton.InferRequestedOutput("output_0", binary_data=False)])


def test_only_requested_outputs_are_returned(client: triton.InferenceServerClient) -> None:
    listed = inputs({"x": np.ones((2, 3), np.float32), "k": np.array([5, -6])})
    result = client.infer("two inputs", listed, outputs=[triton.InferRequestedOutput("output_1")])
    assert [each["name"] for each in result.get_response()["outputs"]] == ["output_1"]
    assert result.as_numpy("output_1").tolist() == [10, -12] and result.as_numpy("output_0") is None


@pytest.mark.parametrize("binary", [True, False])
def test_scalars_and_ranks_of_0(client: triton.InferenceServerClient, binary: bool) -> None:
    sent = {"x": np.float32(0.5), "k": np.int64(41), "b": np.bool_(True), "f": np.float64(2.5)}
    result = client.infer("scalars", inputs({name: np.array(each) for name, each in sent.items()}, binary))
    got = [result.as_numpy(f"output_{k}") for k in range(4)]
    assert [each.shape for each in got] == [()] * 4 and [each.item() for each in got[1:]] == [42, True, 2.5]
    assert got[0] == 0.25
    assert client.infer("negative", inputs({"x": np.array(3, np.float32)}, binary)).as_numpy("y") == -3


def test_the_highest_version_is_the_default(client: triton.InferenceServerClient) -> None:
    assert client.get_model_metadata("number")["versions"] == ["1", "2", "10"]
    for asked, version in (("", 10), ("1", 1), ("2", 2)):
        result = client.infer("number", [], model_version=asked)
        assert result.as_numpy("output_0").tolist() == [version, version]
        assert result.get_response()["model_version"] == str(version)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_requests(client: triton.InferenceServerClient, algorithm: str) -> None:
    x = np.arange(300_000, dtype=np.float32).reshape(3, -1)
    result = client.infer(
        "wide", inputs({"x": x}), request_compression_algorithm=algorithm, response_compression_algorithm=algorithm
    )
    assert np.array_equal(result.as_numpy("output_0"), x)


def test_large_tensors(client: triton.InferenceServerClient) -> None:
    """Large binary responses are sent in parts, and large JSON is converted in the conversion process."""
    x = np.arange(1 << 20, dtype=np.float32).reshape(2, -1)
    assert np.array_equal(client.infer("wide", inputs({"x": x})).as_numpy("output_0"), x)
    part = x[:, : 1 << 14]
    wanted = [triton.InferRequestedOutput("output_0", binary_data=False)]
    assert np.array_equal(client.infer("wide", inputs({"x": part}, False), outputs=wanted).as_numpy("output_0"), part)
    texts = np.array(["a" * 100] * 20_000, object)
    assert list(client.infer("texts", inputs({"x": texts})).as_numpy("output_0")) == [b"a" * 100] * 20_000
    assert list(client.infer("texts", inputs({"x": texts}, False)).as_numpy("output_0")) == [b"a" * 100] * 20_000


def test_empty_tensors(client: triton.InferenceServerClient) -> None:
    for binary in (True, False):
        for x in (np.zeros((0, 5), np.float32), np.zeros((4, 0), np.float32)):
            assert client.infer("wide", inputs({"x": x}, binary)).as_numpy("output_0").shape == x.shape
        assert client.infer("texts", inputs({"x": np.zeros(0, object)}, binary)).as_numpy("output_0").shape == (0,)


def test_errors_name_what_is_wrong(client: triton.InferenceServerClient) -> None:
    x = np.ones((3, 2), np.float32)
    for name, arrays, status, message in (
        ("pair", {"x": x}, "400", r"input x: expected f32\[2, 2\], got the shape \[3, 2\]"),
        ("pair", {"y": x}, "400", "no input y"),
        ("pair", {}, "400", r"expected the inputs x, got none"),
        ("pair", {"x": x[:2].astype(np.float64)}, "400", "input x: expected the datatype FP32, got FP64"),
        (
            "two inputs",
            {"x": np.ones((2, 3), np.float32), "k": np.array([1])},
            "400",
            "argument k: expected dimension 0 to be 2, got 1",
        ),
        ("softmaks", {"x": x}, "404", "no model softmaks; did you mean softmax"),
        ("broken", {"x": x}, "503", "model broken is not loaded: .*broken.onnx"),
    ):
        with pytest.raises(InferenceServerException, match=message) as caught:
            client.infer(name, inputs(arrays))
        assert caught.value.status() == status
    with pytest.raises(InferenceServerException, match="version 3 of model number; there are 1, 2, 10"):
        client.infer("number", [], model_version="3")
    with pytest.raises(InferenceServerException, match="no output y"):
        client.infer("pair", inputs({"x": x[:2]}), outputs=[triton.InferRequestedOutput("y")])
    with pytest.raises(InferenceServerException, match="does not support sequences"):
        client.infer("pair", inputs({"x": x[:2]}), sequence_id=5)
    with pytest.raises(InferenceServerException, match=r"output output_0: .* does not support classification"):
        client.infer("pair", inputs({"x": x[:2]}), outputs=[triton.InferRequestedOutput("output_0", class_count=1)])


def test_the_index_says_why_a_model_is_not_loaded(client: triton.InferenceServerClient) -> None:
    index = {(each["name"], each["version"]): each for each in client.get_model_repository_index()}
    assert [version for name, version in index if name == "number"] == ["1", "2", "10"]
    assert index["softmax", "1"]["state"] == "READY"
    assert index["broken", "1"]["state"] == "UNAVAILABLE" and "broken.onnx" in index["broken", "1"]["reason"]
    assert "expected model.onnx, or a folder 1 with it" in index["empty", "1"]["reason"]


def test_models_are_loaded_and_unloaded(client: triton.InferenceServerClient, folder: Path) -> None:
    def save(text: str) -> None:
        vm.build(parse_module(f"def main(x: f32[n]) -> f32[n] = {text}"), target="bytecode").save(folder / "new.rvm")

    def ask() -> list[float]:
        return client.infer("new", inputs({"x": np.float32([-1, 4])})).as_numpy("output_0").tolist()

    with pytest.raises(InferenceServerException, match="no model new in "):
        client.load_model("new")
    save("relu(x)")
    states = {each["name"]: each["reason"] for each in client.get_model_repository_index()}
    assert states["new"] == "not loaded"
    client.load_model("new")
    assert client.is_model_ready("new") and ask() == [0, 4]
    save("multiply(x, x)")
    assert ask() == [0, 4]  # replacing the file alone has no effect
    client.load_model("new")
    assert ask() == [1, 16]
    (folder / "new.rvm").write_bytes(b"no executable")
    with pytest.raises(InferenceServerException, match=r"version 1: .*new\.rvm"):
        client.load_model("new")
    assert ask() == [1, 16]  # the old model remains
    client.unload_model("new")
    assert not client.is_model_ready("new")
    with pytest.raises(InferenceServerException, match="model new is not loaded: unloaded"):
        ask()
    with pytest.raises(InferenceServerException, match="no model none"):
        client.unload_model("none")
    with pytest.raises(InferenceServerException, match="loads models only as they are in its folder"):
        client.load_model("softmax", config="{}")


def test_the_examples_of_the_readme_run(address: str) -> None:
    def placed(text: str) -> str:
        return text.replace("127.0.0.1:8000", address)

    count = 0
    for language, text in blocks(README):
        if language == "python":
            exec(placed(text), {"__name__": "page"})
            count += 1
        for words in commands(placed(text)) if language == "sh" and shutil.which("curl") else ():
            if words[0] == "curl":
                done = subprocess.run([*words, "--fail", "--silent"], capture_output=True, text=True)
                assert done.returncode == 0 and "0.119" in done.stdout, done
                count += 1
    assert count >= 1
