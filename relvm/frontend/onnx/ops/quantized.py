"""Quantized operators.  A number is represented as (q - zero) * scale with an integer q.

Matrix products and convolutions compute with integers.  The other operators on quantized tensors dequantize their
inputs, compute with floats, and quantize the result.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.dynamic_sizes import iota
from relvm.frontend.onnx.ops.cast import convert_dtype
from relvm.frontend.onnx.ops.qdq_fusion import as_rank_0, record_dequantized, restored_bytes
from relvm.frontend.onnx.ops.quantized_conv import integer_convolution
from relvm.frontend.onnx.registry import OnnxNode, converter_for, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.ir.dtypes import F32, U8, DType
from relvm.ir.expr import Expr, constant
from relvm.ir.symbolic import exact_quotient, known_size
from relvm.ir.type_rules import expect_axis
from relvm.ir.types import TensorType

_MICROSOFT = "com.microsoft"


def quantize(node: OnnxNode, x: Expr, scale: Expr, zero: Expr | None, dtype: DType) -> Expr:
    """Return round(x / scale) + zero, clamped to the range of the integer dtype `dtype`.

    Ties are rounded to even.  `scale` and `zero` are broadcast to x.
    """
    x = node.emit(ops.round(node.emit(ops.divide(x, scale))))
    if zero is not None:
        x = node.emit(ops.add(x, node.emit(ops.cast(zero, to=x.known_element_type.name))))
    return node.emit(ops.saturating_cast(x, to=dtype.name))


def dequantize(node: OnnxNode, x: Expr, scale: Expr, zero: Expr | None) -> Expr:
    """Return (x - zero) * scale, with the dtype of `scale`."""
    x = subtract_zero_point(node, x, zero)
    return node.emit(ops.multiply(node.emit(ops.cast(x, to=scale.known_element_type.name)), scale))


def subtract_zero_point(node: OnnxNode, x: Expr, zero: Expr | None) -> Expr:
    """Return x - zero, as i32."""
    x = node.emit(ops.cast(x, to="i32"))
    return x if zero is None else node.emit(ops.subtract(x, node.emit(ops.cast(zero, to="i32"))))


def _optional(node: OnnxNode, index: int) -> Expr | None:
    return node.tensor(index) if node.has(index) else None


def _zero_point(node: OnnxNode, index: int) -> Expr | None:
    """Return the zero point in input `index`, or None if omitted.  A zero point of one element gets rank 0."""
    return as_rank_0(node, node.tensor(index)) if node.has(index) else None


def _scale_and_zero(node: OnnxNode, x: TensorType, axis: int, block: int) -> tuple[Expr, Expr | None]:
    """Return the scale and the zero point, inputs 1 and 2, reshaped to broadcast with x.

    axis: the axis of x along which the scale varies, if the scale has several elements.
    block: the number of positions along `axis` that share an element of the scale, or 0 if each position has its own.
    """
    scale = _broadcast_along(node, node.tensor(1), x, axis, block)
    return scale, _broadcast_along(node, node.tensor(2), x, axis, block) if node.has(2) else None


def _broadcast_along(node: OnnxNode, value: Expr, x: TensorType, axis: int, block: int) -> Expr:
    """Reshape `value`, a scale or zero point, to broadcast with a tensor of type `x`.

    `value` has one element for the whole tensor, or one for each position along `axis`.  If `block` is not 0, it has
    one element for each block of `block` positions along `axis`.
    """
    if block:
        return repeat_per_block(node, value, x, axis, block)
    value = as_rank_0(node, value)
    if value.tensor_type.rank == 0:
        return value
    if value.tensor_type.rank != 1 or x.rank is None or value.tensor_type.shape is None:
        raise RelvmUnsupportedError(
            f"scale or zero point has type {value.type}, expected one element for each index along the axis of {x}"
        )
    axis = expect_axis(node.proto.op_type, axis, x.rank)
    return node.emit(ops.reshape(value, node.shape([*value.tensor_type.shape, *[1] * (x.rank - 1 - axis)])))


def repeat_per_block(node: OnnxNode, value: Expr, x: TensorType, axis: int, block: int) -> Expr:
    """Repeat each element of `value`, a scale or zero point, for all positions of its block.

    The axis `axis` of a tensor of type `x` is divided into blocks of `block` positions.  The last block can be shorter.
    """
    shape = value.tensor_type.shape
    if x.shape is None or shape is None or len(shape) != len(x.shape):
        raise RelvmUnsupportedError(f"block_size {block} requires known shapes of equal rank, got {x} and {value.type}")
    axis = expect_axis(node.proto.op_type, axis, len(shape))
    before, count, after = shape[:axis], shape[axis], shape[axis + 1 :]
    size = x.shape[axis]
    if isinstance(count, int) and isinstance(size, int) and count != (blocks := -(-size // block)):
        expected = counted(blocks, "block")
        raise RelvmShapeError(f"axis {axis} of {x}, divided by block_size {block}: expected {expected}, got {count}")
    if not isinstance(size, int) and exact_quotient(size, block) != count:
        rounded_up = (size + (block - 1)) // block
        node.require_equal(count, rounded_up, f"{{}} blocks of {block} elements along axis {axis}, expected {{}}")
        return node.emit(ops.gather(value, (iota(node, size) / block).expr, axis=axis))
    spread = node.emit(ops.expand_dims(value, axes=(axis + 1,)))
    spread = node.emit(ops.broadcast_to(spread, node.shape([*before, count, block, *after])))
    whole = node.emit(ops.reshape(spread, node.shape([*before, count * block, *after])))
    if exact_quotient(x.shape[axis], block) == count:
        return whole
    return node.emit(ops.slice(whole, begin=(0,), end=(known_size(x.shape[axis]),), axes=(axis,)))


def _axis(node: OnnxNode, x: TensorType) -> int:
    """Return the attribute `axis` as a non-negative integer.  The default is 1, even before opset 13."""
    axis = node.attribute("axis", 1)
    return axis + x.rank if axis < 0 and x.rank is not None else axis


def _float_scale(node: OnnxNode, scale: Expr) -> Expr:
    return scale if scale.known_element_type.is_float else node.emit(ops.cast(scale, to="f32"))


@converts("QuantizeLinear", domain=_MICROSOFT)
@converts("QuantizeLinear")
def _quantize(node: OnnxNode) -> Expr:
    """Divides x by the scale in the dtype that `precision` names, or in the dtype of the scale if it names none."""
    x = node.tensor(0)
    axis, block = _axis(node, x.tensor_type), node.attribute("block_size", 0)
    scale, zero = _scale_and_zero(node, x.tensor_type, axis, block)
    scale = _float_scale(node, scale)
    wanted = node.attribute("output_dtype", 0)
    named = node.graph.element_type(wanted, "output_dtype") if wanted else U8
    dtype = named if zero is None else zero.known_element_type
    if (wanted and named != dtype) or not ((dtype.is_integer and dtype.bits <= 16) or _is_narrow_float(dtype)):
        raise RelvmUnsupportedError(
            f"output_dtype is {named} and the zero point has dtype {dtype};"
            " they must be the same dtype, of at most 16 bits"
        )
    precision = node.attribute("precision", 0)
    within = node.graph.element_type(precision, "precision") if precision else scale.known_element_type
    if same := restored_bytes(node, x, scale, zero, dtype, within):
        return same
    x, scale = (node.emit(ops.cast(value, to=within.name)) for value in (x, scale))
    if dtype.is_integer:
        return quantize(node, x, scale, zero, dtype)
    quotient = TensorExpr(node, x) / TensorExpr(node, scale)
    if zero is not None:
        quotient = quotient + TensorExpr(node, zero).cast(quotient.dtype)
    return convert_dtype(quotient, dtype, bool(node.attribute("saturate", 1)))


def _is_narrow_float(dtype: DType) -> bool:
    return dtype.is_float and dtype.bits <= 8


@converts("DequantizeLinear", domain=_MICROSOFT)
@converts("DequantizeLinear")
def _dequantize(node: OnnxNode) -> Expr:
    x = node.tensor(0)
    axis, block = _axis(node, x.tensor_type), node.attribute("block_size", 0)
    scale, zero = _scale_and_zero(node, x.tensor_type, axis, block)
    own = x.known_element_type
    if not scale.known_element_type.is_float or not ((own.is_integer and own.bits <= 32) or _is_narrow_float(own)):
        raise RelvmUnsupportedError(f"x of dtype {own} with a scale of dtype {scale.element_type} is not supported")
    if own.is_integer:
        result = dequantize(node, x, scale, zero)
        if not block:
            record_dequantized(node, result, x, node.tensor(1), _optional(node, 2), axis)
    else:
        wide = TensorExpr(node, x).cast(F32)
        wide = wide if zero is None else wide - TensorExpr(node, zero).cast(F32)
        result = (wide * TensorExpr(node, scale).cast(F32)).cast(scale.known_element_type).expr
    wanted = node.attribute("output_dtype", 0)
    return ops.cast(result, to=node.graph.element_type(wanted, "output_dtype").name) if wanted else result


@converts("DynamicQuantizeLinear")
def _dynamic_quantize(node: OnnxNode) -> tuple[Expr, Expr, Expr]:
    return quantize_to_range(node, node.tensor(0))


def quantize_to_range(node: OnnxNode, x: Expr) -> tuple[Expr, Expr, Expr]:
    """Quantize x to u8.  Return the result, the scale, and the zero point.

    The scale and the zero point are chosen so that the range of u8 covers all elements of x, and 0.
    """
    if x.element_type != F32:
        raise RelvmUnsupportedError(f"x has dtype {x.element_type}, expected f32")
    quantized_x, scale, zero = node.fields(node.emit(ops.dynamic_quantize(x)))
    return quantized_x, scale, zero


# ---- products ----


def _integer_matmul(node: OnnxNode, a: Expr, b: Expr, a_zero: Expr | None, b_zero: Expr | None) -> Expr:
    """Return the matrix product of two integer tensors as i32, as MatMulInteger defines it.

    a_zero, b_zero: the zero points, or None for 0.
    """
    added = tuple(axis for axis, value in ((-2, a), (-1, b)) if value.tensor_type.rank == 1)
    a_zero = _zero_for_matmul(node, a, a_zero, (-1,))
    b_zero = _zero_for_matmul(node, b, b_zero, (0,))
    if -2 in added:
        a = node.emit(ops.expand_dims(a, axes=(0,)))
    if -1 in added:
        b = node.emit(ops.expand_dims(b, axes=(1,)))
    result = node.emit(ops.matmul_integer(a, b, a_zero, b_zero))
    return node.emit(ops.squeeze(result, axes=added)) if added else result


def _zero_for_matmul(node: OnnxNode, x: Expr, zero: Expr | None, new_axis: tuple[int, ...]) -> Expr:
    """Return the zero point of x, reshaped for matmul_integer.  It is 0 if `zero` is None.

    new_axis: a tuple with the position of the second axis, of size 1, that a vector gets.
    """
    if zero is None:
        return constant(np.zeros((), x.known_element_type.numpy))
    return _reshape_for_matmul(node, zero, new_axis)


def _reshape_for_matmul(node: OnnxNode, scale: Expr, new_axis: tuple[int, ...]) -> Expr:
    """Reshape `scale`, a scale or zero point, to broadcast with a matrix.

    A tensor of one element gets rank 0.  A vector gets a second axis, of size 1.

    new_axis: a tuple with the position of the new axis.
    """
    scale = as_rank_0(node, scale)
    return node.emit(ops.expand_dims(scale, axes=new_axis)) if scale.tensor_type.rank == 1 else scale


@converts("MatMulInteger")
def _matmul_integer(node: OnnxNode) -> Expr:
    return _integer_matmul(node, node.tensor(0), node.tensor(1), _optional(node, 2), _optional(node, 3))


@converts("QLinearMatMul")
def _qlinear_matmul(node: OnnxNode) -> Expr:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = node.tensors()
    total = _integer_matmul(node, a, b, a_zero, b_zero)
    a_scale, b_scale = _reshape_for_matmul(node, a_scale, (-1,)), _reshape_for_matmul(node, b_scale, (0,))
    y_scale, y_zero = _reshape_for_matmul(node, y_scale, (-1,)), _reshape_for_matmul(node, y_zero, (-1,))
    return _requantize(node, total, (a_scale, b_scale, y_scale), y_zero)


def _requantize(node: OnnxNode, total: Expr, scales: tuple[Expr, Expr, Expr], zero: Expr) -> Expr:
    """Requantize the result of an integer product or convolution.

    The three scales are combined into one number, as in ONNX Runtime, so that ties are rounded in the same way.

    total: the sums of integer products, of dtype i32.
    scales: the scales of the left factor, the right factor and the result.
    zero: the zero point of the result.
    """
    left, right, result = scales
    factor = node.emit(ops.divide(node.emit(ops.multiply(left, right)), result))
    scaled = node.emit(ops.multiply(node.emit(ops.cast(total, to=factor.known_element_type.name)), factor))
    return quantize(node, scaled, constant(np.ones((), factor.known_element_type.numpy)), zero, zero.known_element_type)


@converts("ConvInteger")
def _conv_integer(node: OnnxNode) -> Expr:
    return _integer_convolution(node, 0, 1, _zero_point(node, 2), _zero_point(node, 3), None)


def _integer_convolution(
    node: OnnxNode, x: int, w: int, x_zero: Expr | None, w_zero: Expr | None, bias: Expr | None
) -> Expr:
    """Return the convolution of two integer inputs as i32.  Padding has the value of the zero point of x.

    x, w: the indices of the node's inputs that contain the data and the weights.
    x_zero, w_zero: their zero points, or None for 0.  A zero point of one element must have rank 0.
    """
    as_bytes = integer_convolution(node, node.tensor(x), node.tensor(w), x_zero, w_zero)
    if as_bytes is not None:
        if bias is None:
            return as_bytes
        return ops.add(node.emit(as_bytes), _reshape_per_filter(node, bias, node.type(x).known_rank - 2))
    data = subtract_zero_point(node, node.tensor(x), x_zero)
    w_zero = None if w_zero is None else _reshape_per_filter(node, w_zero, node.type(w).known_rank - 1)
    weights = subtract_zero_point(node, node.tensor(w), w_zero)
    return apply_onnx_operator(node, "Conv", data, weights, bias)


def apply_onnx_operator(node: OnnxNode, op_type: str, *inputs: Expr | None, opset: int | None = None) -> Expr:
    """Apply the operator `op_type` of ONNX's own domain to the inputs, with the attributes of `node`.

    opset: the opset version that defines the operator, by default that of the model.
    """
    convert = converter_for("", op_type)
    assert convert is not None
    proto = node.proto.replace(op_type=op_type, domain="")
    opset = node.graph.opsets.get("", 1) if opset is None else opset
    return node.emit(convert(replace(node, proto=proto, opset=opset, inputs=list(inputs))))


def _reshape_per_filter(node: OnnxNode, value: Expr, trailing: int) -> Expr:
    """Reshape a vector with one element for each filter, to broadcast with a tensor that has an axis of filters.

    A vector of one element gets rank 0.

    trailing: the number of axes of that tensor after the axis of filters.
    """
    value = as_rank_0(node, value)
    if value.tensor_type.rank == 0:
        return value
    return node.emit(ops.reshape(value, node.shape([*value.tensor_type.known_shape, *[1] * trailing])))


@converts("QLinearConv")
def _qlinear_conv(node: OnnxNode) -> Expr:
    """Computes an integer convolution, and requantizes it.

    The bias is i32.  Its scale is the product of the scales of x and w.
    """
    x_scale, y_scale, y_zero = (as_rank_0(node, node.tensor(i)) for i in (1, 6, 7))
    x_zero, w_zero = (as_rank_0(node, node.tensor(i)) for i in (2, 5))
    total = _integer_convolution(node, 0, 3, x_zero, w_zero, _optional(node, 8))
    w_scale = _reshape_per_filter(node, node.tensor(4), node.type(3).known_rank - 2)
    return _requantize(node, total, (x_scale, w_scale, y_scale), y_zero)


# ---- ONNX Runtime's own ----


@converts("QLinearAdd", "QLinearMul", domain=_MICROSOFT)
def _qlinear_binary(node: OnnxNode) -> Expr:
    op = ops.add if node.proto.op_type == "QLinearAdd" else ops.multiply
    x, y = (_dequantize_input(node, i) for i in (0, 3))
    return _quantize_result(node, node.emit(op(x, y)), 6, node.type(0).known_dtype)


def _dequantize_input(node: OnnxNode, index: int) -> Expr:
    """Return input `index`, dequantized with the scale in the next input and the optional zero point after it."""
    scale = as_rank_0(node, node.tensor(index + 1))
    return dequantize(node, node.tensor(index), scale, _zero_point(node, index + 2))


def _quantize_result(node: OnnxNode, x: Expr, index: int, dtype: DType) -> Expr:
    """Quantize x with the scale in input `index` and the optional zero point in the next input."""
    return quantize(node, x, as_rank_0(node, node.tensor(index)), _zero_point(node, index + 1), dtype)


@converts("QLinearSigmoid", "QLinearLeakyRelu", domain=_MICROSOFT)
def _qlinear_unary(node: OnnxNode) -> Expr:
    result = apply_onnx_operator(node, node.proto.op_type.removeprefix("QLinear"), _dequantize_input(node, 0))
    return _quantize_result(node, result, 3, node.type(0).known_dtype)


@converts("QLinearSoftmax", domain=_MICROSOFT)
def _qlinear_softmax(node: OnnxNode) -> Expr:
    """Computes Softmax as defined in the opset that the attribute `opset` names."""
    result = apply_onnx_operator(node, "Softmax", _dequantize_input(node, 0), opset=node.attribute("opset"))
    return _quantize_result(node, result, 3, node.type(0).known_dtype)


@converts("QGemm", domain=_MICROSOFT)
def _qgemm(node: OnnxNode) -> Expr:
    """Takes a and b, each with its scale and zero point, an i32 bias, and the scale and zero point of the result.

    The bias has the scale of the products.  If the scale of the result is omitted, the result is f32.
    """
    a, b = (
        node.emit(ops.transpose(node.tensor(index), perm=(1, 0))) if node.attribute(name, 0) else node.tensor(index)
        for index, name in ((0, "transA"), (3, "transB"))
    )
    total = _integer_matmul(node, a, b, node.tensor(2), node.tensor(5))
    if node.has(6):
        total = node.emit(ops.add(total, node.tensor(6)))
    scale = as_rank_0(node, node.tensor(1))
    if node.attribute("alpha", 1.0) != 1.0:
        scale = node.emit(ops.multiply(scale, constant(np.array(node.attribute("alpha"), np.float32))))
    right = _reshape_for_matmul(node, node.tensor(4), (0,))
    if node.has(7):
        scales = (scale, right, as_rank_0(node, node.tensor(7)))
        return _requantize(node, total, scales, as_rank_0(node, node.tensor(8)))
    return _scale_product(node, total, scale, right, None)


@converts("QLinearGlobalAveragePool", "QLinearAveragePool", domain=_MICROSOFT)
def _qlinear_pool(node: OnnxNode) -> Expr:
    x, rank = _dequantize_input(node, 0), node.type(0).known_rank
    channels_last = bool(node.attribute("channels_last", 0))
    if channels_last:
        x = node.emit(ops.transpose(x, perm=(0, rank - 1, *range(1, rank - 1))))
    result = apply_onnx_operator(node, node.proto.op_type.removeprefix("QLinear"), x)
    if channels_last:
        result = node.emit(ops.transpose(result, perm=(0, *range(2, rank), 1)))
    return _quantize_result(node, result, 3, node.type(0).known_dtype)


@converts("QLinearConcat", domain=_MICROSOFT)
def _qlinear_concat(node: OnnxNode) -> Expr:
    """Takes the scale and zero point of the result, then each tensor with its own scale and zero point."""
    parts = [_dequantize_input(node, i) for i in range(2, len(node.inputs), 3)]
    joined = node.emit(ops.concat(*parts, axis=node.attribute("axis")))
    return _quantize_result(node, joined, 0, node.type(2).known_dtype)


@converts("DynamicQuantizeMatMul", domain=_MICROSOFT)
def _dynamic_quantize_matmul(node: OnnxNode) -> Expr:
    """Takes a (f32), b, the scale and zero point of b, and a bias."""
    a, b, scale = map(node.tensor, range(3))
    return dynamic_quantized_matmul(node, a, b, scale, _optional(node, 3), _optional(node, 4))


def dynamic_quantized_matmul(
    node: OnnxNode, a: Expr, b: Expr, scale: Expr, zero: Expr | None = None, bias: Expr | None = None
) -> Expr:
    """Return the matrix product of `a` and `(b - zero) * scale`, plus the bias.

    The dtype of `a` is f32.  `a` is quantized by its range.
    """
    a, a_scale, a_zero = quantize_to_range(node, a)
    total = _integer_matmul(node, a, b, a_zero, zero)
    return _scale_product(node, total, a_scale, _reshape_for_matmul(node, scale, (0,)), bias)


@converts("MatMulIntegerToFloat", domain=_MICROSOFT)
def _matmul_integer_to_float(node: OnnxNode) -> Expr:
    """Takes a and b, their scales, their zero points, and a bias."""
    total = _integer_matmul(node, node.tensor(0), node.tensor(1), _optional(node, 4), _optional(node, 5))
    a_scale, b_scale = _reshape_for_matmul(node, node.tensor(2), (-1,)), _reshape_for_matmul(node, node.tensor(3), (0,))
    return _scale_product(node, total, a_scale, b_scale, _optional(node, 6))


def _scale_product(node: OnnxNode, total: Expr, a_scale: Expr, b_scale: Expr, bias: Expr | None) -> Expr:
    factor = node.emit(ops.multiply(a_scale, b_scale))
    result = node.emit(ops.multiply(node.emit(ops.cast(total, to=factor.known_element_type.name)), factor))
    return result if bias is None else node.emit(ops.add(result, bias))
