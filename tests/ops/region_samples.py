"""Sample calls of operators that interpolate images, sort rows, or operate on bits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from ops.sample_values import FLOATS, INTEGERS, NUMBERS, Sample, array

from relvm.errors import RelvmArithmeticError, RelvmIndexError
from relvm.ir.dtypes import dtype_of

_KEEP2, _KEEP4 = frozenset((2,)), frozenset((4,))


def sampled_samples() -> Iterator[Sample]:
    random = np.random.default_rng(17)
    modes, paddings = ("nearest", "linear", "cubic"), ("zeros", "border", "reflection")
    for mode, padding, aligned in itertools.product(modes, paddings, (False, True)):
        attributes = {"mode": mode, "padding": padding, "align_corners": aligned}
        for dtype in FLOATS:
            x, places = array(dtype, 3, 4, 5, 6, special=False), array(dtype, 3, 7, 2, low=-9, high=14, special=False)
            yield Sample("grid_sample", (x, places), attributes, _KEEP2)
        line = array("f32", 1, 3, 5, special=False), array("f32", 1, 9, 1, low=-4, high=9, special=False)
        yield Sample("grid_sample", line, attributes)
        single = array("f32", 1, 1, 1, 5, special=False), random.uniform(-3, 6, (1, 4, 3, 2)).astype(np.float32)
        yield Sample("grid_sample", single, attributes, _KEEP2)
    for mode in modes:
        volume = array("f64", 2, 1, 4, 5, 6, special=False), array("f64", 2, 7, 3, low=-2, high=7, special=False)
        yield Sample("grid_sample", volume, {"mode": mode}, frozenset((3,)))
        for x, places in (((1, 3, 0, 5), (1, 4, 2)), ((1, 3, 4, 5), (1, 0, 2)), ((0, 3, 4, 5), (0, 6, 2))):
            for padding in paddings:
                args = array("f32", *x, special=False), array("f32", *places, special=False)
                yield Sample("grid_sample", args, {"mode": mode, "padding": padding}, _KEEP2)
    far = np.array([[[np.nan, 1], [1e30, 1], [-np.inf, 2], [np.inf, 0]]], np.float32)
    for padding in ("zeros", "border"):
        x = array("f32", 1, 3, 4, 5, special=False)
        yield Sample("grid_sample", (x, far), {"mode": "nearest", "padding": padding}, _KEEP2)
    for dtype in ("bool", "i8", "u64"):
        args = array(dtype, 1, 3, 4, 5), array("f64", 1, 8, 2, low=-1, high=6, special=False)
        yield Sample("grid_sample", args, {"mode": "nearest"}, _KEEP2)


def region_samples() -> Iterator[Sample]:
    random = np.random.default_rng(19)
    for dtype in FLOATS:
        x, images = array(dtype, 3, 5, 8, 9, special=False), np.array([2, 0, 1, 1, 0, 2], np.int64)
        corners = random.uniform(-3, 14, (6, 2))
        regions = np.concatenate([corners, corners + random.uniform(-1, 7, (6, 2))], 1).astype(x.dtype)
        for mode, samples, half, scale in itertools.product(("avg", "max"), (0, 3), (True, False), (1.0, 0.5)):
            attributes = {"size": (2, 3), "mode": mode, "samples": samples, "half_pixel": half, "scale": scale}
            yield Sample("roi_align", (x, regions, images), attributes, _KEEP4)
        for size, scale in (((1, 1), 1.0), ((2, 3), 0.75), ((7, 6), 0.5)):
            yield Sample("roi_max_pool", (x, regions, images), {"size": size, "scale": scale}, _KEEP4)
        halves = np.array([[0.5, 2.5, 4.5, 6.5], [-0.5, -2.5, 3.5, 5.5]], x.dtype)  # rounded away from 0
        yield Sample("roi_max_pool", (x, halves, images[:2]), {"size": (2, 3)}, _KEEP4)
    for op in ("roi_align", "roi_max_pool"):
        none = (x, np.zeros((0, 4)), np.zeros(0, np.int64))
        yield Sample(op, none, {"size": (2, 2)}, _KEEP4)
        for image in (3, -1):
            args = (x, np.zeros((1, 4)), np.array([image]))
            yield Sample(op, args, {"size": (2, 2)}, _KEEP4, RelvmIndexError)
        for number, scale in ((np.nan, 1.0), (-np.inf, 1.0), (1.0, 1e30), (1e6, 1.0)):
            args = (x, np.array([[0, 0, 1, number]]), np.array([1]))
            yield Sample(op, args, {"size": (2, 2), "scale": scale}, _KEEP4, RelvmArithmeticError)


def suppression_samples() -> Iterator[Sample]:
    random = np.random.default_rng(23)
    for images, kinds, count in ((2, 3, 40), (1, 1, 1), (1, 3, 0)):
        boxes = random.uniform(0, 3, (images, count, 4)).astype(np.float32)
        scores = random.uniform(0, 1, (images, kinds, count)).astype(np.float32)
        scores[..., ::3] = np.round(scores[..., ::3], 1)
        for limit, overlap, threshold, centred in itertools.product(
            (0, 4, 100), (0.0, 0.3), (0.4, np.nan), (False, True)
        ):
            numbers = np.array(limit), np.array(overlap, np.float32), np.array(threshold, np.float32)
            yield Sample("non_max_suppression", (boxes, scores, *numbers), {"centred": centred}, _KEEP4)

    boxes = np.array([[[0, 0, 2, 2], [0, 0, 2, 1], [5, 5, 6, 6]]], np.float32)  # the first two share half of their area
    scores = np.array([[[0.75, 0.5, 0.25]]], np.float32)
    for overlap, threshold in itertools.product((0.5, -1.0), (0.25, -1.0)):
        numbers = np.array(3), np.array(overlap, np.float32), np.array(threshold, np.float32)
        yield Sample("non_max_suppression", (boxes, scores, *numbers), {"centred": False}, _KEEP4)


def row_samples() -> Iterator[Sample]:
    for dtype in ("bool", *NUMBERS):
        yield Sample("lexsort_rows", (array(dtype, 40, 3, low=0, high=3, special=False),))
    yield Sample("lexsort_rows", (array("f32", 20, 1),))
    for shape in ((0, 3), (3, 0), (1, 2), (2, 1)):
        yield Sample("lexsort_rows", (array("i32", *shape),))
    yield Sample("lexsort_rows", (np.array([[np.nan, 1], [np.nan, 0], [0, np.nan], [-np.inf, 2]], np.float32),))
    for dtype, shape in (
        ("f32", (3, 3)),
        ("f64", (2, 3, 7, 7)),
        ("f64", (0, 0)),
        ("f32", (0, 2, 2)),
        ("f32", (4, 1, 1)),
    ):
        yield Sample("row_echelon", (array(dtype, *shape, special=False),))
    random = np.random.default_rng(31)
    for dtype, classes in itertools.product((np.float32, np.float64), (1, 2, 5)):
        above = np.triu(random.uniform(0.02, 0.98, (9, classes, classes)), 1)
        yield Sample(
            "pairwise_coupling",
            ((above + np.tril(1 - np.swapaxes(above, 1, 2), -1)).astype(dtype),),
            {},
            frozenset((classes,)),
        )
    yield Sample("row_echelon", (np.array([[0, 2, 1], [0, 0, 3], [4, 1, 1]], np.float32),))
    yield Sample("row_echelon", (np.array([[1, 2, 3], [2, 4, 6], [0, 0, 0]], np.float64),))


def bit_samples() -> Iterator[Sample]:
    for first, second in (("f32", "i32"), ("f32", "u32"), ("f64", "i64"), ("f64", "u64")):
        finite = array(first, 5, 7)
        yield Sample("bit_cast", (finite,), {"to": second})
        yield Sample("bit_cast", (finite.view(array(second).dtype),), {"to": first})
    for dtype in ("bool", *INTEGERS):
        bits = {"bool": 8}.get(dtype) or int(dtype[1:])
        for sign in "iu":
            yield Sample("bit_cast", (array(dtype, 3, 5),), {"to": f"{sign}{bits}"})
    for dtype, integer in itertools.product(("f16", "bf16"), ("i16", "u16")):
        numbers = np.array([0.0, -0.0, 1.5, -2.25, np.inf, 3e4]).astype(dtype_of(dtype).numpy)
        yield Sample("bit_cast", (numbers,), {"to": integer})
        if dtype == "bf16":
            yield Sample("bit_cast", (numbers.view(array(integer).dtype),), {"to": dtype})
    yield Sample("bit_cast", (np.arange(256, dtype=np.uint8),), {"to": "bool"})
    yield Sample("bit_cast", (array("f32", 0, 3),), {"to": "f32"})
