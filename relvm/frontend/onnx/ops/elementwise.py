"""Converters of elementwise operators, Clip and Dropout."""

from __future__ import annotations

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_sizes import (
    assert_all_false,
    scalar,
)
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import aligned_operands, constant_like
from relvm.ir.dtypes import BF16, F32, DType, dtype_of
from relvm.ir.expr import Constant, Expr, constant

_SAME_SEMANTICS = {
    "Add": ops.add,
    "Sub": ops.subtract,
    "Mul": ops.multiply,
    "Div": ops.divide,
    "Equal": ops.equal,
    "Less": ops.less,
    "LessOrEqual": ops.less_equal,
    "Greater": ops.greater,
    "GreaterOrEqual": ops.greater_equal,
    "And": ops.logical_and,
    "Or": ops.logical_or,
    "Not": ops.logical_not,
    "Neg": ops.negative,
    "Abs": ops.abs,
    "Sign": ops.sign,
    "Floor": ops.floor,
    "Ceil": ops.ceil,
    "Round": ops.round,
    "Sqrt": ops.sqrt,
    "Exp": ops.exp,
    "Log": ops.log,
    "Sin": ops.sin,
    "Cos": ops.cos,
    "Tanh": ops.tanh,
    "Sigmoid": ops.sigmoid,
    "Erf": ops.erf,
    "Reciprocal": ops.reciprocal,
    "Relu": ops.relu,
    "Where": ops.where,
}


@converts(*_SAME_SEMANTICS)
def _same_semantics(node: OnnxNode) -> Expr:
    """Applies the operator of relvm that has the same semantics."""
    return _SAME_SEMANTICS[node.proto.op_type](*aligned_operands(node))


@converts("Pow")
def _pow(node: OnnxNode) -> Expr:
    """Returns a power with the dtype of the base.

    For a float base, the power is computed in the dtype of the base if this dtype contains all values of the exponent.
    For an integer base, or if the exponent has other values, it is computed in the common dtype of base and exponent.
    """
    base, exponent = aligned_operands(node)
    own, other = base.known_element_type, exponent.known_element_type
    if own == other:
        return ops.power(base, exponent)
    common = own if own.is_float and _is_exact(exponent, own) else _common_dtype(own, other)
    base, exponent = node.emit(ops.cast(base, to=common.name)), node.emit(ops.cast(exponent, to=common.name))
    return ops.cast(node.emit(ops.power(base, exponent)), to=own.name)


def _is_exact(value: Expr, dtype: DType) -> bool:
    """Return whether all elements of a tensor of numbers are known to be unchanged by a conversion to `dtype`."""
    if isinstance(value, Constant):
        with np.errstate(over="ignore"):
            converted = value.value.astype(dtype.numpy).astype(np.float64)
        return bool((converted == value.value.astype(np.float64)).all())
    return _common_dtype(dtype, value.known_element_type) == dtype


def _common_dtype(one: DType, other: DType) -> DType:
    """Return the dtype to which NumPy converts numbers of two dtypes.  For bf16, take f32 instead."""
    first, second = (F32 if dtype == BF16 and one != other else dtype for dtype in (one, other))
    return dtype_of(np.promote_types(first.numpy, second.numpy))


@converts("Max", "Min")
def _extremes(node: OnnxNode) -> Expr:
    op = ops.maximum if node.proto.op_type == "Max" else ops.minimum
    first, *rest = node.tensors()
    for value in rest:
        first = node.emit(op(first, value))
    return first


@converts("Sum", "Mean")
def _sum_of_inputs(node: OnnxNode) -> Expr:
    total, *rest = node.tensors()
    for value in rest:
        total = node.emit(ops.add(total, value))
    if node.proto.op_type == "Sum":
        return total
    return ops.divide(total, constant_like(len(rest) + 1, total))


@converts("Clip")
def _clip(node: OnnxNode) -> Expr:
    value = node.tensor(0)
    if node.opset < 11:
        low, high = node.attribute("min"), node.attribute("max")
        low = None if low is None else constant_like(low, value)
        high = None if high is None else constant_like(high, value)
    else:
        low = node.tensor(1) if node.has(1) else None
        high = node.tensor(2) if node.has(2) else None
    if low is not None:
        value = node.emit(ops.maximum(value, low))
    return value if high is None else node.emit(ops.minimum(value, high))


@converts("LeakyRelu")
def _leaky_relu(node: OnnxNode) -> Expr:
    x = node.tensor(0)
    scaled = node.emit(ops.multiply(x, constant_like(node.attribute("alpha", 0.01), x)))
    below = node.emit(ops.less(x, constant_like(0, x)))
    return ops.where(below, scaled, x)


@converts("BitCast")
def _bit_cast(node: OnnxNode) -> Expr:
    return ops.bit_cast(node.tensor(0), to=node.graph.element_type(node.attribute("to"), "BitCast").name)


@converts("Dropout")
def _dropout(node: OnnxNode) -> Expr | tuple[Expr, Expr]:
    """Returns the input itself and, if requested, a mask that is all true.

    In training mode the ratio must be 0, so that no element is dropped.  This is checked at run time if the ratio is
    not known at import time.
    """
    if node.has(2):
        trained = scalar(node, 2)
        drops = trained.apply(ops.logical_and, scalar(node, 1).apply(ops.not_equal, 0)) if node.has(1) else trained
        if isinstance(drops.expr, Constant) and drops.expr.value:
            raise RelvmUnsupportedError("Dropout in training mode is not supported")
        assert_all_false(drops, "elements to drop in training mode, which is not supported")
    x = node.tensor(0)
    if len(node.proto.output) < 2 or not node.proto.output[1]:
        return x
    dtype = np.dtype(bool) if node.opset >= 10 else node.type(0).known_dtype.numpy
    kept = node.emit(ops.shape_of(x))
    return x, ops.broadcast_to(constant(np.ones((), dtype)), kept)
