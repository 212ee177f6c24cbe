"""Converters of elementwise operators, constants, shapes, matrix products and convolutions.

Each converter returns expressions of relvm's operators for one node.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_sizes import assert_all_false, filled, is_known, is_symbolic, scalar, sizes_of
from relvm.frontend.onnx.ops.qdq_fusion import convolution_of_bytes, product_of_bytes
from relvm.frontend.onnx.ops.slice import FAR, symbolic_slice
from relvm.frontend.onnx.ops.strings import string_array
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.shape_folding import INT_MAX, slice_range
from relvm.frontend.onnx.sliding_window import pad_if_symbolic, padding_of
from relvm.frontend.onnx.tensor_expr import TensorExpr, aligned_operands
from relvm.ir.dtypes import BF16, F32, STR, DType, dtype_of
from relvm.ir.expr import Constant, Expr, constant
from relvm.ir.symbolic import product

# ---- elementwise ----

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
    return ops.divide(total, _scalar(len(rest) + 1, total))


@converts("Clip")
def _clip(node: OnnxNode) -> Expr:
    value = node.tensor(0)
    if node.opset < 11:
        low, high = node.attribute("min"), node.attribute("max")
        low = None if low is None else _scalar(low, value)
        high = None if high is None else _scalar(high, value)
    else:
        low = node.tensor(1) if node.has(1) else None
        high = node.tensor(2) if node.has(2) else None
    if low is not None:
        value = node.emit(ops.maximum(value, low))
    return value if high is None else node.emit(ops.minimum(value, high))


@converts("LeakyRelu")
def _leaky_relu(node: OnnxNode) -> Expr:
    x = node.tensor(0)
    scaled = node.emit(ops.multiply(x, _scalar(node.attribute("alpha", 0.01), x)))
    below = node.emit(ops.less(x, _scalar(0, x)))
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


def _scalar(value: Any, like: Expr) -> Constant:
    return constant(np.asarray(value, dtype=like.known_element_type.numpy))


# ---- constants and shapes ----


@converts("Constant")
def _constant(node: OnnxNode) -> Constant:
    names = [attribute.name for attribute in node.proto.attribute if attribute.name.startswith(("value", "sparse"))]
    if len(names) != 1:
        raise RelvmFormatError(f"a Constant has {len(names)} values, expected 1")
    value = node.attribute(names[0])
    match names[0]:
        case "value":
            return node.graph.constant(value, node.here)
        case "value_float" | "value_floats":
            return constant(np.asarray(value, dtype=np.float32))
        case "value_int" | "value_ints":
            return constant(np.asarray(value, dtype=np.int64))
        case "value_string":
            return constant(np.array(value, STR.numpy))
        case "value_strings":
            return constant(string_array(value))
    raise RelvmUnsupportedError(f"a Constant with the attribute {names[0]} is not supported")


@converts("ConstantOfShape")
def _constant_of_shape(node: OnnxNode) -> Expr:
    value = node.attribute("value")
    fill = np.float32(0) if value is None else np.asarray(value).reshape(())
    return filled(node, fill, *sizes_of(node, 0, "shape"))


@converts("Shape")
def _shape(node: OnnxNode) -> Expr:
    """Returns the shape: a constant or symbolic shape if it is known at import time, otherwise one read at run time."""
    dims = ops.shape_to_tensor(node.emit(ops.shape_of(node.tensor(0))))
    start, end = node.attribute("start", 0), node.attribute("end", _END)
    if (start, end) == (0, _END):
        return dims
    return ops.slice(node.emit(dims), begin=(start,), end=(end,))


@converts("Transpose")
def _transpose(node: OnnxNode) -> Expr:
    perm = node.attribute("perm")
    perm = reversed(range(node.type(0).known_rank)) if perm is None else perm
    return ops.transpose(node.tensor(0), perm=tuple(perm))


@converts("Concat")
def _concat(node: OnnxNode) -> Expr:
    return ops.concat(*node.tensors(), axis=node.attribute("axis"))


_END = 2**63 - 1


@converts("Slice")
def _slice(node: OnnxNode) -> Expr:
    if node.opset < 10:
        begin, end = node.attribute("starts"), node.attribute("ends")
        axes, steps = node.attribute("axes"), None
    elif any(not is_known(node, i) or is_symbolic(node, i) for i in range(1, len(node.inputs)) if node.has(i)):
        return symbolic_slice(node)
    else:
        begin, end = (node.known_array(i, "the Slice bounds").tolist() for i in (1, 2))
        axes = node.known_array(3, "the Slice axes").tolist() if node.has(3) else None
        steps = node.known_array(4, "the Slice steps").tolist() if node.has(4) else None
    axes = range(len(begin)) if axes is None else axes
    steps = [1] * len(begin) if steps is None else steps
    shape = node.type(0).shape
    for i, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        dim = None if shape is None else shape[axis]
        if isinstance(dim, int):
            taken = slice_range(dim, begin[i], end[i], step)
            stop = taken.stop if taken.stop >= 0 else -_END
            begin[i], end[i] = (taken.start, stop) if taken else (0, 0)
            if taken == range(dim):
                begin[i], end[i], steps[i] = 0, _END, 1
        elif step < 0 and begin[i] < -1:  # an end before the axis means that the first element is included
            return symbolic_slice(node)
        elif end[i] >= FAR:
            end[i] = -_END if step < 0 and end[i] in INT_MAX else _END
    if all(bounds == (0, _END, 1) for bounds in zip(begin, end, steps, strict=True)):
        return node.tensor(0)
    return ops.slice(node.tensor(0), begin=tuple(begin), end=tuple(end), axes=tuple(axes), steps=tuple(steps))


@converts("Gather")
def _gather(node: OnnxNode) -> Expr:
    return ops.gather(node.tensor(0), node.tensor(1), axis=node.attribute("axis", 0))


@converts("Softmax")
def _softmax(node: OnnxNode) -> Expr:
    """Computes the softmax along an axis.

    Before opset 13, the input is flattened to a matrix: `axis` and the axes after it become the columns.
    """
    x, rank = node.tensor(0), node.type(0).known_rank
    axis = node.axis(-1 if node.opset >= 13 else 1, rank, end=int(node.opset < 13))
    if node.opset >= 13 or axis == rank - 1:
        return ops.softmax(x, axis=axis)
    shape = x.tensor_type.shape
    if shape is None:
        raise RelvmUnsupportedError("Softmax before opset 13 requires a known shape")
    matrix = node.emit(ops.reshape(x, node.shape([product(shape[:axis]), product(shape[axis:])])))
    return ops.reshape(node.emit(ops.softmax(matrix, axis=1)), node.shape(list(shape)))


# ---- linear algebra, convolution, pooling ----


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
        result = node.emit(ops.multiply(result, _scalar(alpha, result)))
    if not node.has(2):
        return result
    c = node.tensor(2)
    if beta != 1.0:
        c = node.emit(ops.multiply(c, _scalar(beta, c)))
    return ops.add(result, c)


@converts("Conv")
def _conv(node: OnnxNode) -> Expr:
    spatial = node.type(0).known_rank - 2
    result = convolution_of_bytes(node) or node.emit(_convolution(node, spatial))
    if not node.has(2):
        return result
    channels = result.tensor_type.known_shape[1]
    bias = node.graph.with_shape(node.tensor(2), (channels,))
    per_channel = ops.reshape(bias, node.shape([channels, *[1] * spatial]))
    return ops.add(result, node.emit(per_channel))


def _convolution(node: OnnxNode, spatial: int) -> Expr:
    x, w, groups = node.tensor(0), node.tensor(1), node.attribute("group", 1)
    strides = tuple(node.attribute("strides", [1] * spatial))
    dilations = tuple(node.attribute("dilations", [1] * spatial))
    filters, *rest = w.tensor_type.known_shape
    if not isinstance(filters, int) and groups > 1:
        group_size = node.graph.variable_of(node.exact_quotient(filters, groups, "filters"))
        w = node.graph.with_shape(w, (group_size * groups, *rest))
    wide, pads = pad_if_symbolic(
        TensorExpr(node, x), padding_of(node, w.tensor_type.known_shape[2:], strides, dilations), 0
    )
    return ops.conv(wide.expr, w, strides=strides, pads=pads, dilations=dilations, groups=groups)


@converts("GlobalMaxPool", "GlobalAveragePool")
def _global_pool(node: OnnxNode) -> Expr:
    op = ops.max if node.proto.op_type == "GlobalMaxPool" else ops.mean
    return op(node.tensor(0), axes=tuple(range(2, node.type(0).known_rank)), keepdims=True)
