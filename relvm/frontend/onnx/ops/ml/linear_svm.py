"""Linear models and support vector machines of ai.onnx.ml."""

from __future__ import annotations

import itertools

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.onnx.ops.ml.postprocess import (
    DOMAIN,
    beside,
    column_of_largest,
    labelled,
    labels_of,
    needed,
    numbers,
    rows_of,
    transformed,
)
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.ir.dtypes import I64, STR
from relvm.ir.expr import Expr, constant


def _linear(x: TensorExpr, coefficients: np.ndarray, intercepts: np.ndarray | None, outputs: int) -> TensorExpr:
    """Return x * coefficients' + intercepts, of shape (rows, outputs)."""
    if outputs < 1 or len(coefficients) % outputs:
        raise RelvmFormatError(f"{len(coefficients)} coefficients cannot be divided among {outputs} outputs")
    own = x.type.known_dtype.numpy
    scores = x.apply(ops.matmul, constant(np.ascontiguousarray(coefficients.reshape(outputs, -1).T.astype(own))))
    if intercepts is None:
        return scores
    if len(intercepts) not in (1, outputs):
        raise RelvmFormatError(f"expected 1 or {outputs} intercepts, got {len(intercepts)}")
    return scores.apply(ops.add, constant(intercepts.astype(own)))


@converts("LinearRegressor", domain=DOMAIN)
def _regressor(node: OnnxNode) -> Expr:
    targets = node.attribute("targets", 1)
    scores = _linear(rows_of(node, 0), needed(node, "coefficients"), numbers(node, "intercepts"), targets)
    return transformed(node, scores).expr


@converts("LinearClassifier", domain=DOMAIN)
def _classifier(node: OnnxNode) -> tuple[Expr, Expr]:
    """Returns the predicted class and the score of each class.

    If there are two classes but only one row of coefficients, the row belongs to the second class.
    """
    labels = labels_of(node, "ints")
    coefficients, intercepts = needed(node, "coefficients"), numbers(node, "intercepts")
    x = rows_of(node, 0)
    columns = x.shape[1]
    if isinstance(columns, int) and columns:
        outputs = len(coefficients) // columns
    else:
        outputs = next((len(known) for known in (intercepts, labels) if known is not None), 1)
    scores = _linear(x, coefficients, intercepts, outputs)
    if outputs == 1 and labels is not None and len(labels) == 2:
        scores = beside(0 - scores, scores)
    if outputs > 1 or (labels is not None and len(labels) == 2):
        return labelled(node, column_of_largest(scores), labels), transformed(node, scores).expr
    threshold = 0.5 if node.attribute("post_transform", "NONE") != "NONE" else 0.0
    results = transformed(node, scores)
    holds = results.apply(ops.greater_equal, threshold).reshape(x.shape[0]).cast(I64)
    if labels is not None and labels.dtype == STR.numpy:
        raise RelvmUnsupportedError("a single class with a string label is not supported")
    return (holds if labels is None else holds * int(labels[0])).expr, results.expr


# ---- support vectors ----


def _kernel(node: OnnxNode, x: TensorExpr, vectors: np.ndarray) -> TensorExpr:
    """Return the kernel function of each row of x and each support vector, of shape (rows, vectors)."""
    parameters = numbers(node, "kernel_params")
    gamma, shift, degree = (0.0, 0.0, 0.0) if parameters is None else (float(p) for p in parameters[:3])
    kind = node.attribute("kernel_type", "LINEAR")
    products = _linear(x, vectors.reshape(-1), None, len(vectors))
    match kind:
        case "LINEAR":
            return products
        case "POLY":
            return (products * gamma + shift).power(int(degree))
        case "SIGMOID":
            return (products * gamma + shift).apply(ops.tanh)
        case "RBF":
            spread = x.apply(ops.expand_dims, axes=(1,)).apply(
                ops.subtract, constant(vectors.astype(x.type.known_dtype.numpy))
            )
            distances = (spread * spread).apply(ops.sum, axes=(2,), keepdims=False)
            return (distances * -gamma).apply(ops.exp)
    raise RelvmFormatError(f"unknown kernel_type {kind!r}")


@converts("SVMRegressor", domain=DOMAIN)
def _svm_regressor(node: OnnxNode) -> Expr:
    x, coefficients = rows_of(node, 0), needed(node, "coefficients")
    count = node.attribute("n_supports", 0)
    rho = needed(node, "rho")
    if count:
        vectors = needed(node, "support_vectors").reshape(count, -1)
        scores = _linear(_kernel(node, x, vectors), coefficients, rho[:1], 1)
    else:
        scores = _linear(x, coefficients, rho[:1], 1)
    if node.attribute("one_class", 0):
        return (scores > 0.0).where(TensorExpr(node, scores.operand(1.0)), -1.0).expr
    return transformed(node, scores).expr


@converts("SVMClassifier", domain=DOMAIN)
def _svm_classifier(node: OnnxNode) -> tuple[Expr, Expr]:
    """Returns the class that wins most pairwise decisions, and the decision values.

    If prob_a and prob_b are given, class probabilities replace the decision values.  The winner need not have the
    largest probability.  Source: ONNX Runtime.
    """
    labels = labels_of(node, "ints")
    classes = len(labels) if labels is not None else 1
    x, coefficients, rho = rows_of(node, 0), needed(node, "coefficients"), needed(node, "rho")
    counts = numbers(node, "vectors_per_class", np.int64)
    if counts is None:
        scores = _linear(x, coefficients, rho[:1], classes)
        return labelled(node, column_of_largest(scores), labels), transformed(node, scores).expr
    if len(counts) != classes:
        raise RelvmFormatError(
            f"vectors_per_class has {len(counts)} elements, expected {classes}, the number of classes"
        )
    total = int(counts.sum())
    node.graph.file.count(classes * (classes - 1) // 2 * (4 * total + 16 * classes), node.here)
    kernels = _kernel(node, x, needed(node, "support_vectors").reshape(total, -1))
    duels = _linear(kernels, _duels(coefficients.reshape(-1, total), counts), rho, classes * (classes - 1) // 2)
    chosen = labelled(node, column_of_largest(_votes(duels, classes)), labels)
    prob_a, prob_b = numbers(node, "prob_a"), numbers(node, "prob_b")
    if prob_a is not None and prob_b is not None:
        return chosen, transformed(node, _probabilities(duels, classes, prob_a, prob_b)).expr
    if classes != 2:
        return chosen, transformed(node, duels).expr
    return chosen, transformed(node, beside(0 - duels, duels)).expr


def _duels(coefficients: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the weight of every support vector in every decision between two classes.

    The weights are a vector: for each pair of classes, one weight for each support vector.  It is 0 if the support
    vector belongs to neither class.

    coefficients: the coefficients of the support vectors, as in the attribute of the node.   counts: the number of
    support vectors of each class.
    """
    starts = np.concatenate([[0], np.cumsum(counts)])
    rows = []
    for i, j in itertools.combinations(range(len(counts)), 2):
        row = np.zeros(coefficients.shape[1], np.float32)
        row[starts[i] : starts[i + 1]] = coefficients[j - 1, starts[i] : starts[i + 1]]
        row[starts[j] : starts[j + 1]] = coefficients[i, starts[j] : starts[j + 1]]
        rows.append(row)
    return np.concatenate(rows)


def _probabilities(duels: TensorExpr, classes: int, slopes: np.ndarray, shifts: np.ndarray) -> TensorExpr:
    """Return the probability of each class, of shape (rows, classes), by Platt scaling of each pairwise decision.

    duels: the value of each pairwise decision.   slopes, shifts: the factor and the summand of the scaling for each
    decision.
    """
    pairs, own = list(itertools.combinations(range(classes), 2)), duels.type.known_dtype.numpy
    if not len(slopes) == len(shifts) == len(pairs):
        raise RelvmFormatError(
            f"prob_a and prob_b have {len(slopes)} and {len(shifts)} elements, expected {len(pairs)}"
        )
    lost = duels.apply(ops.multiply, constant(slopes.astype(own))).apply(ops.add, constant(shifts.astype(own)))
    first = (0 - lost).apply(ops.sigmoid).apply(ops.clip, min=1e-7, max=1 - 1e-7)
    place = np.zeros((classes, classes), np.int64)
    for number, (i, j) in enumerate(pairs):
        place[i, j], place[j, i] = number, number + len(pairs)
    matrix = beside(first, 1 - first).apply(ops.gather, constant(place), axis=1)
    return matrix.apply(ops.pairwise_coupling)


def _votes(duels: TensorExpr, classes: int) -> TensorExpr:
    """Return how many pairwise decisions each class wins, of shape (rows, classes).

    duels: the value of each pairwise decision.
    """
    wins = (duels > 0.0).cast(I64)
    pairs = list(itertools.combinations(range(classes), 2))
    first = np.array([[i == c for c in range(classes)] for i, _ in pairs], np.int64)
    second = np.array([[j == c for c in range(classes)] for _, j in pairs], np.int64)
    return wins.apply(ops.matmul, constant(first)) + (1 - wins).apply(ops.matmul, constant(second))
