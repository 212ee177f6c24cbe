"""Sample calls of operators that move elements: views, indexing, slicing and sorting."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from ops.sample_values import NUMBERS, NUMPY_NAMES, Sample, array

from relvm.errors import RelvmIndexError, RelvmShapeError


def shape_samples() -> Iterator[Sample]:
    for x in (array("f32"), array("i8", 3, 4), array("f64", 0, 2, 1)):
        yield Sample("shape_of", (x,))
    yield Sample("shape_to_tensor", ((3, 4, 5),))
    yield Sample("shape_to_tensor", ((),))
    yield Sample("tensor_to_shape", (np.array([3, 4], np.int64),), keep=None)
    yield Sample("reshape", (array("f32", 3, 4), (2, 6)))
    yield Sample("reshape", (array("f32", 3, 4), (12,)))
    yield Sample("reshape", (array("u8", 1, 1), ()))
    yield Sample("reshape", (array("f32", 0, 4), (2, 0)))
    yield Sample("expand_dims", (array("f32", 3, 4),), {"axes": (0, -1)})
    yield Sample("expand_dims", (array("f32"),), {"axes": (0,)})
    yield Sample("squeeze", (array("f32", 1, 3, 1),), {"axes": (0, -1)})
    yield Sample("squeeze", (array("f32", 1, 3, 1),), keep=None)
    for source, target in (((), (2, 3)), ((3, 1), (2, 3, 4)), ((4,), (3, 4)), ((1, 1), (0, 2)), ((2, 3), (2, 3))):
        yield Sample("broadcast_to", (array("i16", *source), target))
        counted = np.arange(np.prod(source, dtype=int), dtype=np.int16).reshape(source)
        yield Sample("expand", (counted, target), keep=None)
    for perm in itertools.permutations(range(3)):
        yield Sample("transpose", (array("f32", 2, 3, 4),), {"perm": perm})
    for dtype in ("f32", "i32", "i64", "bool"):  # complete and incomplete tiles
        for size in ((8, 8), (16, 40), (33, 17), (7, 50)):
            yield Sample("transpose", (array(dtype, *size),))
        yield Sample("transpose", (array(dtype, 3, 20, 2, 37),), {"perm": (3, 0, 2, 1)})
    yield Sample("transpose", (array("f32", 0, 20),))
    yield Sample("transpose", (array("bool", 2, 3),))
    yield Sample("transpose", (array("f32"),))
    yield Sample("transpose", (array("f32", 2, 3, 4, 5),), {"perm": (0, -1, 1, 2)})
    for axis in (0, 1, -1):
        shapes = [(2, 3, 2), (2, 3, 2), (2, 3, 2)]
        shapes[1] = tuple(5 if at == axis % 3 else size for at, size in enumerate(shapes[1]))
        shapes[2] = tuple(0 if at == axis % 3 else size for at, size in enumerate(shapes[2]))
        yield Sample("concat", tuple(array("i64", *shape) for shape in shapes), {"axis": axis})
    yield Sample("concat", (array("f32", 4),), {"axis": 0})


def indexing_samples() -> Iterator[Sample]:
    far = 2**63 - 1
    x = array("f32", 7)
    bounds = [
        (0, far, 1),
        (1, far, 1),
        (0, -1, 1),
        (-3, far, 1),
        (2, 5, 1),
        (5, 2, 1),
        (-100, 100, 1),
        (0, far, 2),
        (1, 6, 3),
    ]
    bounds += [
        (9, far, 1),
        (far, -far, -1),
        (-1, -far - 1, -1),
        (5, 1, -2),
        (-2, -6, -3),
        (100, 2, -1),
        (0, far, -1),
        (3, 3, 1),
    ]
    for begin, end, step in bounds:
        yield Sample("slice", (x,), {"begin": (begin,), "end": (end,), "steps": (step,)})
    grid = array("i32", 4, 5, 6)
    yield Sample("slice", (grid,), {"begin": (1, 0), "end": (3, far), "axes": (0, -1), "steps": (1, 2)})
    yield Sample("slice", (grid,), {"begin": (far, 1), "end": (-far, 4), "axes": (1, 2), "steps": (-1, 1)})
    yield Sample("slice", (grid,), {"begin": (), "end": ()})
    yield Sample("slice", (array("f32", 0, 3),), {"begin": (1,), "end": (far,), "axes": (0,)})
    for dtype in ("i32", "i64"):
        indices = np.array([[0, -1], [2, -3]], NUMPY_NAMES[dtype])
        for axis in (0, 1, -1):
            yield Sample("gather", (array("f32", 3, 4, 5), indices), {"axis": axis})
        yield Sample("gather", (array("f32", 3, 4), np.array(1, NUMPY_NAMES[dtype])))
        yield Sample("gather", (array("f32", 0, 4), np.zeros((0,), NUMPY_NAMES[dtype])))
        limits = np.iinfo(NUMPY_NAMES[dtype])
        for index in (3, -4, limits.min, limits.max):
            indices = np.array([0, index], NUMPY_NAMES[dtype])
            yield Sample("gather", (array("f32", 3, 2), indices), fails=RelvmIndexError)
    yield Sample("gather", (array("f32", 0, 3), np.array([5])), {"axis": 1}, fails=RelvmIndexError)
    yield Sample("gather", (array("f32", 3, 2), np.array([2, 0])), {"from_end": False})
    yield Sample("gather", (array("f32", 3, 2), np.array([1, -1])), {"from_end": False}, fails=RelvmIndexError)
    for pads in ((1, 2, 0, 3), (0, 0, 0, 0), (-1, 1, 2, -2), (-2, -1, -1, -1)):
        yield Sample("pad", (array("f32", 4, 5),), {"pads": pads, "value": 1.5})
    yield Sample("pad", (array("i8", 3),), {"pads": (2, 2), "value": -7})
    yield Sample("pad", (array("f32"),), {"pads": ()})
    yield Sample("pad", (array("f32", 2),), {"pads": (1, 1), "value": -np.inf})
    for pads in ((0, 0, 1, 2, 0, 0, 3, 1), (1, 2, 0, 1, 1, 0, 3, 0), (0, -1, 1, -2, 1, 2, -1, 0)):
        yield Sample("pad", (array("i16", 2, 3, 4, 5),), {"pads": pads, "value": 9})
    for pads in ((0, -3, 0, 5), (-3, 0, 5, 0), (0, 5, 0, -3), (5, 0, -3, 0), (0, 40, 0, 140), (40, 0, 9, 0)):
        yield Sample("pad", (array("u8", 2, 2),), {"pads": pads, "value": 7})
    for shape in ((0, 3), (3, 0), (2, 0, 3)):
        yield Sample("pad", (array("f64", *shape),), {"pads": (1,) * (2 * len(shape)), "value": 2})
    yield from margin_samples()
    yield from resampling_samples()


def margin_samples() -> Iterator[Sample]:
    for mode in ("edge", "reflect", "wrap"):
        for pads in ((1, 2, 0, 3), (0, 0, 0, 0), (9, 11, 10, 13)):
            yield Sample("pad", (array("f32", 4, 5),), {"pads": pads, "mode": mode})
        yield Sample("pad", (array("bool", 2, 3, 4),), {"pads": (0, 2, 0, 1, 0, 3), "mode": mode})
        yield Sample("pad", (array("i8", 1, 3),), {"pads": (2, 0, 3, 0), "mode": mode})
        yield Sample("pad", (array("f64"),), {"pads": (), "mode": mode})
        yield Sample("pad", (array("f32", 0, 3),), {"pads": (0, 1, 0, 1), "mode": mode})


def resampling_samples() -> Iterator[Sample]:
    random = np.random.default_rng(7)
    for shape in ((5,), (2, 3), (), (0, 4)):
        yield Sample("iota", (shape,))
    for dtype, shape, axis in (("f32", (4, 6), -1), ("f64", (4, 6), 0), ("f32", (2, 3, 5), 1), ("f32", (6,), 0)):
        for taps, places in ((1, 7), (2, 9), (4, 3), (11, 8), (2, 0)):
            indices = random.integers(0, shape[axis], (taps, places))
            yield Sample(
                "interpolate",
                (array(dtype, *shape, special=False), indices, array(dtype, taps, places, special=False)),
                {"axis": axis},
            )
    indices, weights = random.integers(0, 3, (0, 2)), array("f32", 0, 2)
    yield Sample("interpolate", (array("f32", 2, 3), indices, weights), {"axis": 1})
    yield Sample("interpolate", (array("f32", 0, 3), np.zeros((2, 5), np.int64), array("f32", 2, 5)), {"axis": 1})
    for index in (3, -1):
        args = (array("f32", 3, 2), np.array([[0, index]]), array("f32", 1, 2))
        yield Sample("interpolate", args, {"axis": 0}, fails=RelvmIndexError)


def position_samples() -> Iterator[Sample]:
    random = np.random.default_rng(11)
    ops = ("gather_elements", "scatter_elements")
    for op, dtype in itertools.product(ops, ("i32", "i64")):
        shapes = [((3, 4, 5), (2, 3, 4), 0), ((3, 4, 5), (3, 9, 5), 1), ((3, 4, 5), (3, 4, 2), -1), ((6,), (8,), 0)]
        shapes += [((0, 3), (0, 2), 1), ((2, 3), (2, 0), 1), ((1, 4), (1, 4), 0), ((9, 300), (9, 131), 1)]
        for shape, wanted, axis in shapes:
            size = max(1, shape[axis])
            indices = random.integers(-size, size, wanted).astype(NUMPY_NAMES[dtype])
            args = (array("f32", *shape), indices, array("f32", *wanted))
            yield Sample(op, args[: 2 + (op == "scatter_elements")], {"axis": axis})
    for index in (4, -5):
        args = (array("f32", 2, 4), np.array([[1, index]]), array("f32", 1, 2))
        yield Sample("gather_elements", args[:2], {"axis": 1}, fails=RelvmIndexError)
        yield Sample("scatter_elements", args, {"axis": 1}, fails=RelvmIndexError)
    for index, fails in ((3, None), (-1, RelvmIndexError)):
        args = (array("f32", 2, 4), np.array([[1, index]]), array("f32", 1, 2))
        yield Sample("gather_elements", args[:2], {"axis": 1, "from_end": False}, fails=fails)
        yield Sample("scatter_elements", args, {"axis": 1, "from_end": False}, fails=fails)
    for reduction in ("none", "add", "mul", "max", "min"):
        for dtype in ("f32", "f64", "i8", "u16"):
            args = (array(dtype, 5, 4), random.integers(-5, 5, (13, 3)), array(dtype, 13, 3))
            yield Sample("scatter_elements", args, {"axis": 0, "reduction": reduction})
            args = (array(dtype, 3, 4, 5), random.integers(-3, 3, (7, 2)), array(dtype, 7, 5))
            attributes = {"depth": 2, "reduction": reduction}
            yield Sample("scatter_nd", args, attributes, keep=frozenset((2,)))
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
        yield Sample("gather_nd", args, {"depth": depth}, keep=keep)
        updates = array("f32", *rows, *shape[depth:])
        yield Sample("scatter_nd", (*args, updates), {"depth": depth}, keep=keep)
    for row in ((0, 4), (0, -5), (3, 0)):
        args = (array("f32", 3, 4, 6), np.array([(0, 0), row]), array("f32", 2, 6))
        yield Sample("gather_nd", args[:2], {"depth": 2}, keep=frozenset((2,)), fails=RelvmIndexError)
        yield Sample("scatter_nd", args, {"depth": 2}, keep=frozenset((2,)), fails=RelvmIndexError)


def ordering_samples() -> Iterator[Sample]:
    for largest in (True, False):
        for dtype in ("bool", *NUMBERS):
            yield Sample("argtopk", (array(dtype, 5, 20), (5, 7)), {"axis": 1, "largest": largest})
        for count in (1, 2, 3, 40, 41):
            x = array("i8", 41, 3, low=0, high=4, special=False)
            yield Sample("argtopk", (x, (count, 3)), {"axis": 0, "largest": largest})
        shapes = [((2, 6, 5), (2, 4, 5), 1), ((4,), (0,), 0), ((0, 3), (0, 2), -1), ((3, 0), (3, 0), 1)]
        for shape, wanted, axis in shapes:
            yield Sample("argtopk", (array("f64", *shape), wanted), {"axis": axis, "largest": largest})
        x = np.array([np.nan, 1, np.nan, np.inf, -np.inf, 1], np.float32)
        yield Sample("argtopk", (x, (6,)), {"axis": 0, "largest": largest})
    for shape in ((13,), (3, 5), (), (0, 4), (2, 3, 4)):
        cond = array("bool", *shape)
        yield Sample("nonzero", (cond, (int(cond.sum()),)))
    yield Sample("nonzero", (np.zeros((2, 3), bool), (0,)))
    yield Sample("nonzero", (np.ones((2, 3), bool), (5,)), fails=RelvmShapeError)


def _compact_tree_samples() -> Iterator[Sample]:
    """Yield calls of tree_ensemble_compact, also with tables that contain invalid numbers."""

    def sample(x, columns, thresholds, children, leaves, *, roots=(0, 1, -3), fails=None, **attributes):
        starts, targets, values = leaves
        tables = (np.array(children, np.int16), np.array(roots, np.int8), np.array(starts, np.uint16))
        args = (x, columns, thresholds, *tables, np.array(targets, np.uint8), np.array(values, x.dtype))
        attributes = {"aggregate": "sum", "steps": 2, "blocks": 1} | attributes
        keep = frozenset(size for table in args[1:] for size in table.shape)
        return Sample("tree_ensemble_compact", args, attributes, keep=keep, fails=fails)

    columns, children = np.uint8([2, 0]), [1, -1, -2, -3]  # node 0 compares feature 2, and node 1 feature 0
    one, several = ([], [], [4.0, 3.0, 5.0]), ([0, 2, 2, 3], [0, 2, 1], [1.0, 2.0, 4.0])
    for dtype, rows, aggregate in (("f32", 8, "sum"), ("f32", 39, "min"), ("f64", 17, "max")):
        x = array(dtype, rows, 3, low=-1, high=1)
        thresholds = np.array([0.5, -0.5], x.dtype)
        yield sample(x, columns, thresholds, children, one, targets=1, aggregate=aggregate)
        yield sample(x, np.int8([2, -1]), np.int8([0, -1]), children, several, targets=3, blocks=2, aggregate=aggregate)
    x = array("f32", 4, 3, special=False)
    yield sample(x, columns, np.uint8([0, 1]), children, one, roots=(), targets=1)
    yield sample(x, columns[:0], np.uint8([]), [], one, roots=(-1, -2), targets=1, steps=0)
    wild = ([7, 99, 3, 200], [200, 3, 1], [1.0, 2.0, 4.0])
    yield sample(x, np.int8([99, -99]), np.uint8([0, 1]), [99, -99, 1, 0], wild, roots=(99, -99, 0), targets=2, steps=9)
    yield sample(x[:, :0], columns, np.uint8([0, 1]), children, one, targets=1, fails=RelvmShapeError)


def tree_samples() -> Iterator[Sample]:
    """Yield calls of tree_ensemble, also with tables that contain invalid numbers."""

    def sample(x, nodes, roots, depths, columns, leaves=(), *, keep=None, fails=None, **attributes) -> Sample:
        """nodes: the threshold, column and offset of each node.   leaves: starts, targets and values."""
        bits = attributes["offset_bits"]
        records = np.zeros(len(nodes), [("threshold", x.dtype), ("word", f"u{x.itemsize}")])
        records["word"] = [(column << bits | offset) & 0xFFFFFFFF for _, column, offset in nodes]
        if attributes["targets"] == 1:
            records["threshold"] = [threshold for threshold, _, _ in nodes]
        else:  # the threshold of a leaf is a number
            numbers = np.array([threshold for threshold, _, _ in nodes]).astype(records["word"].dtype)
            is_leaf = np.array([offset == 0 for _, _, offset in nodes])
            thresholds = np.array([threshold for threshold, _, _ in nodes], x.dtype)
            records["threshold"] = np.where(is_leaf, numbers.view(x.dtype), thresholds)
        starts, targets, values = leaves or ((), (), ())
        tables = (roots, depths, columns, starts, targets)
        args = (x, records.view(np.int64), *(np.array(table, np.int32) for table in tables), np.array(values, x.dtype))
        attributes = {"aggregate": "sum", "steps": 2, "blocks": 1} | attributes
        return Sample("tree_ensemble", args, attributes, keep=keep, fails=fails)

    # The root compares column 0.  Its children compare column 1 and are leaf 4.  Then come leaves 3 and 5.
    nodes = [(0.5, 0, 2), (-0.5, 1, 3), (4, 2, 0), (3, 2, 0), (5, 2, 0)]
    numbered = [(0.5, 0, 2), (-0.5, 1, 3), (2, 2, 0), (0, 2, 0), (1, 2, 0)]
    sparse, dense = (
        ([0, 2, 2, 3], [0, 2, 1], [1.0, 2.0, 4.0]),
        ([], [], [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 0.5, 0.25, 3.0]),
    )
    for dtype, rows, aggregate in (("f32", 8, "sum"), ("f32", 39, "min"), ("f64", 17, "max")):
        x = array(dtype, rows, 3, low=-1, high=1)
        common = {"aggregate": aggregate, "offset_bits": 5, "keep": frozenset((0, 2, 3, 4, 5, 9, 10, 18, 37))}
        yield sample(x, nodes, [0, 1, 4], [2, 1, 0], [2, -1], targets=1, **common)
        yield sample(x, nodes, [0] * 37, [2] * 37, [2, -1], targets=1, blocks=4, **common)
        yield sample(x, numbered, [0, 1, 4], [2, 1, 0], [2, -1], sparse, targets=3, **common)
        yield sample(x, numbered, [0] * 18, [2] * 18, [0, 1], dense, targets=3, blocks=2, **common)
    x = array("f32", 4, 3, special=False)
    yield sample(x, nodes, [], [], [2, -1], targets=2, offset_bits=5)
    yield sample(x[:0], nodes, [0], [2], [2, -1], targets=1, offset_bits=5)
    wild = [(0.5, 99, 2), (0.5, 0, 31), (77, 2, 0)]
    for width, leaves in ((1, ()), (2, ([-7, 99], [-3, 2, 1], [1.0, 2.0, 4.0])), (3, ([], [], [1.0, 2.0, 4.0]))):
        for bits in (5, 31):
            roots, depths = [-3, 0, 99, 1], [3, 1000, -2, 2]
            yield sample(x, wild, roots, depths, [99, -99], leaves, targets=width, steps=3, offset_bits=bits)
    yield from _compact_tree_samples()
    yield sample(
        x[:, :0], nodes, [0], [2], [0, 1], targets=1, offset_bits=5, keep=frozenset((0, 1, 2, 5)), fails=RelvmShapeError
    )
