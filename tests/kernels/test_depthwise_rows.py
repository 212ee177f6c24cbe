"""Depthwise convolutions that read rows in place give the bits of those that copy blocks, in every mode."""

from __future__ import annotations

import re

import numpy as np
import pytest

from relvm import vm
from relvm.frontend.text import parse_module
from relvm.ir.dtypes import F32
from relvm.ir.loop_ir import Buffer
from relvm.kernels.conv import depthwise_rows
from relvm.kernels.conv.depthwise_rows import can_write_depthwise_rows
from relvm.kernels.conv.sliding_window import window_of
from relvm.tables import find_header

# The shape of x, the window, strides and pads.
CONVOLUTIONS = [
    ((2, 5, 9, 11), (3, 3), (1, 1), (1, 1, 1, 1)),
    ((1, 3, 30, 40), (5, 5), (1, 1), (2, 2, 2, 2)),
    ((1, 3, 30, 41), (5, 5), (2, 2), (2, 2, 2, 2)),
    ((2, 90, 14, 14), (3, 3), (1, 1), (1, 1, 1, 1)),  # several parts of planes
    ((1, 40, 7, 7), (3, 3), (2, 2), (0, 0, 1, 1)),
    ((1, 2, 60, 700), (3, 3), (1, 1), (1, 1, 1, 1)),  # several strips of a row
    ((1, 2, 30, 1400), (3, 3), (2, 2), (1, 1, 1, 1)),
    ((1, 1, 130, 80), (3, 3), (1, 1), (1, 1, 1, 1)),  # several parts of a plane, with several blocks of rows each
    ((1, 9, 3, 80), (5, 5), (2, 1), (2, 2, 2, 2)),
    ((1, 9, 20, 33), (3, 3), (1, 2), (1, 1, 1, 1)),
    ((2, 6, 1, 3), (5, 5), (1, 1), (4, 4, 4, 4)),  # windows with one row of the plane
    ((1, 4, 20, 20), (3, 1), (1, 1), (1, 0, 1, 0)),
    ((1, 4, 20, 19), (3, 2), (2, 2), (0, 1, 0, 0)),
    ((0, 4, 9, 9), (3, 3), (1, 1), (1, 1, 1, 1)),
    ((2, 4, 0, 9), (3, 3), (1, 1), (2, 1, 2, 1)),
    ((1, 4, 5, 0), (3, 3), (1, 2), (1, 2, 1, 2)),
]


def _function(name: str, case: tuple, dims: tuple) -> str:
    sizes, window, strides, pads = case
    shape, weights = (", ".join(map(str, given)) for given in (dims, (sizes[1], 1, *window)))
    return (
        f"def {name}(x: f32[{shape}], w: f32[{weights}]) -> object {{\n"
        f"  y = conv(x, w, strides={strides}, pads={pads}, groups={sizes[1]})\n"
        "  z = add(y, const(f32[], 0.5))\n  return z\n}"
    )


def _arguments(case: tuple) -> tuple[np.ndarray, np.ndarray]:
    sizes, window, *_ = case
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in (sizes, (sizes[1], 1, *window)))
    x[..., ::3, 1:2] = np.inf  # infinities and NaN must not reach other rows
    x[:, 1::4, -1:] = np.nan
    return x, np.abs(w)


def _check_bits(cases: list[tuple], dims: list[tuple], target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that both algorithms give the same bits, and that the first is chosen."""
    module = parse_module("\n".join(_function(f"f{n}", *each) for n, each in enumerate(zip(cases, dims, strict=True))))
    monkeypatch.setattr("relvm.ops.convolution.can_write_planes", lambda *args: False)
    choices, results = [], []
    for is_allowed in (True, False):

        def chosen(*args, is_allowed=is_allowed):
            choices.append(can_write_depthwise_rows(*args))
            return is_allowed and choices[-1]

        monkeypatch.setattr("relvm.ops.convolution.can_write_depthwise_rows", chosen)
        machine = vm.VirtualMachine(vm.build(module, target=target), num_threads=2)
        results.append([machine[f"f{n}"](*_arguments(case)).numpy() for n, case in enumerate(cases)])
    assert choices == [True] * 2 * len(cases)
    for case, in_place, of_blocks in zip(cases, *results, strict=True):
        np.testing.assert_array_equal(in_place, of_blocks, str(case))


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_rows_in_place_give_the_bits_of_blocks(case, monkeypatch):
    _check_bits([case, case], [case[0], ("n", case[0][1], "h", "q")], "bytecode", monkeypatch)


def test_compiled_rows_in_place_give_the_bits_of_blocks(monkeypatch):
    _check_bits(CONVOLUTIONS, [sizes for sizes, *_ in CONVOLUTIONS], "c", monkeypatch)


def test_the_forms_are_those_of_the_micro_kernel():
    line = re.search("define RVM_FOR_EACH_DEPTHWISE.*", find_header("depthwise_rows_f32.h").read_text())
    forms = {tuple(map(int, pair)) for pair in re.findall(r"F\((\d), (\d)\)", line[0])}
    assert forms == depthwise_rows._FORMS


@pytest.mark.parametrize(
    "change",
    [
        {"strides": (3, 1)},
        {"strides": (1, 3)},
        {"dilations": (1, 2)},
        {"pads": (3, 0, 0, 0)},  # a window of padding only
        {"sizes": (4, 3)},
        {"sizes": (3, 8)},
    ],
    ids=str,
)
def test_other_forms_copy_blocks(change):
    attributes = {"sizes": (3, 3), "strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1)}
    x = Buffer("x", F32, (1, 8, 20, 20))

    def is_accepted(sizes, **others):
        return can_write_depthwise_rows(x, Buffer("w", F32, (8, 1, *sizes)), window_of("conv", sizes, **others))

    assert is_accepted(**attributes)
    assert not is_accepted(**attributes | change)
