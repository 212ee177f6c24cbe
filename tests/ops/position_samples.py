"""Calls of the operators that take or put elements at computed positions, or find positions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from ops.sample import NUMBERS, NUMPY, Sample, array

from relvm.errors import RelvmIndexError, RelvmShapeError


def position_samples() -> Iterator[Sample]:
    random = np.random.default_rng(11)
    ops = ("gather_elements", "scatter_elements")
    for op, dtype in itertools.product(ops, ("i32", "i64")):
        shapes = [((3, 4, 5), (2, 3, 4), 0), ((3, 4, 5), (3, 9, 5), 1), ((3, 4, 5), (3, 4, 2), -1), ((6,), (8,), 0)]
        shapes += [((0, 3), (0, 2), 1), ((2, 3), (2, 0), 1), ((1, 4), (1, 4), 0)]
        for shape, wanted, axis in shapes:
            size = max(1, shape[axis])
            indices = random.integers(-size, size, wanted).astype(NUMPY[dtype])
            args = (array("f32", *shape), indices, array("f32", *wanted))
            yield Sample(op, args[: 2 + (op == "scatter_elements")], {"axis": axis})
    for index in (4, -5):
        args = (array("f32", 2, 4), np.array([[1, index]]), array("f32", 1, 2))
        yield Sample("gather_elements", args[:2], {"axis": 1}, fails=RelvmIndexError)
        yield Sample("scatter_elements", args, {"axis": 1}, fails=RelvmIndexError)
    for reduction in ("none", "add", "mul", "max", "min"):
        for dtype in ("f32", "f64", "i8", "u16"):
            args = (array(dtype, 5, 4), random.integers(-5, 5, (13, 3)), array(dtype, 13, 3))
            yield Sample("scatter_elements", args, {"axis": 0, "reduction": reduction})
            args = (array(dtype, 3, 4, 5), random.integers(-3, 3, (7, 2)), array(dtype, 7, 5))
            attributes = {"depth": 2, "reduction": reduction}
            yield Sample("scatter_slices", args, attributes, keep=frozenset((2,)))
    yield Sample("scatter_elements", (array("bool", 4), np.array([1, 1, 3]), array("bool", 3)), {"axis": 0})
    yield from slice_samples()
    yield from ordering_samples()


def slice_samples() -> Iterator[Sample]:
    random = np.random.default_rng(13)
    for shape, rows, depth in (
        ((3, 4, 5), (2, 6), 1),
        ((3, 4, 5), (6,), 2),
        ((3, 4, 5), (2, 1, 7), 3),
        ((3, 4), (5,), 0),
        ((3, 4), (), 2),
        ((2, 0), (3,), 1),
        ((2, 3), (0,), 1),
    ):
        sizes = np.array(shape[:depth], np.int32)
        args = (array("f32", *shape), random.integers(-sizes, sizes, (*rows, depth)).astype(np.int32))
        keep = frozenset((depth,))
        yield Sample("gather_slices", args, {"depth": depth}, keep=keep)
        updates = array("f32", *rows, *shape[depth:])
        yield Sample("scatter_slices", (*args, updates), {"depth": depth}, keep=keep)
    for row in ((0, 4), (0, -5), (3, 0)):
        args = (array("f32", 3, 4, 6), np.array([(0, 0), row]), array("f32", 2, 6))
        yield Sample("gather_slices", args[:2], {"depth": 2}, keep=frozenset((2,)), fails=RelvmIndexError)
        yield Sample("scatter_slices", args, {"depth": 2}, keep=frozenset((2,)), fails=RelvmIndexError)


def ordering_samples() -> Iterator[Sample]:
    for largest in (True, False):
        for dtype in ("bool", *NUMBERS):
            yield Sample("top_positions", (array(dtype, 5, 20), (5, 7)), {"axis": 1, "largest": largest})
        for count in (1, 2, 3, 40, 41):
            x = array("i8", 41, 3, low=0, high=4, special=False)
            yield Sample("top_positions", (x, (count, 3)), {"axis": 0, "largest": largest})
        shapes = [((2, 6, 5), (2, 4, 5), 1), ((4,), (0,), 0), ((0, 3), (0, 2), -1), ((3, 0), (3, 0), 1)]
        for shape, wanted, axis in shapes:
            yield Sample("top_positions", (array("f64", *shape), wanted), {"axis": axis, "largest": largest})
        x = np.array([np.nan, 1, np.nan, np.inf, -np.inf, 1], np.float32)
        yield Sample("top_positions", (x, (6,)), {"axis": 0, "largest": largest})
    for shape in ((13,), (3, 5), (), (0, 4), (2, 3, 4)):
        cond = array("bool", *shape)
        yield Sample("true_positions", (cond, (int(cond.sum()),)))
    yield Sample("true_positions", (np.zeros((2, 3), bool), (0,)))
    yield Sample("true_positions", (np.ones((2, 3), bool), (5,)), fails=RelvmShapeError)
