"""MatMulNBits, against ONNX Runtime."""

from __future__ import annotations

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


def test_half_floats() -> None:
    known = weights(64, 24, 4, 32, "packed", "float16")
    a = RANDOM.standard_normal((2, 3, 64)).astype(np.float16)
    against_onnxruntime(model(known, 64, 24, "float16", bits=4, block_size=32), a, rtol=5e-3, atol=5e-3)


def test_weights_stay_packed() -> None:
    known = weights(512, 512, 4, 32, "none", "float32")
    proto = model(known, 512, 512, "float32", bits=4, block_size=32)
    assert len(vm.build(from_onnx(proto), "bytecode").to_bytes()) < 300_000  # as floats they are 1 MB


@pytest.mark.parametrize("attributes", [{"bits": 3, "block_size": 32}, {"bits": 4, "block_size": 12}])
def test_what_is_refused(attributes: dict) -> None:
    known = weights(64, 24, 4, 32, "none", "float32")
    with pytest.raises(RelvmUnsupportedError, match="MatMulNBits"):
        from_onnx(model(known, 64, 24, "float32", **attributes))
