"""Tests of model files: weights are read once and not copied, and inconsistent files raise typed errors."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import numpy as np
import pytest
from frontend.onnx_models import make_model, onnx
from onnx import TensorProto, helper, numpy_helper

from relvm.errors import RelvmError, RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx
from relvm.frontend.onnx.model_file import read_model_file
from relvm.ir.interpreter import evaluate

LARGE = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
X = np.ones((2, 64), np.float32)


def large_model() -> onnx.ModelProto:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return make_model([node], [("x", np.float32, ["n", 64])], ["y"], {"w": LARGE, "small": np.ones(3, np.int64)})


def test_large_initializers_stay_in_their_file(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(large_model(), path)
    file = read_model_file(path)
    array, small = (file.array(tensor, tensor.name) for tensor in file.proto.graph.initializer)
    assert np.shares_memory(array, np.frombuffer(file.content, np.uint8))
    assert not np.shares_memory(small, np.frombuffer(file.content, np.uint8))  # it would keep the file in memory
    np.testing.assert_array_equal(array, LARGE)
    assert small.tolist() == [1, 1, 1]
    np.testing.assert_array_equal(evaluate(from_onnx(path), "main", X), X @ LARGE)


def test_bytes_and_models_give_what_files_give(tmp_path: Path) -> None:
    model = large_model()
    for source in (model, model.SerializeToString()):
        np.testing.assert_array_equal(evaluate(from_onnx(source), "main", X), X @ LARGE)


def external(path: Path, **entries: object) -> onnx.ModelProto:
    """Save a model with external data, and return it.  entries: the entries of external_data."""
    model = large_model()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    onnx.save(model, path)
    return model


def test_external_data_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "weights").write_bytes(b"12345678" + LARGE.tobytes() + b"rest")
    external(tmp_path / "model.onnx", location="sub/weights", offset=8, length=LARGE.nbytes)
    file = read_model_file(tmp_path / "model.onnx")
    assert "sub/weights" in file.digest
    array = file.array(file.proto.graph.initializer[0], "w")
    (content,) = file.files.values()
    assert np.shares_memory(array, np.frombuffer(content, np.uint8))
    np.testing.assert_array_equal(array, LARGE)
    np.testing.assert_array_equal(evaluate(from_onnx(tmp_path / "model.onnx"), "main", X), X @ LARGE)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"location": "nowhere"}, "initializer w: cannot read the elements from .*nowhere: No such file"),
        ({"location": "../weights"}, "external data must be a file in the model's folder, got '../weights'"),
        ({"location": "/etc/passwd"}, "external data must be a file in the model's folder, got '/etc/passwd'"),
        (
            {"location": "weights", "offset": 4, "length": LARGE.nbytes},
            r"bytes 4 to 16388 lie outside weights, which has 16384",
        ),
        ({"location": "weights", "offset": -4}, "bytes -4 to"),
        ({"location": "weights", "length": 8}, r"expected 16384 bytes for float32 and dimensions \[64, 64\], got 8"),
        ({"location": "weights", "offset": "x"}, "expected integers as the offset and length"),
        ({}, "expected the name of a file as the location of external data, got None"),
        ({"location": "weights", "offset": 1 << 64}, "bytes 18446744073709551616 to .* lie outside weights"),
    ],
)
def test_external_data_that_are_not_there_are_refused(tmp_path: Path, entries, message) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for place in (tmp_path, folder):
        (place / "weights").write_bytes(LARGE.tobytes())
    external(folder / "model.onnx", **entries)
    with pytest.raises(RelvmFormatError, match=message):
        from_onnx(folder / "model.onnx")


def test_external_data_of_bytes_need_a_path(tmp_path: Path) -> None:
    model = external(tmp_path / "model.onnx", location="weights")
    with pytest.raises(RelvmUnsupportedError, match="found only if the model is given by its path"):
        from_onnx(model.SerializeToString())


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2", "float4_e2m1fn", "bfloat16", "float8_e5m2", "bool"])
@pytest.mark.parametrize("count", [1, 5, 8])
def test_elements_of_few_bits(name: str, count: int) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    array = np.array([1, 0, 1, 1, 0, 1, 0, 1])[:count].astype(dtype)
    tensor = numpy_helper.from_array(array, "c")
    graph = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["y"])], "test", [], [helper.make_empty_tensor_value_info("y")], [tensor]
    )
    result = evaluate(from_onnx(helper.make_model(graph)), "main")
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.astype(np.float32), array.astype(np.float32))


def sparse(indices: np.ndarray, dims: list[int]) -> onnx.ModelProto:
    values = numpy_helper.from_array(np.array([3, 4], np.float32), "s")
    tensor = helper.make_sparse_tensor(values, numpy_helper.from_array(indices), dims)
    graph = helper.make_graph(
        [helper.make_node("Identity", ["s"], ["y"])],
        "test",
        [],
        [helper.make_empty_tensor_value_info("y")],
        sparse_initializer=[tensor],
    )
    return helper.make_model(graph)


@pytest.mark.parametrize("indices", [np.array([1, 5]), np.array([[0, 1], [1, 2]])])
def test_sparse_initializers(indices: np.ndarray) -> None:
    result = evaluate(from_onnx(sparse(indices, [2, 3])), "main")
    np.testing.assert_array_equal(result, np.array([[0, 3, 0], [0, 0, 4]], np.float32))


@pytest.mark.parametrize(
    ("indices", "dims", "error"),
    [
        (np.array([1, 6]), [2, 3], RelvmFormatError),
        (np.array([-1, 2]), [2, 3], RelvmFormatError),
        (np.array([1]), [2, 3], RelvmFormatError),
        (np.array([[0, 1, 0], [1, 2, 0]]), [2, 3], RelvmFormatError),
        (np.array([1, 5]), [2, -3], RelvmFormatError),
        (np.array([1, 5]), [2**40, 2**40], RelvmUnsupportedError),
    ],
)
def test_sparse_initializers_that_are_inconsistent(indices: np.ndarray, dims: list[int], error) -> None:
    with pytest.raises(error, match="initializer s"):
        from_onnx(sparse(indices, dims))


@pytest.mark.parametrize(
    "change",
    [
        lambda tensor: tensor.dims.append(2),
        lambda tensor: tensor.dims.extend([2**62, 2**62]),
        lambda tensor: tensor.dims.append(-1),
        lambda tensor: tensor.dims.extend([1] * 100),
        lambda tensor: setattr(tensor, "data_type", 99),
        lambda tensor: setattr(tensor, "data_type", TensorProto.UNDEFINED),
        lambda tensor: setattr(tensor, "raw_data", b"123"),
        lambda tensor: (tensor.ClearField("raw_data"), tensor.float_data.append(1)),
        lambda tensor: (tensor.ClearField("raw_data"), tensor.string_data.append(b"text")),
    ],
)
def test_inconsistent_tensors_are_named(change) -> None:
    model = large_model()
    change(model.graph.initializer[1])
    with pytest.raises(RelvmFormatError, match="initializer small"):
        from_onnx(model)


def test_no_beginning_of_a_model_is_more_than_refused() -> None:
    content = large_model().SerializeToString()
    for size in (*range(0, 200), *range(200, len(content), 97)):
        with pytest.raises(RelvmError):
            from_onnx(content[:size])


def test_damaged_models_are_refused_or_imported() -> None:
    content, chance = large_model().SerializeToString(), random.Random(5)
    head = len(content) - LARGE.nbytes
    for _ in range(1500):
        damaged = bytearray(content)
        for _ in range(chance.randrange(1, 4)):
            at = (
                chance.randrange(head // 2) if chance.random() < 0.5 else len(content) - 1 - chance.randrange(head // 2)
            )
            damaged[at] = chance.randrange(256)
        with contextlib.suppress(RelvmError):
            from_onnx(bytes(damaged))
