"""QDQ (quantize-dequantize) fusion: integer products instead of float products, and data movement on bytes.

    MatMul(DequantizeLinear(a), DequantizeLinear(b))   ->   matmul_integer(a, b) * (scale of a * scale of b)

Sums of integer products are exact, so the result differs from the product of floats only by rounding.  Constant weights
remain bytes.

Each rewrite is applied only if its side conditions are proven at import.  docs/architecture/front-ends.md lists them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.frontend.onnx.ops.quantized_conv import integer_convolution
from relvm.frontend.onnx.registry import Converter, OnnxNode, RankSplit
from relvm.frontend.onnx.shape_unification import convert_with_unified_sizes
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.frontend.onnx.values import Dequantized
from relvm.ir.dtypes import F32, I8, I32, U8, DType
from relvm.ir.expr import Constant, Expr, constant
from relvm.ir.symbolic import AnyDim, product

# Operators whose results are only elements of the first input.  MaxPool selects the same elements before and after
# dequantization only under conditions (`_selects_bytes`).
_DATA_MOVEMENT = ("Flatten", "Gather", "Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")
_LARGEST_DIFFERENCE = 255  # of two bytes


def record_dequantized(node: OnnxNode, result: Expr, x: Expr, scale: Expr, zero: Expr | None, axis: int) -> None:
    """Record that `result` was computed by dequantizing the bytes x, so that later nodes can use the bytes.

    Record nothing if QDQ fusion does not support the types or shapes.

    scale, zero, axis: as in DequantizeLinear.
    """
    dtype, sizes = x.known_element_type, scale.tensor_type.shape
    if dtype not in (I8, U8) or x.tensor_type.shape is None or scale.element_type != F32 or sizes is None:
        return
    is_single = all(dim == 1 for dim in sizes)
    if not is_single and len(sizes) != 1:
        return
    zero = constant(np.zeros((), dtype.numpy)) if zero is None else zero
    scale, zero = (as_rank_0(node, each) for each in (scale, zero))
    if zero.element_type != dtype or (is_single and zero.tensor_type.rank != 0):
        return
    node.graph.dequantized[result] = Dequantized(x, scale, zero, None if is_single else axis)


def as_rank_0(node: OnnxNode, x: Expr) -> Expr:
    """Reshape a tensor of one element to rank 0.  Return any other tensor unchanged.

    If x is a Constant, the result is a Constant.
    """
    shape = x.tensor_type.shape
    if not shape or any(dim != 1 for dim in shape):
        return x
    if isinstance(x, Constant):
        return constant(x.value.reshape(()))
    return node.emit(ops.reshape(x, node.shape([])))


def _dequantized_input(node: OnnxNode, index: int) -> Dequantized | None:
    value = node.inputs[index] if node.has(index) else None
    return node.graph.dequantized.get(value) if isinstance(value, Expr) else None


def _known_scale(source: Dequantized) -> np.ndarray | None:
    """Return the scale if it is constant, and no dequantized element can be infinite or NaN, otherwise None."""
    if not isinstance(source.scale, Constant):
        return None
    with np.errstate(over="ignore"):
        largest = source.scale.value * np.float32(_LARGEST_DIFFERENCE)
    return source.scale.value if np.isfinite(largest).all() else None


def _can_multiply_bytes(a: Dequantized, b: Dequantized, depth: AnyDim | None) -> bool:
    """Return whether `(a.bytes - a.zero) * (b.bytes - b.zero) * factor` is the product of the floats up to rounding.

    The sums of integer products must fit i32, and the factor, the product of the scales, must be a normal number.  A
    factor of 0 is correct if a scale is 0.

    depth: the number of products in each sum, or None if it is unknown.
    """
    scales = _known_scale(a), _known_scale(b)
    if scales[0] is None or scales[1] is None or not isinstance(depth, int):
        return False
    if depth * _largest_difference(a) * _largest_difference(b) >= 2**31:
        return False
    with np.errstate(over="ignore", under="ignore"):
        factor = np.abs(scales[0] * scales[1])
    is_normal = np.isfinite(factor) & (factor >= np.finfo(np.float32).tiny)
    return bool((is_normal | (scales[0] == 0) | (scales[1] == 0)).all())


def _largest_difference(source: Dequantized) -> int:
    """Return an upper bound of the absolute difference between a byte and the zero point."""
    low, high = source.bytes.known_element_type.limits
    if not isinstance(source.zero, Constant) or source.zero.value.size == 0:
        return _LARGEST_DIFFERENCE
    zeros = source.zero.value.astype(np.int64)
    return max(int(zeros.max()) - low, high - int(zeros.min()))


def product_of_bytes(node: OnnxNode, *, transpose_a: bool = False, transpose_b: bool = False) -> Expr | None:
    """Return the matrix product of the first two inputs as f32, computed with integers, or None if that is impossible.

    Both inputs must be dequantized bytes of rank 2 or more.  The first must have a single scale.  The second must have
    a single scale, or be a matrix with a scale for each column of the product.  `_can_multiply_bytes` states the
    conditions on the values.
    """
    a, b = _dequantized_input(node, 0), _dequantized_input(node, 1)
    if a is None or b is None or a.axis is not None:
        return None
    if min(a.bytes.tensor_type.known_rank, b.bytes.tensor_type.known_rank) < 2:
        return None
    right, zero = b.bytes, b.zero
    if b.axis is not None and (right.tensor_type.rank != 2 or b.axis != (0 if transpose_b else 1)):
        return None
    if not _can_multiply_bytes(a, b, right.tensor_type.known_shape[-1 if transpose_b else -2]):
        return None
    if zero.tensor_type.rank == 1:
        zero = node.emit(ops.expand_dims(zero, axes=(0,)))
    left = _transposed(node, a.bytes) if transpose_a else a.bytes
    right = _transposed(node, right) if transpose_b else right
    total = node.emit(ops.matmul_integer(left, right, a.zero, zero))
    return (TensorExpr(node, total).cast(F32) * _factor(node, a, b)).expr


def _transposed(node: OnnxNode, x: Expr) -> Expr:
    assert x.tensor_type.rank == 2, "only Gemm transposes"
    return node.emit(ops.transpose(x, perm=(1, 0)))


def _factor(node: OnnxNode, a: Dequantized, b: Dequantized) -> TensorExpr:
    return TensorExpr(node, a.scale) * TensorExpr(node, b.scale)


def convolution_of_bytes(node: OnnxNode) -> Expr | None:
    """Return the convolution of the first two inputs as f32, computed with integers, or None if that is impossible.

    Both inputs must be dequantized bytes that the integer convolution supports.  `_can_multiply_bytes` states the
    conditions on the values.
    """
    x, w = _dequantized_input(node, 0), _dequantized_input(node, 1)
    if x is None or w is None or x.axis is not None or w.axis not in (None, 0):
        return None
    if not _can_multiply_bytes(x, w, product(w.bytes.tensor_type.known_shape[1:])):
        return None
    total = integer_convolution(node, x.bytes, w.bytes, x.zero, w.zero)
    if total is None:
        return None
    factor = _factor(node, x, w)
    if w.axis is not None:
        factor = factor.apply(ops.expand_dims, axes=tuple(range(1, w.bytes.tensor_type.known_rank - 1)))
    return (TensorExpr(node, node.emit(total)).cast(F32) * factor).expr


def convert_or_move_bytes(node: OnnxNode, convert: Converter) -> Any:
    """Convert a node.  If it only moves dequantized elements, move the bytes instead, and dequantize the result.

    convert: the converter of the node.
    """
    source = _dequantized_input(node, 0) if node.proto.op_type in _DATA_MOVEMENT and not node.proto.domain else None
    if source is None or source.axis is not None or any(node.proto.output[1:]):
        return convert_with_unified_sizes(convert, node)
    if node.proto.op_type == "MaxPool" and not _selects_bytes(node, source):
        return convert_with_unified_sizes(convert, node)
    try:
        result = convert_with_unified_sizes(convert, replace(node, inputs=[source.bytes, *node.inputs[1:]]))
    except RankSplit:  # use the dequantized value in both cases
        return convert_with_unified_sizes(convert, node)
    result = result[0] if isinstance(result, tuple) else result
    x = node.graph.known_shape(node.emit(result))
    wide = (TensorExpr(node, x).cast(I32) - TensorExpr(node, source.zero).cast(I32)).cast(F32) * TensorExpr(
        node, source.scale
    )
    record_dequantized(node, wide.expr, x, source.scale, source.zero, 0)
    return wide.expr


def _selects_bytes(node: OnnxNode, source: Dequantized) -> bool:
    """Return whether MaxPool selects the same elements from the bytes as from the dequantized tensor.

    The scale must be positive and finite, so that dequantization preserves the order.  Each window must contain an
    element: the maximum of padding alone is the lowest number of the dtype.
    """
    scale = _known_scale(source)
    if scale is None or not (scale > 0).all():
        return False
    kernel = node.attribute("kernel_shape")
    pads = node.integers("pads", 2 * len(kernel), 0)
    is_same = node.attribute("auto_pad", "NOTSET").startswith("SAME")
    if any(dilation != 1 for dilation in node.attribute("dilations", [1])):
        return not is_same and not any(pads)
    return is_same or all(pad < size for pad, size in zip(pads, (*kernel, *kernel), strict=True))


def restored_bytes(node: OnnxNode, x: Expr, scale: Expr, zero: Expr | None, dtype: DType, within: DType) -> Expr | None:
    """Return the bytes from which x was dequantized, if quantizing x would restore them.  Otherwise return None.

    The bytes are restored if x is quantized with the dtype, scale and zero point with which it was dequantized.  The
    scale must be a constant other than 0 for which all quotients are finite.

    scale, zero, dtype: the scale, zero point and dtype with which x is quantized.   within: the dtype of the quotient.
    """
    source = node.graph.dequantized.get(x)
    if source is None or source.axis is not None or source.bytes.element_type != dtype or within != F32:
        return None
    zero = constant(np.zeros((), dtype.numpy)) if zero is None else zero
    known = _known_scale(source)
    if known is None or (known == 0).any():
        return None
    same = all(_equal(*pair) for pair in ((source.scale, scale), (source.zero, zero)))
    return source.bytes if same else None


def _equal(one: Expr, other: Expr) -> bool:
    if not isinstance(one, Constant) or not isinstance(other, Constant):
        return one is other
    return one.value.size == other.value.size == 1 and one.value.item() == other.value.item()
