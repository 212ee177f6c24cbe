"""Sample calls of every operator, including calls whose kernels fail.  test_operators.py checks them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from ops.byte_samples import block_row_samples, block_samples, integer_convolution_samples, integer_samples
from ops.list_samples import list_samples
from ops.place_samples import indexing_samples, position_samples, shape_samples, tree_samples
from ops.region_samples import bit_samples, region_samples, row_samples, sampled_samples, suppression_samples
from ops.sample_values import FLOATS, INTEGERS, NUMBERS, NUMPY_NAMES, Sample, array, names_of
from ops.string_samples import string_samples

from relvm.errors import RelvmShapeError
from relvm.kernels.gemm.packing import pack_columns
from relvm.kernels.rnn.activations import ACTIVATIONS
from relvm.ops.attention import ABSENT
from relvm.ops.conv_packed import pack_filters
from relvm.ops.conv_winograd import transform_windows
from relvm.ops.elementwise import (
    arithmetic,
    bitwise,
    comparison,
    float_arithmetic,
    float_function,
    float_predicate,
    integer_function,
    logical,
    numeric_function,
)

_SHAPES = [
    ((), ()),
    ((5,), ()),
    ((3, 4), (4,)),
    ((2, 1, 5), (3, 1)),
    ((2, 3, 2, 4), (1, 3, 1, 1)),
    ((0, 3), (3,)),
    ((13,), (1,)),
]


# Channels, filters, height, width, pads and spread.  The rows cover one tile, incomplete tiles, several blocks, and
# blocks with parts of rows.
_TILED = (
    (1, 1, 3, 3, (0, 0, 0, 0), 1),
    (3, 5, 6, 7, (1, 1, 1, 1), 1),
    (2, 13, 5, 70, (0, 1, 2, 0), 1),
    (2, 6, 33, 5, (3, 3, 3, 3), 2),
    (100, 7, 11, 12, (1, 1, 1, 1), 1),
    (2, 3, 2, 2, (1, 1, 0, 0), 1),
    (2, 7, 13, 20, (1, 1, 1, 1), 2),
    (1, 2, 9, 4, (4, 0, 1, 0), 3),
)


def binary_samples() -> Iterator[Sample]:
    for op in names_of(arithmetic):
        if op in ("power", "modulo", "remainder"):
            continue
        for dtype in NUMBERS:
            yield Sample(op, (array(dtype, 6, 7), array(dtype, 6, 7)))
        for x, y in _SHAPES:
            yield Sample(op, (array("f32", *x), array("f32", *y)))
    for dtype in ("i8", "i32", "i64"):
        lowest = np.iinfo(NUMPY_NAMES[dtype]).min
        x = np.array([lowest, lowest, lowest, 7, -7, 7, -7, 0], NUMPY_NAMES[dtype])
        y = np.array([-1, 0, 1, 2, 2, -2, -2, 0], NUMPY_NAMES[dtype])
        yield Sample("divide", (x, y))
    for dtype in FLOATS:
        yield Sample("power", (array(dtype, 6, 6), array(dtype, 6, 6, special=False)))
    for dtype in INTEGERS:
        yield Sample("power", (array(dtype, 6, 7, special=False), array(dtype, 6, 7, special=False)))
    yield Sample("power", (array("f32", 3, 4), array("f32")))


def more_binary_samples() -> Iterator[Sample]:
    for op in ("modulo", "remainder"):
        for dtype in NUMBERS:
            yield Sample(op, (array(dtype, 6, 7), array(dtype, 6, 7)))
        yield Sample(op, (array("i8", 3, 1), array("i8", 4)))
        x = np.array([-128, -128, 7, -7, 7, -7, 5, 0], np.int8)
        yield Sample(op, (x, np.array([-1, 0, 2, 2, -2, -2, 0, -3], np.int8)))
        x, y = np.meshgrid(*[np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -1.5])] * 2)
        yield Sample(op, (x, y))
    for op in names_of(float_arithmetic):
        for dtype in FLOATS:
            yield Sample(op, (array(dtype, 6, 7), array(dtype, 7)))
        x, y = np.meshgrid(*[np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -1.5])] * 2)
        yield Sample(op, (x, y))
    for op in names_of(bitwise):
        for dtype in INTEGERS:
            yield Sample(op, (array(dtype, 6, 7), array(dtype, 7)))
        yield Sample(op, (array("u8", 0, 7), array("u8")))
    for op, dtype in itertools.product(("shift_left", "shift_right", "shift_right_logical"), INTEGERS):
        yield Sample(op, (array(dtype, 13, 1), np.arange(66).astype(NUMPY_NAMES[dtype])))
    for op, exclusive, reverse in itertools.product(("cumsum", "cumprod"), (False, True), (False, True)):
        flags = {"exclusive": exclusive, "reverse": reverse}
        for dtype in NUMBERS:
            yield Sample(op, (array(dtype, 5, 7, special=False, low=-2, high=3),), {"axis": 1, **flags})
        for axis in (0, 1, -1):
            yield Sample(op, (array("f32", 3, 4, 5, special=False),), {"axis": axis, **flags})
        for shape in ((0, 3), (3, 0), (1, 3)):
            yield Sample(op, (array("f32", *shape),), {"axis": 0, **flags})


def comparison_samples() -> Iterator[Sample]:
    for op in names_of(comparison):
        for dtype in ("bool", *NUMBERS):
            x, y = array(dtype, 5, 4), array(dtype, 5, 4)
            y[0] = x[0]
            yield Sample(op, (x, y))
        yield Sample(op, (array("f32", 2, 1, 5), array("f32", 3, 1)))
    for op in names_of(logical):
        yield Sample(op, (array("bool", 4, 5), array("bool", 5)))
        yield Sample(op, (array("bool"), array("bool")))
    yield Sample("logical_not", (array("bool", 3, 2),))
    yield Sample("logical_not", (np.array([True, False, True]),))


def unary_samples() -> Iterator[Sample]:
    for op in names_of(float_function):
        for dtype in FLOATS:
            yield Sample(op, (array(dtype, 4, 9),))
        yield Sample(op, (array("f32"),))
        yield Sample(op, (array("f32", 0, 2),))
    for op in names_of(float_predicate):
        for dtype in FLOATS:
            yield Sample(op, (array(dtype, 4, 9),))
            yield Sample(op, (np.array([0, -1.5, np.inf, -np.inf, np.nan], NUMPY_NAMES[dtype]),))
    for op in names_of(integer_function):
        for dtype in INTEGERS:
            info = np.iinfo(NUMPY_NAMES[dtype])
            yield Sample(op, (array(dtype, 4, 9),))
            yield Sample(op, (np.array([info.min, info.max, 0, 1, 2, 85, 127], NUMPY_NAMES[dtype]),))
    yield Sample("round_away", (np.float32([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 8388609.0]),))
    for op in (*names_of(numeric_function), "clip"):
        for dtype in NUMBERS:
            attributes = {"min": 2, "max": 3} if op == "clip" else {}
            yield Sample(op, (array(dtype, 4, 9),), attributes)
    yield Sample("clip", (array("f32", 4, 9),), {"min": -1.5})
    yield Sample("clip", (array("f32", 4, 9),), {"max": 0.25})
    yield Sample("clip", (array("f64", 4),))
    yield Sample("identity", (array("i16", 2, 3),))


def selection_samples() -> Iterator[Sample]:
    for dtype in ("bool", *NUMBERS):
        yield Sample("where", (array("bool", 4, 5), array(dtype, 4, 5), array(dtype, 4, 5)))
    yield Sample("where", (array("bool", 4, 1), array("f32", 5), array("f32")))
    for source in ("bool", *NUMBERS):
        for target in ("bool", *NUMBERS):
            fits = source not in FLOATS or target in FLOATS or target == "bool"
            low = 0 if target[0] == "u" else -5
            x = array(source, 4, 5) if fits else array(source, 4, 5, special=False, low=low)
            yield Sample("cast", (x,), {"to": target})
    around = np.float64([-0.5, 0, 1, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 3e9, 1e30, np.inf])
    for dtype, target in itertools.product(FLOATS, ("i8", "u8", "i16", "u16")):
        beside = np.concatenate([around, -around, around - 0.01, 0.01 - around, [np.nan]])
        yield Sample("saturating_cast", (np.resize(beside, (3, 40)).astype(NUMPY_NAMES[dtype]),), {"to": target})
    yield Sample("cast", (np.array([np.nan, np.inf, -np.inf, 1e30, -2.9]),), {"to": "i64"})
    edges = np.array([np.nan, np.inf, -np.inf, 1e30, -2.9, 2147483520, 2147483648, -2147483648, -2147483904])
    for dtype, target in itertools.product((np.float32, np.float64), ("i8", "u8", "i16", "u16", "i32")):
        yield Sample("cast", (edges.astype(dtype),), {"to": target})


def reduction_samples() -> Iterator[Sample]:
    for op in ("sum", "prod", "mean", "max", "min"):
        for dtype in FLOATS if op == "mean" else NUMBERS:
            yield Sample(op, (array(dtype, 5, 7, special=op in ("max", "min")),))
        for axes in ((0,), (-1,), (1,), (0, 2), (1, 2), (0, 1, 2), (), (-1, 0)):
            for keepdims in (False, True):
                attributes = {"axes": axes, "keepdims": keepdims}
                yield Sample(op, (array("f32", 3, 4, 5, special=False),), attributes)
        for axes in ((0,), (2,), None):
            yield Sample(op, (array("f32", 3, 5, 4),), {"axes": axes})
        yield Sample(op, (array("f32"),))
        yield Sample(op, (array("f32", 3, 0),), {"axes": (1,)})
        yield Sample(op, (array("f32", 0, 3),), {"axes": (0,), "keepdims": True})
        yield Sample(op, (array("f64", 2, 3, 2, 3, special=False),), {"axes": (1, 3)})
    yield Sample("sum", (array("f32", 1000, special=False, low=0, high=1),))
    for op in ("argmax", "argmin"):
        for dtype in NUMBERS:
            yield Sample(op, (array(dtype, 3, 8),), {"axis": 1})
        for axis in (0, 1, -1):
            yield Sample(op, (array("f32", 3, 4, 5),), {"axis": axis, "keepdims": True})
        yield Sample(op, (np.ones((3, 3), np.float32),), {"axis": 0})
        yield Sample(op, (array("f32", 0, 3),), {"axis": 1})
    for dtype in FLOATS:
        yield Sample("softmax", (array(dtype, 3, 7, special=False),))
        yield Sample("softmax", (array(dtype, 6, 9),))
    for axis in (0, 1, -1):
        yield Sample("softmax", (array("f32", 3, 4, 5, special=False),), {"axis": axis})
    yield Sample("softmax", (np.array([[-np.inf, 0, 1], [1000, 1001, 0], [np.inf, 1, 2]], np.float32),))
    yield Sample("softmax", (array("f32", 2, 0),))


def linear_samples() -> Iterator[Sample]:
    def numbers(dtype: str, *shape: int) -> np.ndarray:
        return array(dtype, *shape, special=False, low=-1 if dtype in FLOATS else -5, high=1 if dtype in FLOATS else 6)

    for dtype in NUMBERS:
        yield Sample("matmul", (numbers(dtype, 9, 11), numbers(dtype, 11, 34)))
    shapes = [((4,), (4,)), ((4,), (4, 3)), ((3, 4), (4,)), ((1, 5), (5, 1)), ((8, 130), (130, 32)), ((17, 3), (3, 65))]
    shapes += [
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (5, 4, 6)),
        ((3, 4), (2, 4, 5)),
        ((4,), (2, 4, 3)),
    ]
    shapes += [((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0)), ((2, 3, 4), (4,)), ((1, 3, 4), (2, 4, 2))]
    for a, b in shapes:
        yield Sample("matmul", (numbers("f32", *a), numbers("f32", *b)))
    for rows in range(2, 14):  # every remainder of rows; two panels in three chunks
        yield Sample("matmul", (numbers("f32", rows, 1030), numbers("f32", 1030, 70)), keep=frozenset((70,)))
    for rows, columns in ((1, 16), (5, 17), (7, 48), (13, 100), (6, 64), (9, 60), (0, 5)):
        packed = pack_columns(numbers("f32", 9, columns))
        given = {"columns": columns}
        yield Sample("matmul_packed", (numbers("f32", rows, 9), packed), given, frozenset((9, *packed.shape)))
    packed = pack_columns(numbers("f64", 4, 20))
    for shape in ((4,), (2, 7, 4), (2, 0, 4)):
        yield Sample("matmul_packed", (numbers("f64", *shape), packed), {"columns": 20}, frozenset((4, *packed.shape)))
    for channels, filters, high, wide, pads, spread in _TILED:
        u = transform_windows(numbers("f32", filters, channels, 3, 3))
        attributes = {"pads": pads, "spread": spread}
        yield Sample("conv_winograd", (numbers("f32", 2, channels, high, wide), u), attributes, frozenset(u.shape))
    few_positions: list[tuple[tuple[int, ...], tuple[int, ...], dict]] = [
        ((9, 5, 7), (13, 5, 3), {"pads": (1, 1), "strides": (3,)}),
        ((30, 4, 3, 6), (14, 2, 2, 3), {"pads": (1, 0, 0, 1), "groups": 2}),
        ((9, 70, 3, 3), (7, 70, 3, 3), {"pads": (1, 1, 1, 1)}),  # three chunks
        ((0, 6, 2), (8, 6, 1), {}),
    ]
    for images, weights, attributes in few_positions:  # of several images in a panel
        yield Sample(
            "conv", (numbers("f32", *images), numbers("f32", *weights)), attributes, frozenset((*images[1:], *weights))
        )
    windows: list[tuple[tuple[int, ...], tuple[int, ...], dict]] = [
        ((2, 3, 5, 4), (20, 3, 3, 3), {"pads": (1, 1, 1, 1)}),
        ((1, 7, 9, 13), (70, 7, 3, 2), {"pads": (2, 0, 1, 3), "strides": (2, 3)}),
        ((3, 5, 40), (16, 5, 4), {"dilations": (3,), "strides": (2,)}),
        ((1, 130, 12, 11), (9, 130, 3, 3), {"pads": (1, 1, 1, 1), "dilations": (1, 2)}),  # channels in chunks
        ((2, 300, 3, 2), (66, 300, 2, 2), {}),
        ((1, 2, 1, 203), (5, 2, 1, 7), {"pads": (0, 3, 0, 3)}),  # parts of a line
        ((5, 6, 1, 1), (130, 6, 1, 1), {}),
        ((0, 4, 3, 3), (8, 4, 3, 3), {}),
    ]
    for images, weights, attributes in windows:
        w = pack_filters(numbers("f32", *weights))
        given = {"filters": weights[0], "window": weights[2:], **attributes}
        yield Sample("conv_packed", (numbers("f32", *images), w), given, frozenset((*images[1:2], *w.shape)))
    for side in (3, 8, 30):  # for 30, the algorithm of conv_winograd; otherwise that of conv_packed
        w = numbers("f32", 30, 16, 3, 3)
        u, attributes = transform_windows(w), {"pads": (1, 1, 1, 1)}
        packed = pack_filters(w)
        for weights in (packed, w):
            fixed = frozenset((*weights.shape, *u.shape))
            yield Sample("conv_by_size", (numbers("f32", 2, 16, side, 3 * side), weights, u), attributes, fixed)
    for huge in (np.inf, -np.inf, np.nan, 3e38):
        x, u = numbers("f32", 1, 2, 9, 40), transform_windows(numbers("f32", 7, 2, 3, 3))
        x[0, 1, 4, 17] = huge
        yield Sample("conv_winograd", (x, u), {"pads": (1, 1, 1, 1)}, frozenset(u.shape))
    for transpose_a, transpose_b in ((True, False), (False, True), (True, True)):
        attributes = {"transpose_a": transpose_a, "transpose_b": transpose_b}
        for m, n, depth in ((3, 5, 7), (20, 40, 150), (1, 33, 64)):
            a, b = (depth, m) if transpose_a else (m, depth), (n, depth) if transpose_b else (depth, n)
            yield Sample("matmul", (numbers("f32", *a), numbers("f32", *b)), attributes)
        a, b = (2, 6, 3) if transpose_a else (2, 3, 6), (5, 6) if transpose_b else (6, 5)
        yield Sample("matmul", (numbers("f32", *a), numbers("f32", *b)), attributes)
    for dtype in ("f32", "f64", "i32"):
        yield Sample("conv", (numbers(dtype, 2, 3, 8, 9), numbers(dtype, 9, 3, 3, 2)), {"pads": (1, 0, 1, 2)})
    for strides in ((1, 1), (2, 2), (3, 2), (1, 4)):  # depthwise, also with rows longer than a strip
        for size, dilations in (((3, 3), (1, 1)), ((1, 5), (1, 2)), ((2, 2), (3, 3))):
            x, w = numbers("f32", 2, 4, 8, 150), numbers("f32", 4, 1, *size)
            given = {"strides": strides, "dilations": dilations, "groups": 4, "pads": (1, 2, 0, 3)}
            yield Sample("conv", (x, w), given, frozenset((1, 2, 3, 4, 5)))
    x, w = numbers("f32", 1, 3, 20), numbers("f32", 6, 1, 4)
    yield Sample("conv", (x, w), {"groups": 3, "pads": (3, 0)}, frozenset((3, 4, 6)))
    for strides, dilations, size in (((1, 1), (1, 1), (9, 3)), ((2, 1), (1, 3), (7, 3)), ((3, 3), (2, 1), (8, 2))):
        x, w = numbers("f32", 1, 6, 30, 290), numbers("f32", 6, 3, *size)  # several channels and blocks, long columns
        given = {"strides": strides, "dilations": dilations, "groups": 2, "pads": (8, 1, 6, 4)}
        yield Sample("conv", (x, w), given, frozenset((*w.shape, 6)))
    x, w = numbers("f32", 1, 8, 400, 5), numbers("f32", 4, 2, 3, 3)
    yield Sample("conv", (x, w), {"groups": 4, "pads": (0, 1, 3, 1)}, frozenset((2, 3, 4, 8)))
    yield Sample("conv", (numbers("f32", 1, 5, 3, 90), numbers("f32", 7, 5, 3, 3)), {"pads": (1, 1, 1, 1)})
    yield Sample(
        "conv", (numbers("f32", 1, 5, 9, 7), numbers("f32", 7, 5, 3, 3)), {"strides": (2, 2), "pads": (1, 0, 0, 1)}
    )
    yield Sample("conv", (numbers("f32", 1, 2, 11), numbers("f32", 4, 2, 3)), {"strides": (2,), "dilations": (2,)})
    yield Sample("conv", (numbers("f32", 1, 2, 4, 5, 6), numbers("f32", 3, 2, 2, 3, 2)), {"pads": (0, 1, 2, 1, 0, 2)})
    yield Sample("conv", (numbers("f32", 2, 5, 6, 7), numbers("f32", 8, 5, 1, 1)))
    yield Sample("conv", (numbers("f32", 2, 5, 6, 7), numbers("f32", 8, 5, 1, 1)), {"strides": (2, 3)})
    yield Sample("conv", (numbers("f32", 1, 16, 5, 5), numbers("f32", 9, 16, 3, 3)), {"pads": (1, 1, 1, 1)})
    grouped = {"strides": (2, 1), "pads": (1, 2, 0, 1), "dilations": (1, 2)}
    for channels, filters, groups in ((4, 4, 4), (4, 8, 4), (6, 6, 2), (4, 18, 2)):
        x, w = numbers("f32", 2, channels, 7, 8), numbers("f32", filters, channels // groups, 3, 3)
        keep = frozenset((channels, filters, channels // groups))
        yield Sample("conv", (x, w), {**grouped, "groups": groups}, keep=keep)
    yield Sample(
        "conv", (numbers("f32", 1, 3, 9), numbers("f32", 3, 1, 3)), {"groups": 3, "pads": (4, 4)}, keep=frozenset((3,))
    )


def attention_samples() -> Iterator[Sample]:
    def sample(q, k, v, allowed=(), bias=(), *, special: dict[str, float] | None = None, **attributes: Any) -> Sample:
        args = [array("f32", *shape, special=False, low=-2, high=2) for shape in (q, k, v)]
        args += [np.asarray(np.random.default_rng(5).uniform(size=allowed) > 0.3), array("f32", *bias, special=False)]
        for argument, value in (special or {}).items():
            args["qkvab".index(argument)].reshape(-1)[1::5] = value
        return Sample("attention", tuple(args), attributes, frozenset((q[-1], v[-1])))

    for rows in range(1, 9):
        yield sample((rows, 5), (7, 5), (7, 16), scale=0.25)
    for transposed in (False, True):  # several blocks of rows and of keys, the last ones incomplete
        keys = (2, 8, 700) if transposed else (2, 700, 8)
        yield sample((2, 200, 8), keys, (2, 700, 20), (200, 700), (2, 1, 700), transposed=transposed)
        yield sample((2, 3, 8), keys, (2, 700, 32), (1, 700), (2, 3, 1), transposed=transposed)
        yield sample((2, 9, 8), (2, 8, 1) if transposed else (2, 1, 8), (2, 1, 3), (9, 1), transposed=transposed)
    yield sample((2, 3, 4, 11, 6), (2, 3, 1, 10, 6), (1, 3, 1, 10, 17), (2, 1, 1, 1, 10), (4, 11, 1))
    for q, k, v in (((0, 4), (3, 4), (3, 4)), ((5, 4), (0, 4), (0, 4)), ((0, 5, 4), (0, 3, 4), (0, 3, 4))):
        yield sample(q, k, v, absent="zero")
    for absent in ABSENT:
        for row in (0, 1):  # all keys are masked for some queries
            allowed = np.arange(12) >= 6 * (1 - row) + 6
            made = sample((12, 4), (9, 4), (9, 4), (12, 1), absent=absent)
            yield Sample("attention", (*made.args[:3], allowed[:, None], made.args[4]), made.attributes, made.keep)
        for hidden in (-np.inf, -3e38, 0.0, np.inf, np.nan):
            yield sample((8, 4), (400, 4), (400, 4), (8, 400), hidden=hidden, absent=absent)
        for argument, value in (("q", np.nan), ("k", np.inf), ("v", np.nan), ("b", -np.inf), ("b", np.inf)):
            yield sample((8, 4), (400, 4), (400, 4), (8, 400), (8, 400), special={argument: value}, absent=absent)
    yield sample((8, 4), (400, 4), (400, 4), scale=-1000.0)


def pooling_samples() -> Iterator[Sample]:
    for op in ("max_pool", "average_pool"):
        x = array("f32", 2, 3, 7, 8, special=op == "max_pool")
        yield Sample(op, (x,), {"kernel": (3, 2)})
        yield Sample(op, (x,), {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)})
        yield Sample(op, (x,), {"kernel": (2, 3), "dilations": (2, 3), "pads": (0, 3, 2, 1)})
        yield Sample(op, (array("f64", 1, 2, 9, special=False),), {"kernel": (4,), "strides": (3,)})
        yield Sample(
            op, (array("f32", 1, 2, 4, 5, 6, special=False),), {"kernel": (2, 2, 2), "pads": (0, 1, 1, 1, 0, 1)}
        )
        yield Sample(op, (array("f32", 1, 1, 3, special=False),), {"kernel": (2,), "pads": (3, 3)})
    yield Sample("max_pool", (array("i8", 1, 2, 5, 6),), {"kernel": (2, 2), "pads": (1, 1, 1, 1)})
    included = {"kernel": (3, 3), "pads": (1, 1, 1, 1), "count_include_pad": True}
    yield Sample("average_pool", (array("f32", 1, 2, 5, 6, special=False),), included)
    yield from max_pool_indices_samples()
    yield from fold_samples()


def max_pool_indices_samples() -> Iterator[Sample]:
    op, x = "max_pool_indices", array("f32", 2, 3, 7, 8)
    yield Sample(op, (x,), {"kernel": (3, 2)})
    yield Sample(op, (x,), {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1), "column_major": True})
    yield Sample(op, (x,), {"kernel": (2, 3), "dilations": (2, 3), "pads": (0, 3, 2, 1)})
    yield Sample(op, (array("f64", 1, 2, 4, 5, 6),), {"kernel": (2, 2, 2), "column_major": True})
    yield Sample(op, (np.ones((1, 1, 5), np.int8),), {"kernel": (3,), "pads": (4, 0)})
    yield Sample(op, (np.full((1, 2, 4, 4), -np.inf, np.float32),), {"kernel": (2, 2), "pads": (1, 1, 1, 1)})
    yield Sample(op, (array("f32", 0, 3, 4),), {"kernel": (2,)})


def fold_samples() -> Iterator[Sample]:
    def numbers(dtype: str, *shape: int) -> np.ndarray:
        return array(dtype, *shape, special=False)

    for dtype in ("f32", "f64", "i8", "u16"):
        yield Sample("col2im", (numbers(dtype, 2, 3, 3, 4, 5, 6), (2, 3, 7, 9)))
    yield Sample("col2im", (numbers("f32", 1, 2, 2, 2, 3, 5), (1, 2, 6, 10)), {"strides": (2, 2)})
    uneven = {"strides": (2, 3), "pads": (1, 2), "dilations": (3, 2)}
    yield Sample("col2im", (numbers("f32", 2, 1, 3, 2, 4, 5), (2, 1, 9, 16)), uneven)
    yield Sample("col2im", (numbers("f32", 2, 1, 3, 2, 4, 5), (2, 1, 30, 3)), uneven)
    yield Sample("col2im", (numbers("f32", 2, 3, 4, 6), (2, 3, 13)), {"strides": (2,), "pads": (1,)})
    yield Sample("col2im", (numbers("f32", 1, 1, 2, 3, 2, 3, 2, 4), (1, 1, 4, 5, 6)), {"strides": (2, 1, 1)})
    yield Sample("col2im", (numbers("f32", 2, 3, 4, 0), (2, 3, 5)))
    yield Sample("col2im", (numbers("f32", 0, 3, 4, 2), (0, 3, 5)))


def scalar_samples() -> Iterator[Sample]:
    for dtype in ("bool", *NUMBERS):
        yield Sample("to_scalar", (array(dtype),), keep=None)
    yield Sample("to_scalar", (np.array(True),), keep=None)
    for dtype in ("bool", *NUMBERS):
        yield Sample("element_at", (array(dtype, 2, 3), 4), keep=None)
    yield Sample("element_at", (array("f32"), 0), keep=None)
    for value in (0, 1, -(2**62) - 1, 2**63 - 1):
        yield Sample("to_tensor", (value,), {"dtype": "i64"}, keep=None)
        yield Sample("to_tensor", (value,), {"dtype": "f32"}, keep=None)
    for dtype in NUMBERS:
        yield Sample("to_tensor", (100,), {"dtype": dtype}, keep=None)
    for value in (0.1, -0.0, np.inf, 1e300):
        yield Sample("to_tensor", (float(value),), {"dtype": "f32"}, keep=None)
        yield Sample("to_tensor", (float(value),), {"dtype": "f64"}, keep=None)
    yield Sample("to_tensor", (True,), {"dtype": "bool"}, keep=None)


_NONE = np.zeros((0,), np.int32)


def _cell(op: str, steps: int, batch: int, hidden: int, directions: int = 1, dtype: str = "f32") -> tuple:
    """Return the arguments of a recurrent operator, without the sequence lengths."""
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[op]

    def made(*shape: int) -> np.ndarray:
        return array(dtype, *shape, special=False, low=-1, high=1)

    x, r = made(steps, batch, directions * gates * hidden), made(directions, hidden, gates * hidden)
    h = made(directions, batch, hidden)
    if op == "rnn":
        return x, r, h
    if op == "gru":
        return x, r, made(directions, hidden), h
    return x, r, made(directions, 3 * hidden), h, made(directions, batch, hidden)


def quantisation_samples() -> Iterator[Sample]:
    for shape in ((), (1,), (7,), (3, 130), (2, 0, 3), (5, 1, 9), (9, 1025)):  # the last has several chunks
        yield Sample("dynamic_quantize", (array("f32", *shape, special=False),))
    for x in ([0.0, 0.0], [1.0, 2.0, 7.5], [-3.0, -1.0], [0.5, -np.nan, 2.5, -1.5], [np.inf, 1.0, -2.0], [3e38, -3e38]):
        yield Sample("dynamic_quantize", (np.array(x, np.float32),))
    halves = np.arange(-128, 128, dtype=np.float32) + np.float32(0.5)
    yield Sample("dynamic_quantize", (np.concatenate([halves, np.float32([-127, 128])]),))


def recurrent_samples() -> Iterator[Sample]:
    """Yield calls of recurrent operators.  The number of units and its multiples are never symbolic."""
    special = {"rnn": ({},), "gru": ({}, {"reset_after": True}), "lstm": ({}, {"coupled": True})}
    for op, given in special.items():
        keep = frozenset(factor * hidden for hidden in (3, 9, 21) for factor in (1, 2, 3, 4, 6, 8)) | {0, 2}
        for attributes in given:
            yield Sample(op, (*_cell(op, 5, 4, 9), _NONE), attributes, keep)
            sizes = {"direction": "bidirectional", **attributes}
            lengths = np.array([7, 0, 5, 2], np.int32)
            yield Sample(op, (*_cell(op, 7, 4, 3, 2, "f64"), lengths), sizes, keep)
            yield Sample(
                op, (*_cell(op, 5, 4, 3), np.array([5, 2, 0, 1], np.int32)), attributes | {"direction": "reverse"}, keep
            )
            for batch in (1, 5):  # incomplete tiles, for batches of different sizes
                yield Sample(op, (*_cell(op, 2, batch, 21), _NONE), attributes, keep)
            lengths = np.array([1, 4, 0, 2, 4, 3, 4, 2, 1], np.int32)
            yield Sample(op, (*_cell(op, 4, 9, 21, 2), lengths), sizes, keep)
        yield Sample(op, (*_cell(op, 0, 4, 3), _NONE), {}, keep)
        yield Sample(op, (*_cell(op, 5, 0, 3), _NONE), {}, keep)
        yield Sample(op, (*_cell(op, 5, 4, 3), np.array([5, 5, 6, 0], np.int32)), {}, keep, RelvmShapeError)
        count = {"rnn": 1, "gru": 2, "lstm": 3}[op]
        for name in ACTIVATIONS if op == "rnn" else ("softsign",):
            yield Sample(op, (*_cell(op, 5, 4, 3), _NONE), {"activations": (name,) * count, "clip": 1.5}, keep)
        numbers = {"alpha": (0.5,) * count, "beta": (0.25,) * count}
        yield Sample(op, (*_cell(op, 5, 4, 3), _NONE), {"activations": ("affine",) * count, **numbers}, keep)
    for time_axis in (0, 1):
        for dtype, more in (("f32", (5,)), ("i8", ())):
            x, lengths = array(dtype, 3, 4, *more), np.array([2, 0, 3, 1][: 4 - time_axis], np.int64)
            yield Sample("reverse_sequence", (x, lengths), {"time_axis": time_axis})
    yield Sample("reverse_sequence", (array("f32", 0, 4), np.zeros(4, np.int32)))
    wrong = np.array([-1, 0], np.int32)
    yield Sample("reverse_sequence", (array("f32", 3, 2), wrong), fails=RelvmShapeError)
    x, r, _, h, c = _cell("lstm", 5, 4, 3)
    yield Sample("lstm", (x, r, np.zeros((1, 0), np.float32), h, c, _NONE), {}, keep)


SAMPLES: tuple[Sample, ...] = tuple(
    itertools.chain(
        binary_samples(),
        more_binary_samples(),
        comparison_samples(),
        unary_samples(),
        selection_samples(),
        reduction_samples(),
        linear_samples(),
        attention_samples(),
        pooling_samples(),
        shape_samples(),
        indexing_samples(),
        position_samples(),
        tree_samples(),
        scalar_samples(),
        integer_samples(),
        block_row_samples(),
        block_samples(),
        integer_convolution_samples(),
        quantisation_samples(),
        recurrent_samples(),
        sampled_samples(),
        region_samples(),
        suppression_samples(),
        row_samples(),
        bit_samples(),
        list_samples(),
        string_samples(),
    )
)
