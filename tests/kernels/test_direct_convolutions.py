"""Direct convolutions give the bits of products with an im2col matrix, and plans choose between both."""

from __future__ import annotations

import numpy as np
import pytest

from relvm import vm
from relvm.frontend.text import parse_module
from relvm.kernels.conv.direct import direct_shape
from relvm.kernels.conv.plan import direct_shape_if_faster
from relvm.kernels.conv.sliding_window import window_of

# The shapes of x and w, strides, pads and dilations.  The number of groups follows from the shapes.
CONVOLUTIONS = [
    ((1, 12, 20, 30), (12, 12, 7, 3), (1, 1), (6, 1, 6, 1), (2, 1)),
    ((2, 12, 20, 30), (12, 12, 7, 3), (1, 1), (6, 0, 6, 0), (1, 1)),  # whole lines are copied
    ((1, 24, 30, 8), (50, 24, 3, 1), (1, 1), (1, 0, 0, 0), (1, 1)),  # whole lines are copied and stored
    ((2, 3, 17, 9), (13, 3, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),  # phases
    ((2, 8, 11, 70), (12, 4, 3, 5), (1, 2), (0, 2, 1, 3), (2, 2)),  # two groups
    ((1, 40, 70, 60), (7, 40, 2, 3), (1, 2), (1, 0, 2, 1), (3, 2)),
    ((1, 12, 128, 31), (12, 12, 7, 1), (1, 1), (51, 0, 51, 0), (17, 1)),  # lines of the same remainder
    ((2, 3, 5, 31), (7, 3, 3, 2), (1, 1), (9, 0, 9, 1), (9, 3)),  # fewer lines than remainders
    ((1, 64, 90, 90), (8, 64, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),  # several blocks
    ((1, 300, 5, 40), (8, 300, 3, 1), (1, 1), (1, 0, 1, 0), (1, 1)),  # channels in chunks
    ((1, 3, 5, 3000), (8, 3, 2, 2), (1, 1), (1, 1, 1, 1), (1, 1)),  # parts of a line
    ((1, 2, 9, 9), (6, 2, 3, 3), (1, 1), (5, 5, 6, 6), (1, 1)),  # windows of nothing but padding
    ((0, 2, 9, 9), (6, 2, 3, 3), (1, 1), (0, 0, 0, 0), (1, 1)),
]


def _result(x: np.ndarray, w: np.ndarray, dims: str, attributes: str) -> np.ndarray:
    """Return the result of a convolution followed by an addition."""
    text = (
        f"def main(x: f32[{dims}], w: f32[{', '.join(map(str, w.shape))}]) -> object {{\n"
        f"  y = conv(x, w, {attributes})\n  z = add(y, const(f32[], 0.5))\n  return z\n}}"
    )
    return vm.VirtualMachine(vm.build(parse_module(text), target="bytecode"))["main"](x, w).numpy()


@pytest.mark.parametrize("is_dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_direct_convolutions_give_the_bits_of_products(case, is_dynamic, monkeypatch):
    sizes, weights, strides, pads, dilations = case
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in (sizes, weights))
    attributes = f"strides={strides}, pads={pads}, dilations={dilations}, groups={sizes[1] // weights[1]}"
    dims = f"n, {sizes[1]}, h, w" if is_dynamic else ", ".join(map(str, sizes))
    direct = direct_shape(window_of("conv", weights[2:], strides, pads, dilations), weights[1])
    assert direct is not None
    results, choices = [], [direct, None]
    while choices:
        monkeypatch.setattr("relvm.ops.convolution.direct_shape_if_faster", lambda *_, **options: choices.pop(0))
        results.append(_result(x, w, dims, attributes))
    assert not choices
    np.testing.assert_array_equal(*results)


def test_few_filters_are_convolved_directly_and_many_are_not():
    window = window_of("conv", (5, 5), (1, 1), (2, 2, 2, 2), (1, 1))
    for filters, is_direct in ((8, True), (512, False)):
        chosen = direct_shape_if_faster(1, 16, filters, (12, 12), window, shares_panels=False)
        assert (chosen is not None) == is_direct
