"""Decision trees: find the leaf of each tree that a row of features reaches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import BOOL, I32, I64, U8
from relvm.ir.loop_ir import Buffer, Literal, Operation, Scalar, as_scalar, maximum, minimum, select
from relvm.ir.operator import expect, op
from relvm.ir.scalar_ops import FORMS
from relvm.ir.type_rules import expect_equal_dims, expect_float
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel

_NUMPY: dict[str, Callable[..., Any]] = {
    "<=": np.less_equal,
    "<": np.less,
    ">=": np.greater_equal,
    ">": np.greater,
    "==": np.equal,
    "!=": lambda x, y: (x != y) & (x == x),
}
CONDITIONS = (*_NUMPY, *(f"{test}?" for test in _NUMPY))
_BLOCK = 64  # trees evaluated for a row at the same time
_STEP_WORK = 12  # time of one step down a tree, in eighths of a nanosecond


def _numpy_leaves(x, features, thresholds, conditions, yes, no, roots, *, tests, depth):
    if len(x) and x.shape[1] < 1:
        raise RelvmShapeError("tree_leaves: x has no features")
    if len(roots) and len(features) < 1:
        raise RelvmShapeError("tree_leaves: the trees have no nodes")
    at = np.broadcast_to(roots.astype(np.int64), (len(x), len(roots))).copy()
    rows = np.arange(len(x))[:, None]
    for _ in range(depth):
        at = np.clip(at, 0, len(features) - 1)
        value, threshold = x[rows, np.clip(features[at], 0, x.shape[1] - 1)], thresholds[at]
        results = [
            _NUMPY[test[:2].rstrip("?")](value, threshold) | (test.endswith("?") & np.isnan(value)) for test in tests
        ]
        which = np.clip(conditions[at], 0, len(tests) - 1) if len(tests) > 1 else 0
        at = np.where(np.choose(which, results), yes[at], no[at]).astype(np.int64)
    return at


def _leaves(
    k: KernelBuilder, inputs: list[Buffer], outputs: list[Buffer], *, tests: tuple[str, ...], depth: int
) -> None:
    x, features, thresholds, conditions, yes, no, roots = inputs
    (out,) = outputs
    rows, columns = (as_scalar(dim, I64) for dim in x.shape)
    trees, nodes = (as_scalar(buffer.shape[0], I64) for buffer in (roots, features))
    k.fail((columns < 1).logical_and(rows > 0), "SHAPE_ERROR", "tree_leaves: x has no features")
    k.fail((nodes < 1).logical_and(trees > 0), "SHAPE_ERROR", "tree_leaves: the trees have no nodes")
    with (
        k.parallel(rows, trees * (depth * _STEP_WORK)) as (first, last),
        k.loop(last, start=first, name="row") as row,
        k.loop((trees + (_BLOCK - 1)) / _BLOCK, name="block") as block,
    ):
        start = k.let("start", block * _BLOCK)
        count = k.let("count", minimum(trees - start, _BLOCK))
        at = k.allocate("at", I64, (_BLOCK,))
        with k.loop(count, simd=True) as tree:
            k.store(at, (tree,), roots[start + tree].to(I64))
        with k.loop(depth), k.loop(count, simd=True) as tree:
            node = k.let("node", _clamp_index(at[tree], nodes))
            value = k.let("value", x[row, _clamp_index(features[node].to(I64), columns)])
            condition = conditions[node] if len(tests) > 1 else None
            holds = _apply_test(value, k.let("threshold", thresholds[node]), condition, tests)
            k.store(at, (tree,), select(holds, yes[node], no[node]).to(I64))
        with k.loop(count, simd=True) as tree:
            k.store(out, (row, start + tree), at[tree])


def _clamp_index(index: Scalar, size: Scalar) -> Scalar:
    """Clamp an index to [0, size), because the tables of a model can contain any indices."""
    return minimum(maximum(index, 0), size - 1)


def _apply_test(value: Scalar, threshold: Scalar, condition: Scalar | None, tests: tuple[str, ...]) -> Scalar:
    *others, (_, result) = [(number, _compare(test, value, threshold)) for number, test in enumerate(tests)]
    for number, other in reversed(others):
        assert condition is not None  # the condition exists if there are several tests
        result = select(condition.eq(Literal(number, U8)), other, result)
    return result


def _compare(test: str, value: Scalar, threshold: Scalar) -> Scalar:
    sign = test.rstrip("?")
    result: Scalar = Operation(FORMS[sign, 2], (value, threshold), BOOL)
    if sign == "!=":
        result = result.logical_and(value.eq(value))
    return result.logical_or(value.ne(value)) if test.endswith("?") else result


@op("tree_leaves", numpy=_numpy_leaves, lower=CustomKernel(_leaves))
def tree_leaves(
    x: TensorType,
    features: TensorType,
    thresholds: TensorType,
    conditions: TensorType,
    yes: TensorType,
    no: TensorType,
    roots: TensorType,
    *,
    tests: tuple[str, ...],
    depth: int,
) -> TensorType:
    """For each row of x and each tree, the node that the row reaches after `depth` steps from the root.

    x: a tensor of a float dtype and of shape (rows, features).  The next five arguments are tables: tensors of shape
    (nodes,), with an entry for each node.
    features: the index of the feature to test, as an i32.
    thresholds: the number with which the feature is compared, in the dtype of x.
    conditions: the comparison, as a u8 index in `tests`.  If there is only one test, this table has shape (0,).
    yes, no: the i32 index of the next node if the test is true, and that of the next node if it is false.  The next
    node of a leaf is the leaf itself.
    roots: an i32 tensor of shape (trees,), with the index of the root node of each tree.
    tests: the comparisons.  Each is one of `<= < >= > == !=`, optionally followed by `?`.  A comparison with NaN is
    false, or true if the test is followed by `?`.
    depth: the length of the longest path to a leaf, at least 0.
    Result: an i64 tensor of shape (rows, trees), with indices of nodes.  An index of a node, feature or test that is
    out of range is clamped.
    Raises RelvmTypeError if an argument has another dtype or rank.  Raises RelvmShapeError if the tables have different
    lengths or, at run time, if there are no features or no nodes.  Raises RelvmArgumentError if the depth is invalid or
    a test is unknown.
    Source: ONNX ai.onnx.ml TreeEnsembleClassifier-3.
    """
    expect_float("tree_leaves", x=x)
    known = isinstance(tests, tuple) and bool(tests) and all(test in CONDITIONS for test in tests)
    expect(
        known,
        "tree_leaves: tests is {!r}, expected a nonempty tuple of {}",
        tests,
        CONDITIONS,
        error=RelvmArgumentError,
    )
    tables = {"features": (features, I32), "thresholds": (thresholds, x.dtype), "conditions": (conditions, U8)}
    tables |= {"yes": (yes, I32), "no": (no, I32), "roots": (roots, I32)}
    expect(x.rank in (2, None), "tree_leaves: x has rank {}, expected 2", x.rank)
    for name, (table, dtype) in tables.items():
        right = isinstance(table, TensorType) and table.dtype == dtype and table.rank == 1
        expect(right, "tree_leaves: {} is {}, expected {}[_]", name, table, dtype)
        if name == "roots" or None in (table.shape, features.shape):
            continue
        size = 0 if name == "conditions" and len(tests) == 1 else features.known_shape[0]
        expect_equal_dims("tree_leaves", f"features and {name} differ in length", size, table.known_shape[0])
    fits = isinstance(depth, int) and not isinstance(depth, bool) and depth >= 0
    expect(fits, "tree_leaves: depth is {!r}, expected an integer of at least 0", depth, error=RelvmArgumentError)
    if x.shape is None or roots.shape is None:
        return TensorType(I64, None, 2)
    return TensorType(I64, (x.shape[0], roots.shape[0]))
