"""Decomposition of operators that ONNX Runtime's optimizer creates by fusion, and of CDist (domain com.microsoft)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.dynamic_sizes import filled, iota
from relvm.frontend.onnx.ops.activations import gelu
from relvm.frontend.onnx.ops.normalization import axes_from, center, inverse_deviation
from relvm.frontend.onnx.ops.quantized import apply_onnx_operator
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor
from relvm.frontend.onnx_messages import make_node
from relvm.ir.expr import Expr

_MICROSOFT = "com.microsoft"


@converts("Gelu", "BiasGelu", "FastGelu", domain=_MICROSOFT)
def _gelu(node: OnnxNode) -> Expr:
    """Computes Gelu(x + bias), or Gelu(x) if there is no bias."""
    x = input_tensor(node, 0)
    if node.has(1):
        x = x + input_tensor(node, 1)
    return gelu(x, "tanh" if node.proto.op_type == "FastGelu" else "none").expr


@converts("QuickGelu", domain=_MICROSOFT)
def _quick_gelu(node: OnnxNode) -> Expr:
    x = input_tensor(node, 0)
    return (x * (x * node.attribute("alpha", 1.702)).apply(ops.sigmoid)).expr


@converts("FusedMatMul", domain=_MICROSOFT)
def _fused_matmul(node: OnnxNode) -> Expr:
    """Computes alpha * A' * B', where ' is an optional transposition of the last two axes.  A vector is never
    transposed.
    """
    if node.attribute("transBatchA", 0) or node.attribute("transBatchB", 0):
        raise RelvmUnsupportedError("transBatchA and transBatchB are not supported")
    transposed = {
        f"transpose_{name.lower()}": bool(node.attribute(f"trans{name}", 0)) and node.type(i).known_rank > 1
        for i, name in enumerate("AB")
    }
    result = input_tensor(node, 0).apply(ops.matmul, input_tensor(node, 1), **transposed)
    alpha = node.attribute("alpha", 1.0)
    return (result if alpha == 1.0 else result * alpha).expr


@converts("CDist", domain=_MICROSOFT)
def _cdist(node: OnnxNode) -> Expr:
    """Computes the distances between the rows of two matrices."""
    metric = node.attribute("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        raise RelvmUnsupportedError(f"metric {metric!r} is not supported: expected euclidean or sqeuclidean")
    for index in range(2):
        if node.type(index).known_rank != 2:
            raise RelvmShapeError(f"input {index} has type {node.type(index)}, expected rank 2")
    a, b = (TensorExpr(node, node.known_shape(index)) for index in range(2))
    node.require_equal(a.shape[1], b.shape[1], "the rows have {} and {} elements, expected the same number")
    apart = a.apply(ops.expand_dims, axes=(1,)) - b.reshape(b.shape[0], a.shape[1])
    squared = (apart * apart).apply(ops.sum, axes=(2,))
    return (squared.apply(ops.sqrt) if metric == "euclidean" else squared).expr


# The attributes of each activation, in the order of the values in activation_params.
_ACTIVATIONS = {
    "": (),
    "Clip": ("min", "max"),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
}
_CLIP_BY_ATTRIBUTES = 6  # the opset in which the limits of Clip are attributes


@converts("FusedConv", domain=_MICROSOFT)
def _fused_conv(node: OnnxNode) -> Expr:
    """Computes activation(Conv(x, w, bias) + sum), where sum is an optional input."""
    inputs = [node.tensor(i) if node.has(i) else None for i in range(3)]
    result = apply_onnx_operator(node, "Conv", *(inputs if node.has(2) else inputs[:2]))
    if node.has(3):
        result = node.emit(ops.add(result, node.tensor(3)))
    return _apply_activation(node, result, list(node.attribute("activation_params", [])))


@converts("FusedGemm", domain=_MICROSOFT)
def _fused_gemm(node: OnnxNode) -> Expr:
    result = apply_onnx_operator(node, "Gemm", *node.tensors())
    numbers = [node.attribute(f"activation_{name}") for name in ("alpha", "beta", "gamma")]
    return _apply_activation(node, result, [number for number in numbers if number is not None])


def _apply_activation(node: OnnxNode, x: Expr, numbers: list[float]) -> Expr:
    """Apply the activation function that the attribute `activation` of the node names.

    numbers: values for the first attributes of this function, such as alpha and beta.  The other attributes have their
    default values.
    """
    name = node.attribute("activation", "")
    names = _ACTIVATIONS.get(name)
    if names is None or len(numbers) > len(names):
        raise RelvmUnsupportedError(f"activation {name!r} with {counted(len(numbers), 'parameter')} is not supported")
    if not name:
        return x
    attributes: dict[str, Any] = dict(zip(names, numbers, strict=False))
    proto = make_node(name, ["x"], node.proto.output[:1], **attributes)
    return apply_onnx_operator(replace(node, proto=proto), name, x, opset=_CLIP_BY_ATTRIBUTES)


@converts("SkipLayerNormalization", domain=_MICROSOFT)
def _skip_layer_normalization(node: OnnxNode) -> tuple[Expr, Expr, Expr, Expr]:
    """Computes the layer normalization of input + skip, plus a bias if there is one."""
    x = input_tensor(node, 0) + input_tensor(node, 1)
    if node.has(4):
        x = x + input_tensor(node, 4)
    result, mean, inverse = _layer_norm(node, x, 2, 3)
    return result.expr, mean.expr, inverse.expr, x.expr


def _layer_norm(node: OnnxNode, x: TensorExpr, gamma: int, beta: int) -> tuple[TensorExpr, TensorExpr, TensorExpr]:
    """Compute the layer normalization of x: normalize it along its last axis, multiply by a scale, and add a shift.

    Return the result, the mean, and the reciprocal of the standard deviation.

    gamma, beta: the indices of the node's inputs that contain the scale and the shift.  The shift can be omitted.
    """
    mean, centered, variance = center(x, (-1,))
    inverse = inverse_deviation(variance, node.attribute("epsilon", 1e-12))
    result = centered * inverse * input_tensor(node, gamma)
    return (result + input_tensor(node, beta) if node.has(beta) else result), mean, inverse


@converts("SkipSimplifiedLayerNormalization", domain=_MICROSOFT)
def _skip_simplified_layer_normalization(node: OnnxNode) -> tuple[Expr, Expr, Expr, Expr]:
    """Computes the RMS normalization of input + skip (no mean is subtracted).  The second output, the mean, is 0."""
    x = input_tensor(node, 0) + input_tensor(node, 1)
    if node.has(3):
        x = x + input_tensor(node, 3)
    inverse = inverse_deviation((x * x).mean((-1,)), node.attribute("epsilon", 1e-12))
    return (x * inverse * input_tensor(node, 2)).expr, (inverse * 0).expr, inverse.expr, x.expr


@converts("SimplifiedLayerNormalization")
def _simplified_layer_normalization(node: OnnxNode) -> tuple[Expr, Expr]:
    """Computes RMSNormalization, which ONNX Runtime had under this name before ONNX defined the operator."""
    x = input_tensor(node, 0)
    inverse = inverse_deviation((x * x).mean(axes_from(node)), node.attribute("epsilon", 1e-5))
    return (x * inverse * input_tensor(node, 1)).expr, inverse.expr


@converts("EmbedLayerNormalization", domain=_MICROSOFT)
def _embed_layer_normalization(node: OnnxNode) -> tuple[Expr, ...]:
    """Returns the layer normalization of the sum of word, position and, if given, segment embeddings, the number of
    unmasked words of each text, and the sum itself.
    """
    words = input_tensor(node, 0)
    batch, length = words.shape
    positions = input_tensor(node, 8) if node.has(8) else iota(node, 1, length)
    x = _rows(node, 2, words) + _rows(node, 3, positions)
    if node.has(1) and node.has(4):
        x = x + _rows(node, 4, input_tensor(node, 1))
    result, _, _ = _layer_norm(node, x, 5, 6)
    count = input_tensor(node, 7).apply(ops.sum, axes=(1,)).expr if node.has(7) else filled(node, np.int32(0), batch)
    return result.expr, count, x.expr


def _rows(node: OnnxNode, table: int, indices: TensorExpr) -> TensorExpr:
    return input_tensor(node, table).apply(ops.gather, indices, axis=0)
