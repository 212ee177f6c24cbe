"""Conversions to and from quantized types."""

from __future__ import annotations

from relvm.frontend.stablehlo.quantization import dequantized, quantized
from relvm.frontend.stablehlo.registry import Node, converts
from relvm.ir.expr import Expr


@converts("uniform_quantize")
def _uniform_quantize(node: Node) -> Expr:
    """Quantizes floats, or another quantized type: rounds to the nearest integer, ties to even, and clamps."""
    node.expect_operands(1)
    x = dequantized(node, node.operands[0], node.operation.operands[0].type)
    return quantized(node, node.emit(x), node.declared())


@converts("uniform_dequantize")
def _uniform_dequantize(node: Node) -> Expr:
    node.expect_operands(1)
    return dequantized(node, node.operands[0], node.operation.operands[0].type)
