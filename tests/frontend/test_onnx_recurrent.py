"""Tests of GRU, LSTM and RNN, compared with ONNX Runtime: attributes, symbolic sizes, and unsupported nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from frontend.onnx_answers import against_onnxruntime, assert_answers, c_answers, onnxruntime_answers
from frontend.onnx_models import make_model
from onnx import helper

from relvm.errors import RelvmFormatError, RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
NAMES = {"RNN": 1, "GRU": 2, "LSTM": 3}


def cell(
    op: str, given: str, steps: int = 5, batch: int = 3, hidden: int = 6, constant: bool = True, **attributes: Any
):
    """Return a model of one node, and its inputs.  The sizes of x are symbolic.

    given: the optional inputs: B (biases), L (lengths), H, C (initial states) and P (peepholes).   constant: whether
    inputs other than x and L are initializers.
    """
    random = np.random.default_rng(7)
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    gates, inputs = GATES[op], 4

    def made(*shape: int) -> np.ndarray:
        return random.uniform(-1, 1, shape).astype(np.float32)

    x = made(steps, batch, inputs)
    fixed = {"w": made(directions, gates * hidden, inputs), "r": made(directions, gates * hidden, hidden)}
    optional = {
        "B": made(directions, 2 * gates * hidden),
        "L": np.array([5, 0, 3], np.int32),
        "H": made(directions, batch, hidden),
        "C": made(directions, batch, hidden),
        "P": made(directions, 3 * hidden),
    }
    fixed |= {name: optional[name] for name in given if name != "L"}
    names = ["x", "w", "r", *(name if name in given else "" for name in "BLHCP"[: 5 if op == "LSTM" else 3])]
    outputs = ["y", "y_h", "y_c"][: 3 if op == "LSTM" else 2]
    node = helper.make_node(op, names, outputs, hidden_size=hidden, **attributes)
    graph_inputs = [("x", x.dtype, ["steps", "batch", inputs])]
    arrays = [x]
    if "L" in given:
        graph_inputs.append(("L", np.int32, ["batch"]))
        arrays.append(optional["L"])
    if not constant:
        graph_inputs += [(name, array.dtype, array.shape) for name, array in fixed.items()]
        arrays += fixed.values()
    return make_model([node], graph_inputs, outputs, fixed if constant else {}), arrays


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "variable"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("op", "given", "attributes"),
    [
        ("RNN", "BLH", {"clip": 0.4}),
        ("GRU", "BLH", {"linear_before_reset": 1}),
        ("GRU", "BLH", {"clip": 0.4}),
        ("GRU", "L", {}),
        ("LSTM", "BLHCP", {}),
        ("LSTM", "LC", {"clip": 0.4}),
        ("LSTM", "B", {"input_forget": 1}),
    ],
)
def test_against_onnxruntime(op: str, given: str, attributes: dict, direction: str, constant: bool) -> None:
    proto, arrays = cell(op, given, direction=direction, constant=constant, **attributes)
    against_onnxruntime(proto, *arrays)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (("Relu", "Softsign", "Softplus"), {}),
        (("HardSigmoid", "Affine", "LeakyRelu"), {"activation_alpha": [0.3, 0.5, 0.1], "activation_beta": [0.4, 0.1]}),
        (("Sigmoid", "ScaledTanh", "Elu"), {"activation_alpha": [0.5, 0.3], "activation_beta": [0.7]}),
        (("ThresholdedRelu", "Tanh", "Sigmoid"), {"activation_alpha": [0.3]}),
    ],
)
def test_activations(op: str, names: tuple, numbers: dict) -> None:
    chosen = list(names[: NAMES[op]])
    takers = {"activation_alpha": ("HardSigmoid", "Affine", "LeakyRelu", "ScaledTanh", "Elu", "ThresholdedRelu")}
    takers["activation_beta"] = ("HardSigmoid", "Affine", "ScaledTanh")
    given = {key: list(values)[: sum(name in takers[key] for name in chosen)] for key, values in numbers.items()}
    given = {key: values for key, values in given.items() if values}
    proto, arrays = cell(op, "BLH", activations=chosen, clip=2.0, **given)
    against_onnxruntime(proto, *arrays)


def test_the_batch_may_come_first() -> None:
    """ONNX Runtime does not support layout 1, so it runs the model with layout 0 and transpositions around it."""
    for op, given in (("GRU", "BH"), ("LSTM", "BHC"), ("RNN", "H")):
        plain_model, (x,) = cell(op, given, direction="bidirectional")
        wanted = onnxruntime_answers(plain_model, [x])
        proto, _ = cell(op, given, direction="bidirectional", layout=1)
        for tensor in proto.graph.initializer:
            if tensor.name in "HC":
                array = np.frombuffer(tensor.raw_data, np.float32).reshape(tensor.dims).transpose(1, 0, 2)
                tensor.raw_data, tensor.dims[:] = array.tobytes(), array.shape
        got = c_answers(proto, [np.ascontiguousarray(x.transpose(1, 0, 2))])
        back = [got[0].transpose(1, 2, 0, 3), *(state.transpose(1, 0, 2) for state in got[1:])]
        assert_answers(back, wanted)


def test_a_model_serves_every_length_and_batch() -> None:
    proto, _ = cell("GRU", "B", linear_before_reset=1)
    for steps, batch in ((1, 1), (0, 2), (9, 4)):
        x = np.random.default_rng(steps).standard_normal((steps, batch, 4)).astype(np.float32)
        got = c_answers(proto, [x])
        if steps:
            assert_answers(got, onnxruntime_answers(proto, [x]))
        else:
            assert got[0].shape == (0, 1, 2, 6) and not got[1].any()


def test_sizes_of_weights_may_have_names() -> None:
    """Symbolic sizes of weights are checked at run time."""
    proto, arrays = cell("LSTM", "BHCP", constant=False)
    wanted = onnxruntime_answers(proto, arrays)
    for info in proto.graph.input:
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            dim.dim_param = f"{info.name}{axis}"
    assert_answers(c_answers(proto, arrays), wanted)
    with pytest.raises(RelvmShapeError, match="dimension 2 to be 5, got 4"):
        c_answers(proto, [arrays[0], np.zeros((1, 24, 5), np.float32), *arrays[2:]])


def test_what_is_refused() -> None:
    for attributes, error, message in (
        ({"activations": ["Sine"]}, RelvmUnsupportedError, r"RNN, opset 17.*activation sine"),
        ({"activation_alpha": [1.0]}, RelvmFormatError, "activation_alpha has 1 element more"),
        ({"activations": ["Tanh", "Tanh"]}, Exception, "expected 1 name"),
    ):
        proto, _ = cell("RNN", "", **attributes)
        with pytest.raises(error, match=message):
            from_onnx(proto)
    node = helper.make_node("ReverseSequence", ["x", "l"], ["y"], time_axis=1, batch_axis=2)
    proto = make_model([node], [("x", np.float32, [1, 2, 3]), ("l", np.int64, [3])], ["y"])
    with pytest.raises(RelvmFormatError, match="time_axis is 1 and batch_axis is 2"):
        from_onnx(proto)
