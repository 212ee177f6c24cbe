"""Tests of DynamicQuantizeLSTM, compared with ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_answers import against_onnxruntime
from frontend.onnx_models import make_model
from onnx import helper

from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx

STEPS, BATCH, INPUTS, HIDDEN = 7, 3, 6, 8


def model(weights: dict[str, np.ndarray], feeds: dict[str, np.ndarray], order: list[str], **attributes: object):
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        [name if name in weights or name in feeds else "" for name in order],
        ["y", "h", "c"],
        domain="com.microsoft",
        hidden_size=HIDDEN,
        **attributes,
    )
    symbolic = {"x": ["steps", "batch", INPUTS]}
    inputs = [(name, array.dtype, symbolic.get(name, array.shape)) for name, array in feeds.items()]
    return make_model([node], inputs, ["y", "h", "c"], weights)


ORDER = ["x", "w", "r", "b", "lens", "h0", "c0", "p", "w_scale", "w_zero", "r_scale", "r_zero"]


def case(ways: int, dtype: str, per_column: bool, lengths: bool, states: bool) -> tuple[dict, dict]:
    random = np.random.default_rng(ways + per_column)
    info, columns = np.iinfo(dtype), (ways, 4 * HIDDEN) if per_column else (ways,)
    weights = {
        name: random.integers(info.min, info.max, (ways, size, 4 * HIDDEN), dtype) // (2 if info.min < 0 else 1)
        for name, size in (("w", INPUTS), ("r", HIDDEN))
    }
    for name in ("w", "r"):
        weights[f"{name}_scale"] = random.uniform(0.002, 0.006, columns).astype(np.float32)
        middle = random.integers(-9, 9, columns) if info.min < 0 else random.integers(120, 136, columns)
        weights[f"{name}_zero"] = np.zeros(columns, dtype) if per_column and info.min < 0 else middle.astype(dtype)
    weights["b"] = random.standard_normal((ways, 8 * HIDDEN)).astype(np.float32)
    feeds = {"x": random.standard_normal((STEPS, BATCH, INPUTS)).astype(np.float32)}
    if lengths:
        feeds["lens"] = np.array([7, 3, 5], np.int32)
    if states:
        feeds |= {name: random.standard_normal((ways, BATCH, HIDDEN)).astype(np.float32) for name in ("h0", "c0")}
    return weights, feeds


@pytest.mark.parametrize(
    ("direction", "dtype", "per_column", "lengths", "states"),
    [
        ("forward", "uint8", False, False, False),
        ("reverse", "int8", False, False, True),
        ("bidirectional", "uint8", False, True, True),
        ("bidirectional", "int8", True, False, True),
        ("reverse", "int8", True, True, False),
    ],
)
def test_directions(direction: str, dtype: str, per_column: bool, lengths: bool, states: bool) -> None:
    """Values halfway between two bytes can be rounded differently, hence the absolute tolerance."""
    weights, feeds = case(2 if direction == "bidirectional" else 1, dtype, per_column, lengths, states)
    proto = model(weights, feeds, ORDER, direction=direction)
    against_onnxruntime(proto, *feeds.values(), rtol=0, atol=2e-3)


def test_activations() -> None:
    weights, feeds = case(1, "int8", False, False, False)
    proto = model(weights, feeds, ORDER, activations=["Sigmoid", "Relu", "Tanh"])
    against_onnxruntime(proto, *feeds.values(), rtol=0, atol=2e-3)


@pytest.mark.parametrize("attributes", [{"clip": 2.0}, {"input_forget": 1}, {"activations": ["Affine"] * 3}])
def test_what_is_refused(attributes: dict) -> None:
    weights, feeds = case(1, "int8", False, False, False)
    with pytest.raises(RelvmUnsupportedError, match="DynamicQuantizeLSTM"):
        from_onnx(model(weights, feeds, ORDER, **attributes))
