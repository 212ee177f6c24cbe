"""TfIdfVectorizer: counts of n-grams of numbers or strings."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import relvm.ops as ops
from relvm.data_classes import record
from relvm.errors import RelvmFormatError, RelvmShapeError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.dynamic_sizes import filled, iota
from relvm.frontend.onnx.ops.strings import find_strings, string_list
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, shaped_input
from relvm.ir.dtypes import F32, I64, STR
from relvm.ir.expr import Expr, constant
from relvm.ir.symbolic import AnyDim, dim_op, known_size


@record
class _NGrams:
    """All n-grams of one length.

    rows: i64[count, length], one n-gram in each row.   columns: i64[count], the output column for each n-gram.
    """

    rows: np.ndarray
    columns: np.ndarray


def _ngrams_by_length(node: OnnxNode, pool: np.ndarray) -> list[_NGrams]:
    """Return the n-grams that a TfIdfVectorizer counts, grouped by length.

    If n-grams are equal, the output column of the last one is used.

    pool: the elements of all n-grams, as integers.
    """
    starts = node.attribute("ngram_counts")
    columns, found, used = node.attribute("ngram_indexes"), [], 0
    for length, (start, end) in enumerate(pairwise([*starts, len(pool)]), 1):
        if start > end or (end - start) % length:
            raise RelvmFormatError(
                f"ngram_counts is {starts}, which does not divide a pool of {counted(len(pool), 'item')} into n-grams"
            )
        rows = np.array(pool[start:end], np.int64).reshape(-1, length)
        if used + len(rows) > len(columns):
            raise RelvmFormatError(
                f"ngram_indexes has {counted(len(columns), 'element')}, but the pool contains more n-grams"
            )
        own = dict(zip(map(tuple, rows.tolist()), columns[used : used + len(rows)], strict=True))
        used += len(rows)
        if own and node.attribute("min_gram_length") <= length <= node.attribute("max_gram_length"):
            found.append(_NGrams(np.array(list(own), np.int64), np.array(list(own.values()), np.int64)))
    return found


_MAX_COLUMNS = 2**24  # limit on the columns of a TfIdfVectorizer's result


_MAX_SKIPPED = 1000  # limit on the skipped elements between two elements of an n-gram


@converts("TfIdfVectorizer")
def _tf_idf_vectorizer(node: OnnxNode) -> Expr:
    """Counts n-grams, including skip-grams.

    In a skip-gram, up to max_skip_count elements are skipped between successive elements.
    """
    x, columns = shaped_input(node, 0), node.attribute("ngram_indexes")
    if not columns:
        raise RelvmFormatError("ngram_indexes is empty")
    size = max(columns) + 1
    if min(columns) < 0 or size > _MAX_COLUMNS:
        raise RelvmUnsupportedError(
            f"ngram_indexes lie in {min(columns)} to {size - 1}, expected 0 to {_MAX_COLUMNS - 1}"
        )
    words, pool = string_list(node, "pool_strings"), np.array(node.attribute("pool_int64s") or [], np.int64)
    if x.type.dtype == STR and words is not None:
        x, pool = find_strings(x, words), np.array(list(map(_first_indices(words).get, words)), np.int64)
    if len(pool) == 0 or x.type.dtype == STR:
        raise RelvmFormatError(f"the pool for dtype {x.type.dtype} of x is missing")
    if len(x.shape) > 2:
        raise RelvmShapeError(f"x has rank {len(x.shape)}, expected at most 2")
    if not 0 <= node.attribute("max_skip_count") <= _MAX_SKIPPED:
        raise RelvmUnsupportedError(
            f"max_skip_count is {node.attribute('max_skip_count')}, expected at most {_MAX_SKIPPED}"
        )
    if len(set(columns)) != len(columns):
        raise RelvmUnsupportedError("duplicate ngram_indexes are not supported")
    batch = list(x.shape[:1]) if len(x.shape) == 2 else []
    rows = x.cast(I64).reshape(*(batch or [1]), x.shape[-1] if x.shape else 1)
    columns = [np.zeros(0, np.int64)]
    counts = [TensorExpr(node, filled(node, np.int64(0), rows.shape[0], 1))]
    for ngrams in _ngrams_by_length(node, pool):
        length, skips = ngrams.rows.shape[1], node.attribute("max_skip_count")
        distances = range(1, 2 if length == 1 else skips + 2)
        parts = [_count_ngrams(rows, ngrams, distance) for distance in distances]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        columns.append(ngrams.columns)
        counts.append(total)
    place = np.zeros(size, np.int64)  # for each output column, the index of its count; counts[0] is zeros
    place[np.concatenate(columns)] = 1 + np.arange(sum(map(len, columns)))
    found = counts[0].apply(ops.concat, *counts[1:], axis=1).apply(ops.gather, constant(place), axis=1)
    return _apply_weights(node, found).reshape(*batch, size).expr


def _first_indices(words: np.ndarray) -> dict[str, int]:
    """Return the index of the first occurrence of each word."""
    return {word: place for place, word in reversed(list(enumerate(words)))}


def _count_ngrams(rows: TensorExpr, ngrams: _NGrams, distance: int) -> TensorExpr:
    """Count how often each n-gram occurs in each row.  The result has the type i64[rows, n-grams].

    rows: the rows in which to count.   distance: the distance in a row between successive elements of an n-gram.
    """
    node, length = rows.node, ngrams.rows.shape[1]
    windows: AnyDim = dim_op("max", rows.shape[1] - (length - 1) * distance, 0)
    same: TensorExpr | None = None
    for i in range(length):
        element = rows.apply(ops.gather, iota(node, windows) + i * distance, axis=1)
        wanted = constant(ngrams.rows[:, i].reshape(-1, 1))
        equal = element.apply(ops.expand_dims, axes=(1,)).apply(ops.equal, wanted)
        same = equal if same is None else same.apply(ops.logical_and, equal)
    assert same is not None
    return same.cast(I64).apply(ops.sum, axes=(2,))


def _apply_weights(node: OnnxNode, counts: TensorExpr) -> TensorExpr:
    """Convert counts to the result that the attribute `mode` of a TfIdfVectorizer specifies: TF, IDF or TFIDF."""
    mode, weights = node.attribute("mode"), node.attribute("weights")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise RelvmUnsupportedError(f"mode {mode!r} is not supported")
    counts = (counts.apply(ops.minimum, 1) if mode == "IDF" else counts).cast(F32)
    if mode == "TF" or not weights:
        return counts
    factors = np.ones(known_size(counts.shape[1]), np.float32)
    for column, weight in zip(node.attribute("ngram_indexes"), weights, strict=True):
        factors[column] = weight
    return counts.apply(ops.multiply, constant(factors))
