"""Tests of packed weights, and of the choice between the algorithms of a convolution.

The golden cases are in pack_weights.cases; their weights are small.
"""

from __future__ import annotations

import base64

import numpy as np
import pytest
from support.modes import WAYS, assert_close, machines

from relvm.frontend.text import parse_module
from relvm.ir.dtypes import I64
from relvm.ir.interpreter import evaluate
from relvm.ir.loop_ir import Literal
from relvm.ir.type_inference import infer_types
from relvm.ops.conv_winograd import is_winograd_faster
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

RANDOM = np.random.default_rng(9)
KERNEL_WAYS = [way for way in WAYS if way[1] != "numpy"]


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


@pytest.mark.parametrize(
    ("dims", "operator"),
    [("h, w", "conv_by_size"), ("24, w", "conv_by_size"), ("48, 64", "conv_winograd"), ("24, 9", "conv_packed")],
)
def test_windows_of_3_by_3_are_computed_by_the_faster_algorithm(dims: str, operator: str) -> None:
    module = convolution(weights_of(63, 64, 3, 3), ", pads=(2, 0, 2, 1), dilations=(2, 1)", dims)
    assert operators(module) == [operator]
    x = weights_of(2, 64, *{"24, 9": (24, 9), "48, 64": (48, 64)}.get(dims, (24, 35)))
    for machine in machines(module).values():
        assert_close(machine["main"](x), evaluate(module, "main", x), 1e-5)


def is_tiled(channels: int, filters: int, high: int, wide: int) -> bool:
    choice = is_winograd_faster(channels, filters, Literal(high, I64), Literal(wide, I64), 1)
    assert isinstance(choice, Literal)
    return bool(choice.value)


SIZES = [(1, 1), (5, 2), (7, 21), (8, 24), (24, 7), (40, 40)]


def test_run_time_sizes_choose_the_algorithm_of_known_sizes() -> None:
    """The kernel for symbolic sizes gives the bits of the kernel for the same sizes as constants."""
    weights = weights_of(65, 64, 3, 3)
    symbolic = machines(convolution(weights, ", pads=(1, 1, 1, 1)"), KERNEL_WAYS)
    chosen = set()
    for high, wide in SIZES:
        known = convolution(weights, ", pads=(1, 1, 1, 1)", f"{high}, {wide}")
        tiled = is_tiled(64, 65, high, wide)
        assert operators(known)[0] in (["conv_winograd"] if tiled else ["conv", "conv_packed"])
        x = weights_of(2, 64, high, wide)
        expected = machines(known, [("bytecode", "bytecode")])["bytecode", "bytecode"]["main"](x).numpy()
        assert_close(expected, evaluate(known, "main", x), 1e-5)
        for machine in symbolic.values():
            np.testing.assert_array_equal(machine["main"](x).numpy(), expected)
        chosen.add(tiled)
    assert chosen == {False, True}


def test_the_better_algorithm_of_large_sizes_is_chosen_when_built() -> None:
    """One line of a result never fills tiles, whatever its length."""
    assert operators(convolution(weights_of(32, 32, 3, 3), ", pads=(0, 1, 0, 1)", "3, w")) == ["conv_packed"]
    assert not any(is_tiled(32, 32, 1, wide) for wide in range(1, 5000, 7))


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
        (weights_of(32, 32, 3, 3), "", "6, 9"),
        (LARGE, "", "h, w"),
    ],
)
def test_other_windows_are_not_computed_in_tiles(weights: np.ndarray, attributes: str, dims: str) -> None:
    assert operators(convolution(weights, attributes, dims))[0] in ("conv", "conv_packed")


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


@pytest.mark.parametrize(
    ("shape", "attributes", "dims"),
    [
        ((40, 20, 3, 3), ", pads=(1, 1, 1, 1), strides=(2, 2)", "9, 7"),
        ((70, 33, 1, 5), ", pads=(0, 4, 0, 4), dilations=(1, 2)", "2, 9"),
        ((17, 300, 2, 2), "", "3, 4"),  # channels in chunks
        ((9, 150, 1, 1), ", strides=(1, 3)", "5, 8"),
        ((24, 12, 3, 4), "", "3, 4"),  # one window for each image
    ],
)
def test_packed_filters_give_the_bits_of_a_product_with_im2col(
    shape: tuple[int, ...], attributes: str, dims: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = convolution(weights_of(*shape), attributes, dims)
    assert operators(module) == ["conv_packed"]
    x = weights_of(3, shape[1], *map(int, dims.split(", ")))
    results = [machine["main"](x).numpy() for machine in machines(module, KERNEL_WAYS).values()]
    monkeypatch.setattr("relvm.passes.pack_weights.is_window_product_faster", lambda *shapes: False)
    assert operators(module) == ["conv"]
    expected = machines(module, [("bytecode", "bytecode")])["bytecode", "bytecode"]["main"](x).numpy()
    for result in results:
        np.testing.assert_array_equal(result, expected)
    assert_close(expected, evaluate(module, "main", x), 1e-5)
