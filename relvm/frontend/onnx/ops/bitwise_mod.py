"""Elementwise bit operations, tests for special numbers, and remainders."""

from __future__ import annotations

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmArgumentError
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, aligned_operands, input_tensor
from relvm.ir.dtypes import F32
from relvm.ir.expr import Expr, constant


@converts("IsNaN")
def _is_nan(node: OnnxNode) -> Expr:
    x = _arithmetic_input(node)
    return x.apply(ops.not_equal, x).expr


@converts("IsInf")
def _is_inf(node: OnnxNode) -> Expr:
    x = _arithmetic_input(node)
    positive, negative = node.attribute("detect_positive", 1), node.attribute("detect_negative", 1)
    if positive and negative:
        return x.apply(ops.abs).apply(ops.equal, np.inf).expr
    if not positive and not negative:
        return x.apply(ops.not_equal, x).apply(ops.logical_and, x.apply(ops.equal, x)).expr
    return x.apply(ops.equal, np.inf if positive else -np.inf).expr


def _arithmetic_input(node: OnnxNode) -> TensorExpr:
    """Return input 0 with a dtype that supports comparisons.  8-bit floats, which do not support them, become f32."""
    x = input_tensor(node, 0)
    return x if x.type.known_dtype.is_arithmetic else x.cast(F32)


@converts("Xor")
def _xor(node: OnnxNode) -> Expr:
    return ops.not_equal(*aligned_operands(node))


_BITWISE = {"BitwiseAnd": ops.bitwise_and, "BitwiseOr": ops.bitwise_or, "BitwiseXor": ops.bitwise_xor}


@converts(*_BITWISE)
def _bitwise(node: OnnxNode) -> Expr:
    return _BITWISE[node.proto.op_type](node.tensor(0), node.tensor(1))


@converts("BitwiseNot")
def _bitwise_not(node: OnnxNode) -> Expr:
    x = node.tensor(0)
    return ops.bitwise_xor(x, constant(~np.zeros((), x.known_element_type.numpy)))


@converts("BitShift")
def _bit_shift(node: OnnxNode) -> Expr:
    shifts = {"LEFT": ops.shift_left, "RIGHT": ops.shift_right}
    direction = node.attribute("direction")
    if direction not in shifts:
        raise RelvmArgumentError(f"direction is {direction!r}, expected LEFT or RIGHT")
    return shifts[direction](node.tensor(0), node.tensor(1))


@converts("Mod")
def _mod(node: OnnxNode) -> Expr:
    """Computes a remainder with the sign of the dividend if fmod is set, otherwise with the sign of the divisor."""
    op = ops.remainder if node.attribute("fmod", 0) else ops.modulo
    return op(node.tensor(0), node.tensor(1))
