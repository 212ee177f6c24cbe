"""Sessions of models that relvm has compiled (.rvm)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relvm.onnxruntime as ort
from relvm import vm
from relvm.frontend.text import parse_module
from relvm.onnxruntime.errors import InvalidArgument, InvalidGraph, NoSuchFile, NotImplemented


def compiled(folder: Path, text: str) -> Path:
    path = folder / "model.rvm"
    vm.build(parse_module(text), target="bytecode").save(path)
    return path


def test_a_session_of_a_compiled_model(tmp_path: Path) -> None:
    text = "def main(x: f32[n, 4], y: f16[2 * n]) -> (f32[n, 4], f16[2 * n]) { return (relu(x), relu(y)) }"
    session = ort.InferenceSession(compiled(tmp_path, text))
    assert [(each.name, each.type, each.shape) for each in session.get_inputs()] == [
        ("x", "tensor(float)", ["n", 4]),
        ("y", "tensor(float16)", [None]),
    ]
    assert [each.name for each in session.get_outputs()] == ["output_0", "output_1"]
    feed = {"x": np.float32([[-1, 2, -3, 4]]), "y": np.float16([-1, 1])}
    first, second = session.run(None, feed)
    assert (first.tolist(), second.tolist()) == ([[0, 2, 0, 4]], [0, 1])
    (only,) = session.run(["output_1"], feed)
    assert only.tolist() == [0, 1]
    with pytest.raises(InvalidArgument, match="Invalid output name:z"):
        session.run(["z"], feed)


def test_what_a_session_of_a_compiled_model_refuses(tmp_path: Path) -> None:
    with pytest.raises(NoSuchFile, match="File doesn't exist"):
        ort.InferenceSession(tmp_path / "missing.rvm")
    path = compiled(tmp_path, "def main(x: f32[n], y: i64) -> f32[n] { return relu(x) }")
    with pytest.raises(NotImplemented, match=r"y has the type i64: sessions of compiled models support tensors only"):
        ort.InferenceSession(path)
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("n", 3)
    with pytest.raises(InvalidArgument, match="is already compiled: no session option can change its sizes"):
        ort.InferenceSession(path, options)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InvalidGraph, match="it may be truncated"):
        ort.InferenceSession(path)
