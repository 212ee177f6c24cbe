"""Conversion of decision trees to tables with narrow integers, at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from relvm.data_classes import record
from relvm.ir.expr import Constant, Expr, OpCall, constant
from relvm.ops import tree_ensemble_compact

_THRESHOLDS = ("u1", "i1", "u2", "i2")  # the dtypes of thresholds that are integers


@record
class _Nodes:
    """The nodes of `tree_ensemble`, decoded.

    thresholds: the threshold of each node, or the payload of a leaf, with the dtype of the features.
    columns: for each node, an index in the table of columns.
    offsets: for each node, the distance to its second successor, or 0 for a leaf.
    """

    thresholds: np.ndarray
    columns: np.ndarray
    offsets: np.ndarray


def compact_trees(call: OpCall) -> Expr:
    """Return a call of `tree_ensemble_compact` with the same result as a call of `tree_ensemble`.

    The tables are converted to a smaller form.  Return the call itself if a table is not constant or contains an
    invalid number.
    """
    x, *tables = call.args
    given = [table.value for table in tables if isinstance(table, Constant)]
    if len(given) < len(tables):
        return call
    nodes, roots, depths, columns, starts, targets, values = given
    attributes = dict(call.attributes)
    dtype = call.tensor_type.known_dtype.numpy
    decoded = _decode(nodes, dtype, attributes.pop("offset_bits"))
    is_leaf, count = decoded.offsets == 0, len(decoded.offsets)
    first = np.arange(count) + decoded.offsets - 1
    is_valid = len(roots) and (roots >= 0).all() and (roots < count).all() and (first[~is_leaf] + 1 < count).all()
    if not is_valid or (decoded.columns[~is_leaf] >= len(columns)).any():
        return call
    if attributes["targets"] == 1:
        numbers, of_leaf = np.unique(_bits(decoded.thresholds[is_leaf]), return_inverse=True)
        tables_of_leaves: tuple[np.ndarray, ...] = (_narrow([]), _narrow([]), numbers.view(dtype))
    else:
        leaves = _bits(decoded.thresholds[is_leaf]).astype(np.int64) & 0xFFFFFFFF
        rows = _rows(starts, targets, values, attributes["targets"])
        if leaves.max(initial=0) >= len(rows):
            return call
        if attributes["aggregate"] == "sum":  # a sum is never -0, so adding 0 does not change it
            rows = [tuple(entry for entry in row if entry[1] != 0) for row in rows]
        of_leaf, tables_of_leaves = _without_repetition([rows[leaf] for leaf in leaves], dtype)
    code = np.empty(count, np.int64)
    code[is_leaf], code[~is_leaf] = -1 - of_leaf.reshape(-1), np.arange(count - is_leaf.sum())
    inner = np.flatnonzero(~is_leaf)
    children = np.stack([code[first[inner]], code[first[inner] + 1]], axis=1).reshape(-1)
    new = (
        _narrow(columns[decoded.columns[inner]]),
        _narrow_thresholds(decoded.thresholds[inner]),
        _narrow(children, signed=True),
        _narrow(code[roots], signed=True),
        *tables_of_leaves,
    )
    attributes["steps"] = int(min(attributes["steps"], depths.max())) if len(inner) else 0
    return replace(tree_ensemble_compact(x, *(constant(table) for table in new), **attributes), type=call.type)


def _decode(nodes: np.ndarray, dtype: np.dtype, offset_bits: int) -> _Nodes:
    word = np.dtype(f"u{dtype.itemsize}")
    records = np.ascontiguousarray(nodes).view([("threshold", dtype), ("word", word)])
    words = records["word"].reshape(-1)
    offsets = words & word.type((1 << offset_bits) - 1)
    return _Nodes(
        np.ascontiguousarray(records["threshold"]).reshape(-1),
        (words >> word.type(offset_bits)).astype(np.int64),
        offsets.astype(np.int64),
    )


def _bits(numbers: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(numbers).view(f"u{numbers.dtype.itemsize}")


def _rows(starts: np.ndarray, targets: np.ndarray, values: np.ndarray, count: int) -> list[tuple]:
    """Return the entries of each leaf: a tuple of pairs of a target and a value.   count: the number of targets."""
    if not len(starts):
        return [tuple(enumerate(row)) for row in values.reshape(-1, count)]
    pairs = list(zip(np.minimum(targets.view(np.uint32), count - 1).tolist(), values, strict=True))
    return [tuple(pairs[begin : min(stop, begin + count)]) for begin, stop in pairwise(np.maximum(starts, 0))]


def _without_repetition(rows: Sequence[tuple], dtype: np.dtype) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Return the index of each row in a table without equal rows, and the table: starts, targets and values."""
    index: dict[tuple, int] = {}
    kept: list[tuple] = []
    numbers = []
    for row in rows:
        key = tuple((target, value.tobytes()) for target, value in row)
        if key not in index:
            index[key] = len(kept)
            kept.append(row)
        numbers.append(index[key])
    starts = np.cumsum([0, *map(len, kept)])
    entries = [entry for row in kept for entry in row]
    values = np.array([value for _, value in entries], dtype)
    return np.array(numbers, np.int64), (_narrow(starts), _narrow([target for target, _ in entries]), values)


def _narrow(numbers: Sequence[int] | np.ndarray, *, signed: bool = False) -> np.ndarray:
    """Return integers as an array of the narrowest dtype: an unsigned one if no number is negative and not `signed`."""
    array = np.asarray(numbers, np.int64)
    kind = "i" if signed or array.min(initial=0) < 0 else "u"
    dtypes = [np.dtype(f"{kind}{size}") for size in (1, 2, 4)]
    return next(array.astype(dtype) for dtype in dtypes if _represents(dtype, array))


def _represents(dtype: np.dtype, array: np.ndarray) -> bool:
    limits = np.iinfo(dtype)
    return bool(array.min(initial=0) >= limits.min and array.max(initial=0) <= limits.max)


def _narrow_thresholds(thresholds: np.ndarray) -> np.ndarray:
    """Return thresholds as integers of at most 16 bits if all of them are such integers, otherwise unchanged."""
    if np.isfinite(thresholds).all() and (thresholds == np.rint(thresholds)).all():
        for dtype in map(np.dtype, _THRESHOLDS):
            if _represents(dtype, thresholds):
                return thresholds.astype(dtype)
    return thresholds
