"""The number of positions of a sliding window equals the number found by trying every position."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.modes import WAYS, machines

from relvm import vm
from relvm.errors import RelvmShapeError
from relvm.frontend.text import parse_module

KERNELS, STRIDES, DILATIONS, PADS = (1, 2, 3), (1, 2, 3), (1, 2), ((0, 0), (1, 0), (0, 2))


def places(size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int]) -> int:
    """Count the positions at which the whole window lies inside the padded input."""
    padded = size + sum(pads)
    return sum(all(at + k * dilation < padded for k in range(kernel)) for at in range(0, max(padded, 0), stride))


@pytest.mark.parametrize("operator", ["max_pool", "conv"])
def test_places_are_those_where_the_window_fits(operator: str) -> None:
    rows = list(itertools.product(KERNELS, STRIDES, DILATIONS, PADS))
    text = []
    for number, (kernel, stride, dilation, pads) in enumerate(rows):
        window = f"strides=({stride},), dilations=({dilation},), pads={pads}"
        if operator == "conv":
            call = f"conv(x, const(f32[1, 1, {kernel}], [[[{', '.join(['1'] * kernel)}]]]), {window})"
        else:
            call = f"max_pool(x, kernel=({kernel},), {window})"
        text.append(f"def f{number}(x: f32[1, 1, n]) = {call}")
    machine = vm.VirtualMachine(vm.build(parse_module("\n".join(text)), target="numpy"))
    for number, row in enumerate(rows):
        for size in range(8):
            x, expected = np.ones((1, 1, size), np.float32), places(size, *row)
            if expected:
                assert machine[f"f{number}"](x).shape == (1, 1, expected), (row, size)
                continue
            with pytest.raises(RelvmShapeError, match=f"{operator}: window .* exceeds padded input size"):
                machine[f"f{number}"](x)


def test_the_result_for_an_image_does_not_depend_on_the_number_of_images() -> None:
    """Images with few positions share a panel of the matrix product.  The panel contains parts of images."""
    random = np.random.default_rng(3)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((50, 6, 4, 3), (14, 3, 2, 3)))
    text = "def main(x: f32[n, 6, 4, 3], w: f32[14, 3, 2, 3]) => { return conv(x, w, groups=2, pads=(1, 1, 0, 0)) }"
    ways = [way for way in WAYS if way[1] != "numpy"]
    built = list(machines(parse_module(text), ways).values())
    expected = np.concatenate([built[0]["main"](x[n : n + 1], w).numpy() for n in range(len(x))])
    for machine, count in itertools.product(built, (0, 1, 2, 5, 50)):
        np.testing.assert_array_equal(machine["main"](x[:count], w).numpy(), expected[:count])


def mean_of_windows(x: np.ndarray, kernel, strides, pads, dilations, *, counts_padding: bool) -> np.ndarray:
    """Return the mean of each window of planes of f32, which adds the rows of a window in order, then the columns."""
    size = [
        places(n, *window, (before, after))
        for n, *window, before, after in zip(x.shape[1:], kernel, strides, dilations, pads[:2], pads[2:], strict=True)
    ]
    result = np.empty((len(x), *size), np.float32)
    for at in np.ndindex(*size):
        rows, columns = (
            [p * s + k * d - b for k in range(n)]
            for p, s, d, b, n in zip(at, strides, dilations, pads[:2], kernel, strict=True)
        )
        rows = [row for row in rows if 0 <= row < x.shape[1]]
        total, inside = None, 0
        for column in columns:
            line = np.zeros(len(x), np.float32)
            if 0 <= column < x.shape[2]:
                inside += 1
                for row in rows:
                    line = line + x[:, row, column]
            total = line if total is None else total + line
        count = len(columns) * kernel[0] if counts_padding else inside * len(rows)
        with np.errstate(invalid="ignore"):
            result[(slice(None), *at)] = total / np.float32(count)
    return result


@pytest.mark.parametrize("counts_padding", [False, True])
@pytest.mark.parametrize(
    "row",
    [
        ((6, 9), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
        ((6, 9), (3, 2), (2, 3), (0, 0, 0, 0), (1, 1)),
        ((7, 40), (2, 5), (1, 2), (0, 3, 1, 4), (2, 3)),
        ((5, 8), (2, 2), (2, 2), (0, 0, 1, 0), (1, 1)),
        ((1, 3), (1, 2), (1, 1), (0, 3, 0, 3), (1, 1)),
        ((3, 1100), (2, 3), (1, 2), (1, 1, 0, 1), (1, 2)),
    ],
    ids=str,
)
def test_means_of_windows_have_a_defined_order(row: tuple, counts_padding: bool) -> None:
    dims, kernel, strides, pads, dilations = row
    x = np.random.default_rng(4).standard_normal((2, *dims)).astype(np.float32)
    window = f"kernel={kernel}, strides={strides}, pads={pads}, dilations={dilations}"
    call = f"average_pool(x, {window}, count_include_pad={str(counts_padding).lower()})"
    module = parse_module(f"def main(x: f32[1, 2, {dims[0]}, n]) => {{ return {call} }}")
    expected = mean_of_windows(x, kernel, strides, pads, dilations, counts_padding=counts_padding)
    for target in ("c", "bytecode"):
        found = vm.VirtualMachine(vm.build(module, target=target))["main"](x[None]).numpy()
        np.testing.assert_array_equal(found[0], expected, target)
