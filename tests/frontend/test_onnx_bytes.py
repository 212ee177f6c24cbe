"""The digest of a model includes the files with external data, also those that only subgraphs use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from frontend.onnx_models import onnx

import relvm
from relvm.frontend.onnx_bytes import content_digest, external_files, model_digest, without_weights

pytestmark = pytest.mark.usefixtures("cache")

X = np.float32([1, 2])


def external(tensor: onnx.TensorProto, location: str, folder: Path, values: np.ndarray) -> None:
    """Write `values` to a file as the external data of a tensor."""
    (folder / location).write_bytes(values.tobytes())
    tensor.ClearField("float_data")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    del tensor.external_data[:]
    for key, value in (("location", location), ("offset", "0"), ("length", str(values.nbytes))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Save a model with external data in the main graph and in a branch of an If."""
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
          s = Add(x, w)
          y = If(c) <then_branch = t () => (float[2] a) { k = Constant<value = float[2] {1, 1}>()  a = Add(s, k) },
                     else_branch = e () => (float[2] b) { b = Identity(s) }>
        }"""
    )
    external(proto.graph.initializer[0], "w.bin", tmp_path, np.float32([10, 20]))
    branch = next(each for each in proto.graph.node[1].attribute if each.name == "then_branch").g
    external(branch.node[0].attribute[0].t, "k.bin", tmp_path, np.float32([100, 200]))
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    return tmp_path / "m.onnx"


def run(model: Path) -> list[float]:
    loaded = relvm.load_model(model, threads=1)
    result = loaded(X, np.array(True)).numpy().tolist()
    loaded.wait_compiled()  # the build is then in the cache
    return result


def test_all_files_are_found(model: Path) -> None:
    content = model.read_bytes()
    assert external_files(without_weights(content)) == ["k.bin", "w.bin"]
    digest, files = model_digest(content, model.parent)
    assert digest and {path.name for path in files} == {"k.bin", "w.bin"}


def test_a_model_with_external_data_is_cached_until_a_file_changes(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(model) == [111, 222]
    with monkeypatch.context() as patch:
        patch.setattr("relvm.frontend.onnx.from_onnx", None)  # a cached model is not imported
        assert run(model) == [111, 222]
    for name, values, result in (("w.bin", [0, 0], [101, 202]), ("k.bin", [5, 5], [6, 7])):
        (model.parent / name).write_bytes(np.float32(values).tobytes())
        assert run(model) == result


def test_models_without_external_data_need_no_folder() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> location (float[2] location) => (float[2] y) { y = Exp(location) }'
    )
    content = proto.SerializeToString()
    assert b"\x08location" in content
    assert model_digest(content, None) == ("", {})  # the string could be the key of external data
    renamed = content.replace(b"location", b"elsewher")
    assert model_digest(renamed, None) == (content_digest(renamed), {})


def test_what_has_no_digest(model: Path, tmp_path: Path) -> None:
    content = model.read_bytes()
    assert model_digest(content, None) == ("", {})
    assert model_digest(content.replace(b"w.bin", b"../xx"), tmp_path) == ("", {})
    assert model_digest(content.replace(b"w.bin", b"v.bin"), tmp_path) == ("", {})
    assert model_digest(content[:-1], tmp_path) == ("", {})
    swapped = content.replace(b"\n\x08location\x12\x05w.bin", b"\x12\x05w.bin\n\x08location")
    assert swapped != content and model_digest(swapped, tmp_path) == ("", {})
