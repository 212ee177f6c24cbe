"""Tests of ONNX operators of neural networks, compared with ONNX Runtime.

The tests cover what ONNX's suite does not: older opsets, combinations of attributes, symbolic sizes, and unsupported
nodes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
from frontend.onnx_answers import Machines, answers, assert_answers, machines_of_models, onnxruntime_answers
from frontend.onnx_models import make_model, parse_model
from onnx import ModelProto, helper
from support.modes import FEWER_WAYS
from support.modes import machines as machines_of

from relvm.errors import RelvmError, RelvmFormatError, RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx

RANDOM = np.random.default_rng(5)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Case:
    """A node with the input `x`.

    inputs: the other inputs, which are constants, with None for an omitted input.  outputs: the number of outputs.
    fixed: the axes of x whose sizes are never symbolic.
    """

    op: str
    x: np.ndarray
    attributes: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[Any, ...] = ()
    opset: int = 17
    outputs: int = 1
    fixed: tuple[int, ...] = (1,)

    def __str__(self) -> str:
        constants = [None if value is None else np.asarray(value).tolist() for value in self.inputs]
        shown = [text if len(text) < 60 else "..." for text in map(str, constants)]
        return f"{self.op}-{self.opset}({list(self.x.shape)}, {', '.join([*shown, str(self.attributes)])})"

    def model(self, symbolic: bool) -> ModelProto:
        names = ["x", *("" if value is None else f"c{i}" for i, value in enumerate(self.inputs))]
        outputs = [f"y{i}" for i in range(self.outputs)]
        sizes = [n if not symbolic or i in self.fixed else f"n{i}" for i, n in enumerate(self.x.shape)]
        constants = {f"c{i}": value for i, value in enumerate(self.inputs) if value is not None}
        node = helper.make_node(self.op, names, outputs, **self.attributes)
        return make_model([node], [("x", self.x.dtype, sizes)], outputs, constants, self.opset)


def pooling_cases() -> list[Case]:
    image = numbers(2, 3, 9, 7)
    cases = []
    for op in ("MaxPool", "AveragePool", "LpPool"):
        for attributes in (
            {"kernel_shape": [3, 2], "strides": [2, 3], "ceil_mode": 1},
            {"kernel_shape": [3, 3], "strides": [3, 2], "pads": [1, 2, 2, 1], "ceil_mode": 1},
            {"kernel_shape": [2, 3], "auto_pad": "SAME_LOWER"},
            {"kernel_shape": [3, 4], "strides": [2, 3], "auto_pad": "SAME_LOWER"},
            {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER", "ceil_mode": 1},
            {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
            {"kernel_shape": [2, 1], "strides": [4, 4], "pads": [1, 0, 1, 0], "ceil_mode": 1, "dilations": [3, 1]},
        ):
            cases.append(Case(op, image, attributes, opset=22))
    included = {"kernel_shape": [3, 3], "strides": [3, 2], "pads": [1, 2, 2, 1], "count_include_pad": 1}
    cases += [
        Case("AveragePool", image, included, opset=7),
        Case("AveragePool", image, included | {"ceil_mode": 1}, opset=19),
        Case("LpPool", image, {"kernel_shape": [2, 2], "p": 3}, opset=11),
        Case(
            "MaxPool",
            image,
            {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
            outputs=2,
            fixed=(1, 2, 3),
        ),
        *strides_above_the_window(),
        Case("Conv", image, {"strides": [2, 3], "auto_pad": "SAME_UPPER"}, (numbers(4, 3, 3, 4), numbers(4))),
        Case("Conv", image, {"strides": [2, 2], "auto_pad": "SAME_UPPER"}, (numbers(4, 3, 2, 1),)),
        Case("MaxPool", numbers(1, 2, 11), {"kernel_shape": [3]}, opset=8, outputs=2),
        Case("MaxPool", image, {"kernel_shape": [2, 2], "storage_order": 1}, outputs=2),
        Case("MaxPool", numbers(1, 2, 4, 5, 6), {"kernel_shape": [2, 3, 2], "storage_order": 1}, outputs=2),
        Case("GlobalLpPool", image, {"p": 3}),
        Case("GlobalLpPool", image),
    ]
    return cases


def strides_above_the_window() -> list[Case]:
    """Return cases in which the total padding of an axis is negative, so that elements before the windows are skipped.

    ONNX Runtime refuses negative padding for MaxPool, and its Conv skips fewer elements.
    """
    cases = []
    for mode, sizes in itertools.product(("SAME_UPPER", "SAME_LOWER"), ((5, 8), (3, 8))):
        for kernel, strides in (([1, 1], [sizes[0], 4]), ([2, 1], [5, 5]), ([3, 2], [5, 4])):
            attributes = {"kernel_shape": kernel, "strides": strides, "auto_pad": mode}
            cases.append(Case("AveragePool", numbers(1, 2, *sizes), attributes, opset=22))
        cases.append(Case("LpPool", numbers(1, 2, *sizes), attributes, opset=22))
    attributes = {"kernel_shape": [1], "strides": [4], "auto_pad": "SAME_UPPER", "count_include_pad": 1}
    return [*cases, Case("AveragePool", numbers(1, 2, 8), attributes, opset=22, fixed=(1, 2))]


def normalization_cases() -> list[Case]:
    x, grid = numbers(2, 4, 3, 5), numbers(3, 4, 6)
    per_channel = (numbers(4), numbers(4), numbers(4), np.abs(numbers(4)))
    cases = [Case("BatchNormalization", x, {"epsilon": 1e-3}, per_channel, opset) for opset in (7, 9, 14, 15)]
    cases += [
        Case("BatchNormalization", numbers(5, 4), {}, per_channel),
        Case("InstanceNormalization", x, {"epsilon": 1e-3}, per_channel[:2]),
        Case("GroupNormalization", x, {"num_groups": 2}, (numbers(2), numbers(2)), 18),
        Case("GroupNormalization", x, {"num_groups": 2}, per_channel[:2], 21),
        Case("LayerNormalization", grid, {"axis": -1}, (numbers(6), numbers(6)), outputs=3),
        Case("LayerNormalization", grid, {"axis": 1}, (numbers(4, 6),), outputs=3),
        Case("LayerNormalization", grid.astype(np.float64), {}, (numbers(6).astype(np.float64),)),
        Case("LRN", x, {"size": 3, "alpha": 0.5, "bias": 2.0}),
        Case("LRN", x, {"size": 5, "beta": 1.5}),
        Case("MeanVarianceNormalization", x, {"axes": [0, -1]}),
        Case("LpNormalization", grid, {"p": 1, "axis": -2}),
    ]
    return cases


def activation_cases() -> list[Case]:
    x = numbers(2, 3, 4) * 3
    x[0, 0] = [np.inf, -np.inf, np.nan, -0.0]
    plain_ones = ("Softplus", "Softsign", "HardSwish", "Elu", "Selu")
    cases = [Case(op, x) for op in plain_ones]
    cases += [
        Case("HardSigmoid", x, {"alpha": 0.3, "beta": 0.4}),
        Case("Mish", numbers(2, 3, 4) * 30, opset=18),
        Case("Gelu", x[1:], {"approximate": "tanh"}, opset=20),
        Case("PRelu", x, {}, (numbers(3, 1),)),
        Case("PRelu", x, {}, (numbers(4),), opset=7),
        Case("Celu", x, {"alpha": -0.5}),
        Case("ThresholdedRelu", x, {"alpha": -0.3}),
        Case("Shrink", x, {"lambd": 0.4, "bias": 0.3}),
        Case("Shrink", np.arange(-6, 6, dtype=np.int32), {"lambd": 1.5, "bias": 0.6}),
        Case("Shrink", np.arange(9, dtype=np.uint8), {"lambd": 1.5, "bias": 1.0}),
    ]
    for op in ("LogSoftmax", "Hardmax"):
        for opset in (7, 11, 13):
            cases.append(Case(op, numbers(2, 3, 4), {"axis": 1}, opset=opset))
        cases.append(Case(op, numbers(2, 3, 4), {"axis": -2}, opset=13))
    return cases


def margin_cases() -> list[Case]:
    x = numbers(3, 4, 5)
    pads, one = np.array([1, 0, 2, 0, 2, 1]), np.float32(1.5)
    cases = [
        Case("Pad", x, {"mode": mode}, (pads,), opset)
        for mode in ("constant", "edge", "reflect")
        for opset in (11, 13, 18)
    ]
    cases += [
        Case("Pad", x, {"pads": pads.tolist(), "value": 2.5}, opset=9),
        Case("Pad", x, {}, (np.array([-1, 0, 2, 1, -2, -3]), one)),
        Case("Pad", x, {"mode": "wrap"}, (np.array([2, 1, 1, 3]), None, np.array([-1, 0])), 19),
        Case("Pad", np.arange(6).reshape(2, 3) > 2, {}, (np.array([1, 1, 0, 2]), np.array(True)), 13),
        Case("Pad", numbers(4), {"mode": "edge"}, (np.array([3, 7]),), 13, fixed=()),
        Case("DepthToSpace", numbers(2, 12, 2, 3), {"blocksize": 2, "mode": "CRD"}),
        Case("SpaceToDepth", numbers(2, 3, 4, 6), {"blocksize": 2}),
    ]
    return cases


def resize_cases() -> list[Case]:
    x, cases = numbers(1, 2, 5, 7), []
    larger, smaller, shorter, odd = (np.float32([1, 1, *s]) for s in ((2, 3), (0.5, 0.6), (0.7, 1), (1.5, 0.3)))
    for how in ("half_pixel", "pytorch_half_pixel", "asymmetric", "half_pixel_symmetric"):
        for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
            attributes = {"coordinate_transformation_mode": how, "nearest_mode": nearest}
            cases += [Case("Resize", x, attributes, (None, scales), 19) for scales in (larger, shorter)]
        for mode in ("linear", "cubic"):
            attributes = {"coordinate_transformation_mode": how, "mode": mode}
            cases += [Case("Resize", x, attributes, (None, scales), 19) for scales in (larger, odd)]
    roi, sizes = np.float32([0, 0, 0.2, -0.1, 1, 1, 0.8, 1.2]), np.array([1, 2, 9, 4])
    # The positions include ties between two elements, and the last element.
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize"}
    tie = np.float32([0, 0, 0.1, -0.2, 1, 1, 0.8, 1])
    cases.append(Case("Resize", numbers(1, 2, 6, 5), crop, (tie, None, np.array([1, 2, 3, 7])), 13))
    for mode in ("nearest", "linear", "cubic"):
        crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0, "mode": mode}
        cases.append(Case("Resize", x, crop, (roi, None, sizes), 13))
        for how in ("half_pixel", "align_corners"):
            attributes = {"coordinate_transformation_mode": how, "mode": mode}
            cases.append(Case("Resize", x, attributes, (None, None, sizes), 13))
    for mode in ("linear", "cubic"):
        attributes = {"mode": mode, "antialias": 1, "exclude_outside": int(mode == "cubic")}
        cases += [Case("Resize", x, attributes, (None, scales), 18) for scales in (larger, smaller)]
    stretched = {"mode": "linear", "antialias": 1}
    cases.append(Case("Resize", x, stretched, (None, None, np.array([1, 2, 3, 4])), 18))
    policy = {"keep_aspect_ratio_policy": "not_larger", "axes": [3, 2], "mode": "linear"}
    cases += [
        Case("Resize", x, policy, (None, None, np.array([12, 9])), 18),
        Case("Resize", x, {"mode": "linear"}, (larger,), 10),
        Case("Resize", x, {}, (smaller,), 10),
        Case("Resize", (x * 9).astype(np.uint8), {}, (np.float32([]), larger), 11),
        Case("Upsample", x, {"scales": [1.0, 1.0, 2.0, 1.5]}, opset=7),
        Case("Upsample", x, {"mode": "linear"}, (larger,), 9),
    ]
    half: dict[str, Any] = {"coordinate_transformation_mode": "tf_half_pixel_for_nn"}
    cases.append(Case("Resize", x, half, (np.float32([]), np.float32([1, 1, 2, 0.5])), 11))
    cases.append(
        Case("Resize", x, half | {"mode": "linear"}, (np.float32([]), np.float32([]), np.array([1, 2, 5, 9])), 11)
    )
    return cases


def transposed_cases() -> list[Case]:
    x, w = numbers(2, 4, 5, 6), numbers(4, 3, 3, 2)
    cases = []
    for attributes in (
        {},
        {"strides": [3, 2]},
        {"strides": [2, 2], "pads": [1, 0, 2, 1], "output_padding": [1, 0]},
        {"strides": [2, 3], "dilations": [2, 3], "group": 2},
        {"strides": [2, 2], "auto_pad": "SAME_LOWER"},
        {"strides": [1, 2], "auto_pad": "SAME_UPPER"},
        {"auto_pad": "VALID", "strides": [4, 1]},
    ):
        cases.append(Case("ConvTranspose", x, attributes, (w, numbers(3 * attributes.get("group", 1))), 11))
    wide = {"strides": [2, 2], "output_shape": [12, 11]}
    cases += [
        Case("ConvTranspose", x, wide, (w,), 11, fixed=(1, 2, 3)),
        Case("ConvTranspose", x, wide | {"auto_pad": "SAME_UPPER"}, (w,), 11, fixed=(1, 2, 3)),
        Case("ConvTranspose", numbers(1, 2, 4), {"strides": [3]}, (numbers(2, 5, 3),), 11),
        Case("ConvTranspose", numbers(1, 2, 3), {}, (numbers(2, 3, 2),), 11, fixed=()),
        Case("ConvTranspose", numbers(1, 2, 2, 3, 2), {"strides": [1, 2, 3]}, (numbers(2, 2, 2, 2, 2),), 11),
    ]
    return cases


CASES = [
    *pooling_cases(),
    *normalization_cases(),
    *activation_cases(),
    *margin_cases(),
    *resize_cases(),
    *transposed_cases(),
]


@cache
def machines() -> Machines:
    """Return machines with two functions for each case, one with known and one with symbolic sizes."""
    models = [(f"f{i}_{int(s)}", case.model(s)) for i, case in enumerate(CASES) for s in (False, True)]
    return machines_of_models(dict(models))


@pytest.mark.parametrize("index", range(len(CASES)), ids=lambda i: str(CASES[i]))
def test_operator_gives_what_onnxruntime_gives(index: int) -> None:
    case = CASES[index]
    expected = onnxruntime_answers(case.model(False), [case.x])
    for symbolic in (0, 1):
        for got in answers(machines(), f"f{index}_{symbolic}", [case.x]).values():
            assert_answers(got, expected, rtol=2e-5, atol=2e-5)


IMAGE = np.zeros((1, 4, 6, 6), np.float32)
ONES, SIZES = np.ones(4, np.float32), np.array([1, 4, 3, 3])
REFUSED = [
    (Case("BatchNormalization", IMAGE, {"spatial": 0}, (ONES,) * 4, 7), "spatial=0", RelvmUnsupportedError),
    (
        Case("GroupNormalization", IMAGE, {"num_groups": 3}, (ONES,) * 2, 21),
        "4 channels, expected a multiple of 3",
        RelvmShapeError,
    ),
    (Case("LpNormalization", IMAGE, {"p": 3}), "p is 3", RelvmUnsupportedError),
    (Case("LayerNormalization", IMAGE, {"stash_type": 7}, (np.ones(6, np.float32),)), "i64", RelvmUnsupportedError),
    (Case("Gelu", IMAGE, {"approximate": "sometimes"}, opset=20), "sometimes", RelvmUnsupportedError),
    (
        Case("PRelu", IMAGE[0], {}, (np.ones((1, 1, 1, 1), np.float32),)),
        "slope f32.* has a higher rank than x",
        RelvmUnsupportedError,
    ),
    (
        Case("MaxPool", IMAGE, {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}, outputs=2),
        "the Indices output is not supported for symbolic pads",
        RelvmUnsupportedError,
    ),
    (
        Case(
            "AveragePool",
            IMAGE,
            {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER", "count_include_pad": 1},
        ),
        "count_include_pad with auto_pad",
        RelvmUnsupportedError,
    ),
    (Case("MaxPool", IMAGE, {"kernel_shape": [2, 2], "auto_pad": "NEVER"}), "NEVER", RelvmUnsupportedError),
    (Case("MaxPool", IMAGE), "kernel_shape is missing", RelvmFormatError),
    (Case("Pad", IMAGE, {"mode": "fold"}, (np.zeros(8, int),)), "mode 'fold'", RelvmUnsupportedError),
    (
        Case("Pad", IMAGE, {}, (np.zeros(7, int),)),
        "pads has 7 elements, expected 2 for each of 4 axes",
        RelvmShapeError,
    ),
    (Case("Pad", IMAGE, {}, (np.zeros(2, int), None, np.array([4])), 18), "axes contains 4", RelvmShapeError),
    (Case("Resize", IMAGE, {"mode": "area"}, (None, None, SIZES), 13), "mode 'area'", RelvmUnsupportedError),
    (Case("Resize", IMAGE, {"nearest_mode": "up"}, (None, None, SIZES), 13), "mode 'up'", RelvmUnsupportedError),
    (
        Case("Resize", IMAGE, {"coordinate_transformation_mode": "mine"}, (None, None, SIZES), 13),
        "mode 'mine'",
        RelvmUnsupportedError,
    ),
    (Case("Resize", IMAGE, {}, (None, ONES, SIZES), 13), "expected either scales or sizes, got both", RelvmFormatError),
    (
        Case("Resize", IMAGE, {}, (None, None, None), 13),
        "expected either scales or sizes, got neither",
        RelvmFormatError,
    ),
    (Case("Resize", IMAGE, {}, (None, ONES[:2]), 13), "expected 4 positive numbers", RelvmShapeError),
    (Case("Resize", IMAGE, {}, (None, -ONES), 13), "expected 4 positive numbers", RelvmShapeError),
    (
        Case("Resize", IMAGE, {}, (None, None, SIZES[:3]), 13),
        "sizes has 3 elements, expected 4, one for each axis",
        RelvmShapeError,
    ),
    (
        Case("Resize", IMAGE.astype(np.int8), {"mode": "linear"}, (None, None, SIZES), 13),
        "ONNX does not define the rounding",
        RelvmUnsupportedError,
    ),
    (
        Case("Resize", IMAGE, {"coordinate_transformation_mode": "tf_crop_and_resize"}, (ONES, None, SIZES), 13),
        "roi has 4 elements, expected 2 for each of 4 axes",
        RelvmShapeError,
    ),
    (
        Case("ConvTranspose", IMAGE, {"output_shape": [7, 7]}, (np.ones((4, 1, 2, 2), np.float32),), 11),
        "output_shape .* requires a fixed size of the input",
        RelvmUnsupportedError,
    ),
    (
        Case("ConvTranspose", IMAGE, {"group": 3}, (np.ones((4, 1, 2, 2), np.float32),), 11),
        "4 channels, expected a multiple of 3",
        RelvmShapeError,
    ),
    (
        Case("Col2Im", np.zeros((1, 9, 4), np.float32), {}, (np.array([3, 3]), np.array([2, 2])), 18),
        "the number of rows, 9, must be a multiple of the block size, 4",
        RelvmShapeError,
    ),
    (Case("DepthToSpace", IMAGE, {"blocksize": 3}), "4 channels, expected a multiple of 9", RelvmShapeError),
    (Case("DepthToSpace", IMAGE, {"blocksize": 2, "mode": "RGB"}), "mode 'RGB'", RelvmUnsupportedError),
    (Case("SpaceToDepth", IMAGE[0], {"blocksize": 2}), "expected rank 4", RelvmUnsupportedError),
]


def test_statistics_of_another_dtype_in_training() -> None:
    text = """g (float[n, 3, m] x, float[3] s, float[3] b, double[3] mean, double[3] variance) => (y, p, q)
    { y, p, q = BatchNormalization<training_mode = 1> (x, s, b, mean, variance) }"""
    x, mean, variance = numbers(4, 3, 5), np.arange(3.0), np.arange(1.0, 4.0)
    got = answers(
        machines_of(from_onnx(parse_model(text, 15)), FEWER_WAYS),
        "main",
        [x, *np.ones((2, 3), np.float32), mean, variance],
    )
    found = x.astype(float).mean((0, 2)), x.astype(float).var((0, 2))
    for _, p, q in got.values():
        assert_answers((p, q), [old * 0.9 + new * 0.1 for old, new in zip((mean, variance), found, strict=True)])


@pytest.mark.parametrize(("case", "message", "error"), REFUSED, ids=lambda v: str(v) if isinstance(v, Case) else "")
def test_what_is_not_supported_is_refused(case: Case, message: str, error: type[RelvmError]) -> None:
    with pytest.raises(error, match=rf"{case.op}, opset {case.opset}.*{message}"):
        from_onnx(case.model(True))
