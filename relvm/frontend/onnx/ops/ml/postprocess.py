"""Post-processing shared by the classifiers and regressors of ai.onnx.ml: transforms of scores, and labels."""

from __future__ import annotations

import math

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError
from relvm.frontend.onnx.ops.strings import string_list
from relvm.frontend.onnx.registry import OnnxNode
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.ir.dtypes import F32, I64
from relvm.ir.expr import Expr, constant

DOMAIN = "ai.onnx.ml"


def to_float(x: TensorExpr) -> TensorExpr:
    """Convert x to f32, unless it has dtype f64."""
    return x if x.type.known_dtype.is_float and not x.type.known_dtype.is_narrow_float else x.cast(F32)


def float_matrix(node: OnnxNode, index: int) -> TensorExpr:
    """Return input `index` as a matrix of floats.  A vector becomes one row."""
    x = to_float(TensorExpr(node, node.known_shape(index)))
    return x.apply(ops.expand_dims, axes=(0,)) if x.type.rank == 1 else x


def number_list(node: OnnxNode, name: str, dtype: np.dtype | type | None = np.float32) -> np.ndarray | None:
    """Return the attribute `name`, a list of numbers, as an array, or None if it is absent or empty.

    dtype: the dtype of the array, or None for that of the attribute.

    If the node has a tensor attribute of this name with the suffix _as_tensor, return the tensor attribute instead.
    """
    found = node.attribute(f"{name}_as_tensor")
    found = node.number_array(name) if found is None else found
    return None if found is None or len(found) == 0 else np.asarray(found, dtype).reshape(-1)


def required_number_list(node: OnnxNode, name: str, dtype: np.dtype | type | None = np.float32) -> np.ndarray:
    """Return the attribute `name` as `number_list` does.  Raise RelvmFormatError if it is absent or empty."""
    found = number_list(node, name, dtype)
    if found is None:
        raise RelvmFormatError(f"attribute {name} is missing")
    return found


def class_labels(node: OnnxNode, kind: str) -> np.ndarray | None:
    """Return the labels (strings or integers) of a classifier's classes, or None if the node has no labels.

    kind: the end of the name of the attribute with integer labels: "int64s" for `classlabels_int64s`, or "ints".
    """
    names = string_list(node, "classlabels_strings")
    return names if names is not None else number_list(node, f"classlabels_{kind}", np.int64)


def apply_post_transform(node: OnnxNode, scores: TensorExpr) -> TensorExpr:
    """Apply the function that the attribute post_transform names to scores of shape (rows, classes)."""
    match node.attribute("post_transform", "NONE"):
        case "NONE":
            return scores
        case "LOGISTIC":
            return scores.apply(ops.sigmoid)
        case "SOFTMAX":
            return scores.apply(ops.softmax, axis=1)
        case "SOFTMAX_ZERO":
            return _softmax_zero(scores)
        case "PROBIT":
            return _probit(scores)
        case other:
            raise RelvmFormatError(f"unknown post_transform {other!r}")


def _softmax_zero(scores: TensorExpr) -> TensorExpr:
    """Return the softmax of each row, with a special rule for scores close to 0.

    A score below 1e-7 in magnitude contributes score * exp(-max) instead of exp(score - max), where max is the largest
    score of the row.  If the contributions of a row sum to 0, all its results are 0.5.
    """
    largest = scores.apply(ops.max, axes=(1,), keepdims=True)
    is_zero = scores.apply(ops.abs) < 1e-7
    powers = is_zero.where(scores * (0.0 - largest).apply(ops.exp), (scores - largest).apply(ops.exp))
    total = powers.sum((1,))
    return total.apply(ops.equal, 0).where(0.5, powers / total)


def _probit(scores: TensorExpr) -> TensorExpr:
    """Return sqrt(2) * erfinv(2 * score - 1), by Winitzki's formula, as ONNX Runtime does."""
    x = scores * 2 - 1
    log = ((1 - x) * (x + 1)).apply(ops.log)
    half = log * 0.5 + 2 / (math.pi * 0.147)
    root = ((half * half - log * (1 / 0.147)).apply(ops.sqrt) - half).apply(ops.sqrt)
    return (x < 0).where(0 - root, root) * 1.41421356


def concat_columns(first: TensorExpr, second: TensorExpr) -> TensorExpr:
    """Concatenate two matrices along their columns."""
    return first.apply(ops.concat, second, axis=1)


def argmax_of_rows(scores: TensorExpr) -> TensorExpr:
    """Return the index of the largest score of each row, of type i64[rows].  Of equal scores, the first counts."""
    return scores.apply(ops.argmax, axis=1, keepdims=False)


def select_labels(node: OnnxNode, chosen: TensorExpr, labels: np.ndarray | None) -> Expr:
    """Convert the indices of predicted classes to labels.  If there are no labels, return the indices.

    chosen: the indices.
    """
    if labels is None or (labels == np.arange(len(labels))).all():
        return chosen.cast(I64).expr
    return ops.gather(constant(labels), chosen.expr, axis=0)
