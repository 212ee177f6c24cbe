"""Weights in .safetensors files: reading, and binding to text programs and ONNX models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from frontend.onnx_models import onnx

import relvm
from relvm import vm
from relvm.cli import main
from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmFormatError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
)
from relvm.frontend.onnx import from_onnx
from relvm.frontend.text import parse_module
from relvm.frontend.weights import bind_weights, read_weights
from relvm.ir import print_module

TEXT = "def main(x: f32[n, k], fc_weight: f32[k, m], fc_bias: f32[m]) -> f32[n, m] = add(matmul(x, fc_weight), fc_bias)"
MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[n, 2] x, float[3] b) => (float[n, 3] y) <float[2, 3] fc.weight = {0, 0, 0, 0, 0, 0}, int64[2] to = {-1, 3}> {
  t = MatMul(x, fc.weight)  r = Reshape(t, to)  y = Add(r, b)
}"""
W, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)
X = np.ones((4, 2), np.float32)
DTYPES = [
    *(
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
    ),
    *("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.relvm").write_text(TEXT)
    model = onnx.parser.parse_model(MODEL.replace("fc.weight", "fc_weight"))
    model.graph.initializer[0].name = model.graph.node[0].input[1] = "fc.weight"
    onnx.save(model, tmp_path / "model.onnx")
    safetensors.numpy.save_file({"fc.weight": W, "fc.bias": B}, tmp_path / "text.safetensors", {"by": "test"})
    safetensors.numpy.save_file({"fc.weight": W, "b": B}, tmp_path / "onnx.safetensors")
    return tmp_path


# ---- reading ----


def test_every_dtype_is_read(tmp_path: Path) -> None:
    dtypes = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in DTYPES}
    arrays = {name: np.arange(6).astype(dtype).reshape(2, 3) for name, dtype in dtypes.items()}
    arrays |= {"scalar": np.array(2.5, np.float32), "empty": np.zeros((0, 3), np.float32)}
    safetensors.numpy.save_file(arrays, tmp_path / "all.safetensors", {"format": "np"})
    found = read_weights(tmp_path / "all.safetensors")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()
        assert not array.size or not found[name].flags.writeable


def test_a_file_without_tensors(tmp_path: Path) -> None:
    write(tmp_path, b"{}")
    assert read_weights(tmp_path / "w.safetensors") == {}


def test_elements_need_not_be_aligned(tmp_path: Path) -> None:
    entries = {"a": entry("U8", [1], 0, 1), "b": entry("F32", [2], 1, 9)}
    write(tmp_path, json.dumps(entries).encode(), b"\7" + np.float32([1, 2]).tobytes())
    assert read_weights(tmp_path / "w.safetensors")["b"].tolist() == [1, 2]


def entry(dtype: Any, shape: Any, *offsets: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}


def write(folder: Path, header: bytes, data: bytes = b"") -> None:
    (folder / "w.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + data)


@pytest.mark.parametrize(
    ("tensor", "error", "message"),
    [
        (entry("F32", [2], 0, 4), RelvmFormatError, "w: expected 8 bytes for F32 and shape [2], got bytes 0 to 4 of 8"),
        (entry("F32", [3], 0, 12), RelvmFormatError, "got bytes 0 to 12 of 8"),
        (entry("F32", [1], 8, 4), RelvmFormatError, "expected 4 bytes"),
        (entry("F32", [1], -4, 0), RelvmFormatError, "expected 4 bytes"),
        (entry("F32", [-1], 0, 4), RelvmFormatError, "fits in 64 bits, got [-1]"),
        (entry("F32", [1] * 65, 0, 4), RelvmFormatError, "expected a shape of at most 64 sizes"),
        (entry("F32", [True], 0, 4), RelvmFormatError, "expected a shape of at most 64 sizes"),
        (entry("F32", [1 << 70], 0, 8), RelvmFormatError, "sizes whose product fits in 64 bits"),
        (entry("F32", [0, 1 << 62, 1 << 62], 0, 0), RelvmFormatError, "sizes whose product fits in 64 bits"),
        (entry("C64", [1], 0, 8), RelvmUnsupportedError, "dtype C64 is not supported; expected BOOL"),
        (entry(3, [1], 0, 4), RelvmFormatError, "expected dtype, shape and data_offsets"),
        ({"dtype": "F32"}, RelvmFormatError, "expected dtype, shape and data_offsets, got {'dtype': 'F32'}"),
        (7, RelvmFormatError, "expected dtype, shape and data_offsets, got 7"),
    ],
    ids=str,
)
def test_a_damaged_tensor_is_named(tmp_path: Path, tensor: Any, error: type[RelvmError], message: str) -> None:
    write(tmp_path, json.dumps({"w": tensor}).encode(), bytes(8))
    with pytest.raises(error) as caught:
        read_weights(tmp_path / "w.safetensors")
    assert message in str(caught.value) and "w.safetensors: w: " in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a .safetensors file"),
        (b"1234567", "expected a .safetensors file"),
        (b"\xff" * 16, "whose first 8 bytes are the length of its header"),
        (b"\4\0\0\0\0\0\0\0[1, ", "the header is not valid"),
        (b"\2\0\0\0\0\0\0\0[]", "expected an object as header, got []"),
        (b"\2\0\0\0\0\0\0\0\xff\xff", "the header is not valid"),
        (b"\x0d\0\0\0\0\0\0\0" + b'{"a":1,"a":2}', "the key a is given twice"),
        ((100_000).to_bytes(8, "little") + b"[" * 100_000, "the header is not valid"),
    ],
    ids=["empty", "short", "long", "text", "list", "bytes", "twice", "nested"],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "w.safetensors").write_bytes(content)
    with pytest.raises(RelvmFormatError, match=r"w\.safetensors: ") as caught:
        read_weights(tmp_path / "w.safetensors")
    assert message in str(caught.value)


# ---- text ----


def test_parameters_become_constants_and_dimensions_sizes(folder: Path) -> None:
    bound = bind_weights(parse_module(TEXT), folder / "text.safetensors")
    assert print_module(bound).startswith("def main(x: f32[n, 2]) -> f32[n, 3] = add(")
    machine = vm.VirtualMachine(vm.build(bound, target="bytecode"))
    np.testing.assert_array_equal(machine["main"](X), X @ W + B)


def test_parameters_without_a_weight_stay() -> None:
    module = parse_module(TEXT)
    bound = bind_weights(module, {"fc_weight": W})
    assert [param.name for param in bound["main"].params] == ["x", "fc_bias"]
    assert bind_weights(module, {})["main"] is module["main"]


def test_loops_and_closures_use_weights() -> None:
    text = """def main(x: f32[3], w: f32[k], c: bool) {
      f = fn (a: f32[3]) { return multiply(a, w) }
      y = if c then f(x) else w
      return y
    }"""
    machine = vm.VirtualMachine(vm.build(bind_weights(parse_module(text), {"w": 2 * B}), target="bytecode"))
    assert machine["main"](B, True).numpy().tolist() == machine["main"](B, False).numpy().tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ({"fc.wieght": W}, RelvmNameError, "main has no parameter fc.wieght; did you mean fc_weight?"),
        ({"fc.bias": B, "fc_bias": B}, RelvmNameError, "two weights are for the parameter fc_bias of main"),
        ({"fc.bias": W}, RelvmShapeError, "parameter fc_bias of main is f32[m]: expected rank 1, got 2"),
        ({"fc.weight": W, "fc.bias": X[0]}, RelvmShapeError, "parameter fc_bias of main is f32[m]: "),
        ({"fc.bias": B.astype(np.float64)}, RelvmTypeError, "fc_bias of main is f32[m]: expected dtype f32, got f64"),
        ({"fc.bias": B.astype(np.complex64)}, RelvmTypeError, "weights: fc.bias: unsupported tensor dtype complex64"),
        ({"fc.bias": [1, 2, 3]}, RelvmTypeError, "weights: fc.bias: expected an array, got list"),
        ({3: B}, RelvmTypeError, "weights: expected names as keys, got int"),
    ],
    ids=str,
)
def test_a_weight_that_does_not_fit_is_refused(weights: Any, error: type[RelvmError], message: str) -> None:
    with pytest.raises(error) as caught:
        bind_weights(parse_module(TEXT), weights)
    assert message in str(caught.value)


def test_a_function_that_the_module_calls_is_refused() -> None:
    module = parse_module("def main(x: f32[n], i: i64) -> f32[n] = if i > 0 then @main(x, i - 1) else x")
    with pytest.raises(RelvmUnsupportedError, match="main calls main, so the parameters of main cannot"):
        bind_weights(module, {"x": B})
    with pytest.raises(RelvmNameError, match="no function mian; did you mean main"):
        bind_weights(module, {"x": B}, function="mian")


# ---- ONNX ----


def test_initializers_and_inputs_are_replaced(folder: Path) -> None:
    for weights in (folder / "onnx.safetensors", {"fc.weight": W, "b": B}):
        module = from_onnx(folder / "model.onnx", weights=weights)
        assert dict(module["main"].attributes)["input_names"] == ("x",)
        machine = vm.VirtualMachine(vm.build(module, target="bytecode"))
        np.testing.assert_array_equal(machine["main"](X), X @ W + B)
    np.testing.assert_array_equal(from_onnx(folder / "model.onnx")["main"].params[1].name, "b")


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ({"fc.wieght": W}, RelvmNameError, "no initializer or input 'fc.wieght'; did you mean fc.weight?"),
        ({"fc.weight": W.T}, RelvmShapeError, "initializer fc.weight is f32[2, 3], but its weight is f32[3, 2]"),
        ({"to": B[:2]}, RelvmTypeError, "initializer to is i64[2], but its weight is f32[2]"),
        ({"b": B[:2]}, RelvmShapeError, "parameter b of main is f32[3]: "),
        ({"t": W}, RelvmNameError, "no initializer or input 't'"),
    ],
    ids=str,
)
def test_a_weight_that_does_not_fit_the_model_is_refused(
    folder: Path, weights: Any, error: type[RelvmError], message: str
) -> None:
    with pytest.raises(error) as caught:
        from_onnx(folder / "model.onnx", weights=weights)
    assert message in str(caught.value)


# ---- load_model and the command ----


@pytest.mark.parametrize("name", ["text", "onnx"])
def test_a_model_is_loaded_with_weights(folder: Path, name: str) -> None:
    path = folder / ("model.relvm" if name == "text" else "model.onnx")
    options: dict[str, Any] = {"exec_mode": "bytecode", "target": "bytecode"}
    model = relvm.load_model(path, weights=folder / f"{name}.safetensors", **options)
    np.testing.assert_array_equal(model(X), X @ W + B)
    assert "x: f32[n, 2]" in model.explore(target="bytecode")["given"].text
    if name == "onnx":
        loaded = relvm.load_model(path.read_bytes(), weights={"fc.weight": W, "b": B}, **options)
        np.testing.assert_array_equal(loaded(X), X @ W + B)
    model.save(folder / "model.rvm")
    with pytest.raises(RelvmArgumentError, match=r"weights: only for compiling a model, but .* is already compiled"):
        relvm.load_model(folder / "model.rvm", weights={})


def test_weights_are_part_of_the_cache_key(folder: Path) -> None:
    for factor in (1, 2):
        model = relvm.load_model(folder / "model.onnx", weights={"fc.weight": factor * W, "b": B})
        np.testing.assert_array_equal(model(X), X @ (factor * W) + B)


@pytest.mark.parametrize("name", ["text", "onnx"])
def test_commands_take_weights(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(folder / ("model.relvm" if name == "text" else "model.onnx"))
    weights = ("--weights", str(folder / f"{name}.safetensors"))
    np.save(folder / "x.npy", X)
    inputs = ("--input", f"x={folder}/x.npy", "-o", str(folder / "out.npz"))
    for mode in ((), ("--exec-mode", "bytecode", "--target", "bytecode")):
        assert main(["run", path, *weights, *inputs, *mode]) == 0
        np.testing.assert_array_equal(np.load(folder / "out.npz")[("output", "y")[name == "onnx"]], X @ W + B)
    assert main(["compile", path, *weights, "-o", str(folder / "model.rvm"), "--target", "bytecode"]) == 0
    assert main(["run", str(folder / "model.rvm"), *inputs]) == 0
    assert main(["compare", path, *weights, "--modes", "reference,bytecode", "--target", "bytecode"]) == 0
    assert main(["info", path, *weights, "--json"]) == 0
    assert main(["export", path, *weights, "-o", str(folder / "sources")]) == 0
    assert main(["show", path, *weights]) == 0
    assert "x: f32[n, 2]) -> f32[n, 3]" in capsys.readouterr().out
    assert main(["run", str(folder / "model.rvm"), *weights, *inputs]) == 1
    assert ": --weights: only for compiling a model" in capsys.readouterr().err
    assert main(["info", str(folder / "model.rvm"), *weights]) == 1
    assert main(["bench", path, *weights, "--against", "onnxruntime"]) == 1
