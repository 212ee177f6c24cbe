"""Linear models and support vector machines of ai.onnx.ml."""

from __future__ import annotations

import itertools

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.ops.ml.postprocess import (
    DOMAIN,
    apply_post_transform,
    argmax_of_rows,
    class_labels,
    concat_columns,
    float_matrix,
    number_list,
    required_number_list,
    select_labels,
)
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.ir.dtypes import I64, STR
from relvm.ir.expr import Expr, constant


def _linear(x: TensorExpr, coefficients: np.ndarray, intercepts: np.ndarray | None, outputs: int) -> TensorExpr:
    """Return x * c' + intercepts, of shape (rows, outputs), where c has a row of coefficients for each output.

    coefficients: the elements of c as a vector.   intercepts: one for all outputs, or one for each.  None means 0.
    """
    if outputs < 1 or len(coefficients) % outputs:
        raise RelvmFormatError(f"{len(coefficients)} coefficients cannot be divided among {counted(outputs, 'output')}")
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
    scores = _linear(
        float_matrix(node, 0), required_number_list(node, "coefficients"), number_list(node, "intercepts"), targets
    )
    return apply_post_transform(node, scores).expr


@converts("LinearClassifier", domain=DOMAIN)
def _classifier(node: OnnxNode) -> tuple[Expr, Expr]:
    """Returns the predicted class and the score of each class.

    If there are two classes but only one row of coefficients, the row belongs to the second class.
    """
    labels = class_labels(node, "ints")
    coefficients, intercepts = required_number_list(node, "coefficients"), number_list(node, "intercepts")
    x = float_matrix(node, 0)
    columns = x.shape[1]
    if isinstance(columns, int) and columns:
        outputs = len(coefficients) // columns
    else:
        outputs = next((len(known) for known in (intercepts, labels) if known is not None), 1)
    scores = _linear(x, coefficients, intercepts, outputs)
    if outputs == 1 and labels is not None and len(labels) == 2:
        scores = concat_columns(0 - scores, scores)
    if outputs > 1 or (labels is not None and len(labels) == 2):
        return select_labels(node, argmax_of_rows(scores), labels), apply_post_transform(node, scores).expr
    threshold = 0.5 if node.attribute("post_transform", "NONE") != "NONE" else 0.0
    results = apply_post_transform(node, scores)
    holds = results.apply(ops.greater_equal, threshold).reshape(x.shape[0]).cast(I64)
    if labels is not None and labels.dtype == STR.numpy:
        raise RelvmUnsupportedError("a single class with a string label is not supported")
    return (holds if labels is None else holds * int(labels[0])).expr, results.expr


# ---- support vectors ----


def _kernel(node: OnnxNode, x: TensorExpr, vectors: np.ndarray) -> TensorExpr:
    """Apply the kernel function of an SVM to each pair of a row of x and a support vector.

    The result has the shape (rows, vectors).
    """
    parameters = number_list(node, "kernel_params")
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
    x, coefficients = float_matrix(node, 0), required_number_list(node, "coefficients")
    count = node.attribute("n_supports", 0)
    rho = required_number_list(node, "rho")
    if count:
        vectors = required_number_list(node, "support_vectors").reshape(count, -1)
        scores = _linear(_kernel(node, x, vectors), coefficients, rho[:1], 1)
    else:
        scores = _linear(x, coefficients, rho[:1], 1)
    if node.attribute("one_class", 0):
        return (scores > 0.0).where(TensorExpr(node, scores.operand(1.0)), -1.0).expr
    return apply_post_transform(node, scores).expr


@converts("SVMClassifier", domain=DOMAIN)
def _svm_classifier(node: OnnxNode) -> tuple[Expr, Expr]:
    """Returns the class, and the scores of all classes or the values of the pairwise decisions.

    Without vectors_per_class, the scores are linear functions of the input, and the class is that of the largest score.
    Otherwise there is a decision for each pair of classes, and the class is the one that wins the most of them.  Class
    probabilities replace the values of the decisions if prob_a and prob_b are given.  The class need not have the
    largest probability.  Source: ONNX Runtime.
    """
    labels = class_labels(node, "ints")
    classes = len(labels) if labels is not None else 1
    x, coefficients, rho = (
        float_matrix(node, 0),
        required_number_list(node, "coefficients"),
        required_number_list(node, "rho"),
    )
    counts = number_list(node, "vectors_per_class", np.int64)
    if counts is None:
        scores = _linear(x, coefficients, rho[:1], classes)
        return select_labels(node, argmax_of_rows(scores), labels), apply_post_transform(node, scores).expr
    if len(counts) != classes:
        raise RelvmFormatError(
            f"vectors_per_class has {counted(len(counts), 'element')}, expected {classes}, the number of classes"
        )
    total = int(counts.sum())
    node.graph.file.count(classes * (classes - 1) // 2 * (4 * total + 16 * classes), node.here)
    kernels = _kernel(node, x, required_number_list(node, "support_vectors").reshape(total, -1))
    decisions = _linear(
        kernels, _decision_weights(coefficients.reshape(-1, total), counts), rho, classes * (classes - 1) // 2
    )
    chosen = select_labels(node, argmax_of_rows(_count_wins(decisions, classes)), labels)
    prob_a, prob_b = number_list(node, "prob_a"), number_list(node, "prob_b")
    if prob_a is not None and prob_b is not None:
        return chosen, apply_post_transform(node, _probabilities(decisions, classes, prob_a, prob_b)).expr
    if classes != 2:
        return chosen, apply_post_transform(node, decisions).expr
    return chosen, apply_post_transform(node, concat_columns(0 - decisions, decisions)).expr


def _decision_weights(coefficients: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the weight of every support vector in the decision between each pair of classes.

    The result is a vector: for each pair of classes in turn, one weight for each support vector.  The weight is 0 if
    the support vector belongs to neither class.

    coefficients: the coefficients of the support vectors, of shape (classes - 1, support vectors), as the node defines
    them.
    counts: the number of support vectors of each class.
    """
    starts = np.concatenate([[0], np.cumsum(counts)])
    rows = []
    for i, j in itertools.combinations(range(len(counts)), 2):
        row = np.zeros(coefficients.shape[1], np.float32)
        row[starts[i] : starts[i + 1]] = coefficients[j - 1, starts[i] : starts[i + 1]]
        row[starts[j] : starts[j + 1]] = coefficients[i, starts[j] : starts[j + 1]]
        rows.append(row)
    return np.concatenate(rows)


def _probabilities(decisions: TensorExpr, classes: int, slopes: np.ndarray, shifts: np.ndarray) -> TensorExpr:
    """Return the probability of each class, of shape (rows, classes), by Platt scaling of each pairwise decision.

    decisions: the value of each decision, of shape (rows, pairs of classes).
    slopes, shifts: the parameters of the scaling, one of each for every pair of classes.
    """
    pairs, own = list(itertools.combinations(range(classes), 2)), decisions.type.known_dtype.numpy
    if not len(slopes) == len(shifts) == len(pairs):
        raise RelvmFormatError(
            f"prob_a and prob_b have {len(slopes)} and {counted(len(shifts), 'element')}, expected {len(pairs)} each"
        )
    lost = decisions.apply(ops.multiply, constant(slopes.astype(own))).apply(ops.add, constant(shifts.astype(own)))
    first = (0 - lost).apply(ops.sigmoid).apply(ops.clip, min=1e-7, max=1 - 1e-7)
    place = np.zeros((classes, classes), np.int64)
    for number, (i, j) in enumerate(pairs):
        place[i, j], place[j, i] = number, number + len(pairs)
    matrix = concat_columns(first, 1 - first).apply(ops.gather, constant(place), axis=1)
    return matrix.apply(ops.pairwise_coupling)


def _count_wins(decisions: TensorExpr, classes: int) -> TensorExpr:
    """Return how many pairwise decisions each class wins, of shape (rows, classes).

    decisions: the value of each decision, of shape (rows, pairs of classes).  If the value is positive, the first class
    of the pair wins.
    """
    wins = (decisions > 0.0).cast(I64)
    pairs = list(itertools.combinations(range(classes), 2))
    first = np.array([[i == c for c in range(classes)] for i, _ in pairs], np.int64)
    second = np.array([[j == c for c in range(classes)] for _, j in pairs], np.int64)
    return wins.apply(ops.matmul, constant(first)) + (1 - wins).apply(ops.matmul, constant(second))
