"""Conversion of Det, the determinant."""

from __future__ import annotations

import relvm.ops as ops
from relvm.frontend.onnx.dynamic_sizes import dim_as_operand, iota
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import shaped_input
from relvm.ir.expr import Expr


@converts("Det")
def _det(node: OnnxNode) -> Expr:
    """Transforms each matrix by Gaussian elimination to a triangular matrix with the same determinant.

    The determinant is the product of the elements on the diagonal of that matrix.
    """
    rows = shaped_input(node, 0).apply(ops.row_echelon)
    *batch, size, _ = rows.shape
    diagonal = iota(node, size) * dim_as_operand(node, size + 1)
    flat = rows.reshape(*batch, size * size)
    return flat.apply(ops.gather, diagonal, axis=-1).apply(ops.prod, axes=(-1,)).expr
