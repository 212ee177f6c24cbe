"""Converters of MatMul and Gemm."""

from __future__ import annotations

import relvm.ops as ops
from relvm.frontend.onnx.ops.qdq_fusion import product_of_bytes
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import constant_like
from relvm.ir.expr import Expr


@converts("MatMul")
def _matmul(node: OnnxNode) -> Expr:
    return product_of_bytes(node) or ops.matmul(node.tensor(0), node.tensor(1))


@converts("Gemm")
def _gemm(node: OnnxNode) -> Expr:
    """Computes alpha * A' * B' + beta * C, where ' is an optional transposition."""
    transposed = {"transpose_a": bool(node.attribute("transA", 0)), "transpose_b": bool(node.attribute("transB", 0))}
    result = product_of_bytes(node, **transposed) or node.emit(ops.matmul(node.tensor(0), node.tensor(1), **transposed))
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    if alpha != 1.0:
        result = node.emit(ops.multiply(result, constant_like(alpha, result)))
    if not node.has(2):
        return result
    c = node.tensor(2)
    if beta != 1.0:
        c = node.emit(ops.multiply(c, constant_like(beta, c)))
    return ops.add(result, c)
