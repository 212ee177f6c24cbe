"""Tests of options of from_onnx for inputs: dimension names as mere hints, and initializers as parameters."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from relvm import vm
from relvm.cli.main import main
from relvm.errors import RelvmArgumentError, RelvmNameError, RelvmShapeError, RelvmTypeError
from relvm.frontend.onnx import from_onnx


def f(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.fixture
def model() -> ModelProto:
    """Return a model of z = concat(x * scale, y).  The symbolic size n occurs in x and y.  scale has an initializer."""
    x, y, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in "xyz")
    scale = helper.make_tensor_value_info("scale", TensorProto.FLOAT, ["k"])
    nodes = [helper.make_node("Mul", ["x", "scale"], ["a"]), helper.make_node("Concat", ["a", "y"], ["z"], axis=0)]
    weights = [numpy_helper.from_array(np.full(3, 2, np.float32), "scale")]
    graph = helper.make_graph(nodes, "g", [x, y, scale], [z], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def expected(model: ModelProto, *args: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (result,) = session.run(None, dict(zip(("x", "y", "scale"), args, strict=False)))
    return result


def machine(model: ModelProto, **options: object) -> vm.VirtualMachine:
    return vm.VirtualMachine(vm.build(from_onnx(model, **options)))


def test_a_shared_name_is_one_size_unless_it_is_a_hint(model: ModelProto) -> None:
    with pytest.raises(RelvmShapeError, match="argument y: expected dimension 0 to be 2, got 4"):
        machine(model)["main"](f(2, 3), f(4, 3))
    result = machine(model, dims={"n": None})["main"](f(2, 3), f(4, 3))
    np.testing.assert_array_equal(result, expected(model, f(2, 3), f(4, 3)))


def test_an_initializer_can_be_a_parameter(model: ModelProto) -> None:
    run = machine(model, inputs=["scale"])["main"]
    for scale in (f(3), f(1) + 7):
        np.testing.assert_array_equal(run(f(2, 3), f(2, 3), scale), expected(model, f(2, 3), f(2, 3), scale))
    assert len(from_onnx(model, inputs=(name for name in ["scale"]))["main"].params) == 3
    np.testing.assert_array_equal(machine(model)["main"](f(2, 3), f(2, 3)), expected(model, f(2, 3), f(2, 3)))


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"inputs": ["scal"]}, RelvmNameError, "no input 'scal'; did you mean scale"),
        ({"inputs": "scale"}, RelvmArgumentError, r"got 'scale'; write \['scale'\]"),
        ({"inputs": None}, RelvmTypeError, "inputs: expected a collection of names, got NoneType|inputs"),
        ({"inputs": [3]}, RelvmTypeError, "inputs: expected names"),
        ({"dims": ["n"]}, RelvmTypeError, "dims: expected a mapping"),
        ({"dims": {"m": None}}, RelvmNameError, "unknown dimension m"),
        ({"dims": {"n": "?"}}, RelvmArgumentError, r"expected a size, a \(minimum, maximum\) pair, or None"),
        ({"dims": {"n": True}}, RelvmArgumentError, "n is True"),
        ({"dims": {"n": (np.int64(3), 2)}}, RelvmArgumentError, "expected a size"),
        ({"dims": {"n": [1, 2, 3]}}, RelvmArgumentError, "expected a size"),
        ({"dims": {"n": -1}}, RelvmArgumentError, "expected a size"),
    ],
)
def test_wrong_options_are_refused(model: ModelProto, options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        from_onnx(model, **options)


def test_a_range_of_sizes_leaves_the_items_of_a_sequence_open() -> None:
    items = helper.make_tensor_sequence_value_info("items", TensorProto.FLOAT, ["n", 3])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in "xy")
    last = helper.make_tensor("last", TensorProto.INT64, [], [-1])
    nodes = [helper.make_node("SequenceAt", ["items", "last"], ["item"]), helper.make_node("Add", ["item", "x"], ["y"])]
    graph = helper.make_graph(nodes, "g", [items, x], [y], [last])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    result = machine(model, dims={"n": (1, 4)})["main"]([f(3, 3), f(2, 3)], f(2, 3))
    np.testing.assert_array_equal(result, f(2, 3) + f(2, 3))


@pytest.mark.parametrize("size", [2, np.int64(2), np.uint8(2), [1, np.int32(2)], (np.int8(2), 3)])
def test_sizes_are_integers_of_any_kind(model: ModelProto, size: object) -> None:
    result = machine(model, dims={"n": size})["main"](f(2, 3), f(2, 3))
    np.testing.assert_array_equal(result, expected(model, f(2, 3), f(2, 3)))


@pytest.mark.parametrize("channels, groups", [(4, 2), (4, 1), (5, 2)])
def test_transposed_convolution_of_symbolic_channels(channels: int, groups: int) -> None:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"{name}{i}" for i in range(3)]) for name in "xwz"]
    node = helper.make_node("ConvTranspose", ["x", "w"], ["z"], group=groups)
    graph = helper.make_graph([node], "g", infos[:2], infos[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    args = f(2, channels, 3), f(channels, 2, 2)
    if channels % groups:
        with pytest.raises(RelvmShapeError, match="5 channels, expected a multiple of 2 such as 4"):
            machine(model)["main"](*args)
    else:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        (result,) = session.run(None, dict(zip("xw", args, strict=True)))
        np.testing.assert_allclose(machine(model)["main"](*args), result, rtol=1e-5)


def test_the_command_takes_hints(model: ModelProto, tmp_path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    assert main(["run", str(path), "--random", "--dim", "n=?", "--dim", "y_dim0=5"]) == 0
    captured = capsys.readouterr()
    assert "z: float32[6, 3]" in captured.out and "x_dim0=1" in captured.err
