"""Tests of MatMulNBits and GatherBlockQuantized, compared with ONNX Runtime."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from frontend.onnx_answers import against_onnxruntime
from frontend.onnx_models import make_model
from onnx import helper

from relvm import vm
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx

RANDOM = np.random.default_rng(3)


def weights(depth: int, columns: int, bits: int, block: int, zeros: str, dtype: str) -> dict[str, np.ndarray]:
    blocks = -(-depth // block)
    made = {
        "b": RANDOM.integers(0, 256, (columns, blocks, block * bits // 8), np.uint8),
        "scales": RANDOM.uniform(0.01, 0.03, columns * blocks).astype(dtype),
    }
    if zeros == "packed":
        made["zeros"] = RANDOM.integers(0, 256, columns * -(-blocks * bits // 8), np.uint8)
    elif zeros == "floats":
        made["zeros"] = RANDOM.uniform(0, 2**bits, columns * blocks).astype(dtype)
    return made


def model(known: dict[str, np.ndarray], depth: int, columns: int, dtype: str, **attributes: int):
    names = [name if name in known or name == "a" else "" for name in ("a", "b", "scales", "zeros", "g_idx", "bias")]
    node = helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", K=depth, N=columns, **attributes)
    return make_model([node], [("a", dtype, ["batch", "n", depth])], ["y"], known)


CASES = [(4, 32, 96), (4, 16, 40), (8, 32, 64), (2, 128, 128), (4, 128, 640)]


@pytest.mark.parametrize("zeros", ["none", "packed", "floats"])
@pytest.mark.parametrize(("bits", "block", "depth"), CASES)
def test_bits_and_blocks(bits: int, block: int, depth: int, zeros: str) -> None:
    if (bits, zeros) == (8, "floats"):
        pytest.skip("ONNX Runtime has no such zero points")
    columns = 37
    known = weights(depth, columns, bits, block, zeros, "float32")
    known["bias"] = RANDOM.standard_normal(columns).astype(np.float32)
    a = RANDOM.standard_normal((2, 5, depth)).astype(np.float32)
    proto = model(known, depth, columns, "float32", bits=bits, block_size=block)
    against_onnxruntime(proto, a, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("zeros", ["none", "packed"])
@pytest.mark.parametrize(("bits", "block", "depth"), [(4, 32, 96), (4, 16, 40), (8, 32, 64), (4, 128, 640)])
def test_activations_of_8_bits(bits: int, block: int, depth: int, zeros: str) -> None:
    """With accuracy level 4, activations are rounded to the same bytes as in ONNX Runtime."""
    columns = 37
    known = weights(depth, columns, bits, block, zeros, "float32")
    a = RANDOM.standard_normal((2, 5, depth)).astype(np.float32)
    proto = model(known, depth, columns, "float32", bits=bits, block_size=block, accuracy_level=4)
    against_onnxruntime(proto, a, rtol=1e-4, atol=1e-4)
    assert "quantize_blocks" in str(from_onnx(proto))


@pytest.mark.parametrize("level", [0, 4])
def test_half_floats(level: int) -> None:
    known = weights(64, 24, 4, 32, "packed", "float16")
    a = RANDOM.standard_normal((2, 3, 64)).astype(np.float16)
    proto = model(known, 64, 24, "float16", bits=4, block_size=32, accuracy_level=level)
    against_onnxruntime(proto, a, rtol=5e-3, atol=5e-3 if level == 0 else 5e-2)


def test_weights_stay_packed() -> None:
    known = weights(512, 512, 4, 32, "none", "float32")
    proto = model(known, 512, 512, "float32", bits=4, block_size=32)
    assert len(vm.build(from_onnx(proto), "bytecode").to_bytes()) < 300_000  # floats would take 1 MB


@pytest.mark.parametrize("attributes", [{"bits": 3, "block_size": 32}, {"bits": 4, "block_size": 12}])
def test_what_is_refused(attributes: dict) -> None:
    known = weights(64, 24, 4, 32, "none", "float32")
    with pytest.raises(RelvmUnsupportedError, match="MatMulNBits"):
        from_onnx(model(known, 64, 24, "float32", **attributes))


def rows(known: dict[str, np.ndarray], places: list, **attributes: int):
    inputs = [name if name in known or name == "places" else "" for name in ("data", "places", "scales", "zeros")]
    node = helper.make_node("GatherBlockQuantized", inputs, ["y"], domain="com.microsoft", **attributes)
    return make_model([node], [("places", "int64", places)], ["y"], known)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("bits", "block", "width"), [(4, 16, 48), (4, 32, 40), (8, 16, 20)])
def test_rows_of_blocks(bits: int, block: int, width: int, zeros: bool) -> None:
    count, blocks = 7, -(-width // block)
    known = {
        "data": RANDOM.integers(0, 256, (count, width * bits // 8), np.uint8),
        "scales": RANDOM.uniform(0.01, 0.03, (count, blocks)).astype(np.float32),
    }
    if zeros:
        known["zeros"] = RANDOM.integers(0, 256, (count, -(-blocks * bits // 8)), np.uint8)
    proto = rows(known, ["n", "m"], bits=bits, block_size=block, quantize_axis=-1)
    against_onnxruntime(proto, np.array([[0, 6, -1], [-7, 3, 3]]), rtol=1e-6, atol=1e-6)


def test_rows_that_there_are_not_are_zeros() -> None:
    known = {"data": RANDOM.integers(0, 256, (3, 5, 8), np.uint8), "scales": np.ones((3, 5, 1), np.float16)}
    proto = rows(known, ["n"], block_size=16, quantize_axis=2)
    against_onnxruntime(proto, np.array([2, 3, -4, 9**9]), rtol=0, atol=0)


def test_rows_of_four_bits_along_another_axis() -> None:
    data = RANDOM.integers(-8, 8, (32, 6)).astype(ml_dtypes.int4)
    known = {"data": data, "scales": RANDOM.uniform(1, 2, (2, 6)).astype(np.float32)}
    proto = rows(known, ["n"], block_size=16, gather_axis=1, quantize_axis=0)
    against_onnxruntime(proto, np.array([5, 0, -2]), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("attributes", [{"bits": 3}, {"quantize_axis": 0}, {"gather_axis": 1, "quantize_axis": 0}])
def test_what_rows_are_refused(attributes: dict) -> None:
    known = {"data": np.zeros((16, 16), np.uint8), "scales": np.ones((16, 2), np.float32)}
    with pytest.raises(RelvmUnsupportedError, match="GatherBlockQuantized"):
        from_onnx(rows(known, ["n"], block_size=16, **attributes))
