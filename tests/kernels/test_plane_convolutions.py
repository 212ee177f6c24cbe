"""Depthwise convolutions of whole planes give the bits of those that copy rows, in every mode."""

from __future__ import annotations

import numpy as np
import pytest

from relvm import vm
from relvm.frontend.text import parse_module
from relvm.ir.dtypes import F32
from relvm.ir.loop_ir import Buffer
from relvm.kernels.conv import depthwise
from relvm.kernels.conv.sliding_window import window_of

# The shape of x, the window, strides, pads and dilations.
CONVOLUTIONS = [
    ((2, 5, 2, 2), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((3, 21, 4, 4), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
    ((1, 70, 7, 7), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((2, 9, 3, 7), (5, 3), (1, 2), (2, 0, 2, 1), (1, 1)),
    ((1, 3, 5, 9), (2, 3), (1, 1), (3, 1, 0, 3), (3, 2)),  # windows of nothing but padding
    ((1, 130, 6, 5), (3, 2), (3, 1), (0, 1, 0, 0), (1, 1)),  # fewer results than elements
    ((1, 4, 3, 20), (3, 3), (2, 1), (1, 1, 1, 1), (1, 1)),
    ((1, 1, 1, 1), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((0, 4, 3, 3), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
]


def _result(x: np.ndarray, w: np.ndarray, attributes: str, target: str) -> np.ndarray:
    dims = ", ".join(map(str, ("n", *x.shape[1:])))
    text = (
        f"def main(x: f32[{dims}], w: f32[{', '.join(map(str, w.shape))}]) -> object {{\n"
        f"  y = conv(x, w, {attributes})\n  z = add(y, const(f32[], 0.5))\n  return z\n}}"
    )
    return vm.VirtualMachine(vm.build(parse_module(text), target=target), num_threads=2)["main"](x, w).numpy()


def _check_bits(case: tuple, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that both algorithms give the same bits, and that the first is chosen."""
    sizes, window, strides, pads, dilations = case
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in (sizes, (sizes[1], 1, *window)))
    x[..., ::3, 1:2] = np.inf  # infinities and NaN must not reach other planes
    x[:, 1::4, -1:] = np.nan
    attributes = f"strides={strides}, pads={pads}, dilations={dilations}, groups={sizes[1]}"
    choose, choices, results = depthwise.can_write_planes, [], []
    for is_allowed in (True, False):

        def chosen(*args, is_allowed=is_allowed):
            choices.append(choose(*args))
            return is_allowed and choices[-1]

        monkeypatch.setattr("relvm.ops.convolution.can_write_planes", chosen)
        results.append(_result(x, np.abs(w), attributes, target))
    assert choices == [True, True]
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_planes_give_the_bits_of_rows(case, monkeypatch):
    _check_bits(case, "bytecode", monkeypatch)


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_compiled_planes_give_the_bits_of_rows(case, monkeypatch):
    _check_bits(case, "c", monkeypatch)


def test_only_small_planes_are_convolved_whole():
    window = window_of("conv", (3, 3), (1, 1), (1, 1, 1, 1), (1, 1))
    w = Buffer("w", F32, (8, 1, 3, 3))
    for size, is_whole in ((6, True), (60, False)):
        x = Buffer("x", F32, (1, 8, size, size))
        assert depthwise.can_write_planes(x, w, window, (size, size)) == is_whole
