"""Tests of the choice of convolutions that use Winograd tiles.

The golden cases are in pack_weights.cases; their weights are small.
"""

from __future__ import annotations

import base64

import numpy as np
import pytest
from modes import assert_close, machines

from relvm.frontend.text import parse_module
from relvm.ir.interpreter import evaluate
from relvm.ir.type_inference import infer_types
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

RANDOM = np.random.default_rng(9)


def convolution(weights: np.ndarray, attributes: str = "", dims: str = "h, w"):
    shape = ", ".join(map(str, weights.shape))
    text = base64.b64encode(weights.tobytes()).decode()
    call = f'conv(x, const(f32[{shape}], "{text}"){attributes})'
    return infer_types(parse_module(f"def main(x: f32[n, {weights.shape[1]}, {dims}]) => {{ return {call} }}"))


def weights_of(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def operators(module) -> list[str]:
    passes = [one for one in build_pipeline("c") if one.name in ("infer_types", "to_anf", "pack_weights")]
    return [binding.value.op.name for binding in run_passes(module, passes)["main"].body.bindings]


@pytest.mark.parametrize("dims", ["h, w", "9, w", "9, 9"])
def test_windows_of_3_by_3_are_computed_in_tiles(dims: str) -> None:
    module = convolution(weights_of(9, 8, 3, 3), ", pads=(2, 0, 2, 1), dilations=(2, 1)", dims)
    assert operators(module) == ["conv_winograd"]
    x = weights_of(2, 8, 9, 9)
    for machine in machines(module).values():
        assert_close(machine["main"](x), evaluate(module, "main", x), 1e-5)


LARGE = weights_of(8, 8, 3, 3)
LARGE[0, 0, 0, 0] = 1e31


@pytest.mark.parametrize(
    ("weights", "attributes", "dims"),
    [
        (weights_of(8, 8, 1, 3), "", "h, w"),
        (weights_of(8, 8, 3, 3), ", strides=(2, 1)", "h, w"),
        (weights_of(8, 8, 3, 3), ", dilations=(1, 2)", "h, w"),
        (weights_of(8, 7, 3, 3), "", "h, w"),
        (weights_of(7, 8, 3, 3), "", "h, w"),
        (weights_of(8, 385, 3, 3), "", "h, w"),
        (weights_of(8, 8, 3, 3), "", "6, 9"),
        (LARGE, "", "h, w"),
    ],
)
def test_others_are_left_as_they_are(weights: np.ndarray, attributes: str, dims: str) -> None:
    assert operators(convolution(weights, attributes, dims)) == ["conv"]


def test_what_is_made_of_one_matrix_twice_is_packed_once() -> None:
    weights = base64.b64encode(weights_of(24, 24).tobytes()).decode()
    module = parse_module(f"""def main(x: f32[n, 24]) => {{
      w = const(f32[24, 24], "{weights}")
      a = matmul(matmul(x, identity(w)), identity(w))
      return matmul(matmul(a, abs(w)), abs(w))
    }}""")
    packing = next(at for at, one in enumerate(build_pipeline("c")) if one.name == "pack_weights")
    packed = run_passes(module, build_pipeline("c")[: packing + 1])["main"].body.bindings
    first, second, third, fourth = (binding.value.args[1].value for binding in packed)
    assert first is second and third is fourth and first is not third
