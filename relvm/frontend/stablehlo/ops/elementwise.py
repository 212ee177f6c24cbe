"""Elementwise operations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.stablehlo.registry import Node, converts
from relvm.ir.dtypes import F32, I16, I32, I64, DType, dtype_of
from relvm.ir.expr import Expr

# Operations on one number, by the operator that computes them.
_FLOAT: dict[str, Callable[[Expr], Expr]] = {
    "cbrt": ops.cbrt,
    "ceil": ops.ceil,
    "cosine": ops.cos,
    "exponential": ops.exp,
    "exponential_minus_one": ops.expm1,
    "floor": ops.floor,
    "is_finite": ops.is_finite,
    "log": ops.log,
    "log_plus_one": ops.log1p,
    "logistic": ops.sigmoid,
    "round_nearest_afz": ops.round_away,
    "round_nearest_even": ops.round,
    "sine": ops.sin,
    "sqrt": ops.sqrt,
    "tan": ops.tan,
    "tanh": ops.tanh,
    "chlo.acos": ops.acos,
    "chlo.acosh": ops.acosh,
    "chlo.asin": ops.asin,
    "chlo.asinh": ops.asinh,
    "chlo.atan": ops.atan,
    "chlo.atanh": ops.atanh,
    "chlo.square": lambda x: ops.multiply(x, x),
    "chlo.tan": ops.tan,
    "chlo.erf": ops.erf,
    "chlo.erfc": ops.erfc,
}


def unified(node: Node, *indices: int) -> list[Expr]:
    """Return operands that must have the same shape, all operands by default.

    If it is not known whether two sizes are equal, they are compared at run time.
    """
    operands = [node.operands[i] for i in indices] if indices else list(node.operands)
    shapes = [node.shape(i) for i in indices or range(len(operands))]
    shape = shapes[0]
    for other in shapes[1:]:
        if len(other) != len(shape):
            raise RelvmFormatError(f"operands have the ranks {len(shape)} and {len(other)}, expected equal shapes")
        shape = tuple(b if isinstance(b, int) else a for a, b in zip(shape, other, strict=True))
    for other in shapes:
        for a, b in zip(shape, other, strict=True):
            if isinstance(a, int) and isinstance(b, int) and a != b:
                raise RelvmFormatError(f"operands have the sizes {a} and {b}, expected equal shapes")
    return [node.importer.with_shape(operand, shape) for operand in operands]


def _unary(function: Callable[[Expr], Expr]) -> Callable[[Node], Expr]:
    def convert(node: Node) -> Expr:
        node.expect_operands(1)
        return node.rounded(function, node.operands[0])

    return convert


for _name, _function in _FLOAT.items():
    converts(_name)(_unary(_function))


@converts("abs")
def _abs(node: Node) -> Expr:
    return node.rounded(ops.abs, node.operands[0])


@converts("negate")
def _negate(node: Node) -> Expr:
    return node.rounded(ops.negative, node.operands[0])


@converts("sign")
def _sign(node: Node) -> Expr:
    return node.rounded(ops.sign, node.operands[0])


@converts("rsqrt")
def _rsqrt(node: Node) -> Expr:
    return node.rounded(lambda x: ops.reciprocal(ops.sqrt(x)), node.operands[0])


@converts("not")
def _not(node: Node) -> Expr:
    """Inverts bools logically, and integers bit by bit."""
    return (ops.logical_not if node.dtype().is_bool else ops.bitwise_not)(node.operands[0])


@converts("popcnt")
def _popcnt(node: Node) -> Expr:
    return ops.population_count(node.operands[0])


@converts("count_leading_zeros")
def _count_leading_zeros(node: Node) -> Expr:
    return ops.count_leading_zeros(node.operands[0])


# ---- two operands ----


def two_operands(node: Node) -> list[Expr]:
    """Return the two operands of an elementwise operation, which have equal shapes."""
    node.expect_operands(2)
    return unified(node)


def _arithmetic(name: str, function: Callable[[Expr, Expr], Expr], on_bools: Callable[..., Expr] | None) -> None:
    @converts(name)
    def convert(node: Node) -> Expr:
        x, y = two_operands(node)
        if node.dtype().is_bool:
            if on_bools is None:
                raise RelvmUnsupportedError("elements of the type i1 are not supported")
            return on_bools(x, y)
        return node.rounded(function, x, y)


def _divide(x: Expr, y: Expr) -> Expr:
    """Returns x / y.  An integer divided by 0 is -1, or the largest integer if the type is unsigned, as in XLA."""
    if x.known_element_type.is_float:
        return ops.divide(x, y)
    dtype = x.known_element_type
    return ops.where(ops.equal(y, 0), -1 if dtype.is_signed else dtype.highest, ops.divide(x, y))


def _remainder(x: Expr, y: Expr) -> Expr:
    """Returns the remainder of x / y, with the sign of x.  If y is the integer 0, this is x, as in XLA."""
    if x.known_element_type.is_float:
        return ops.remainder(x, y)
    return ops.where(ops.equal(y, 0), x, ops.remainder(x, y))


_arithmetic("add", ops.add, ops.logical_or)
_arithmetic("subtract", ops.subtract, None)
_arithmetic("multiply", ops.multiply, ops.logical_and)
_arithmetic("divide", _divide, None)
_arithmetic("remainder", _remainder, None)
_arithmetic("maximum", ops.maximum, ops.logical_or)
_arithmetic("minimum", ops.minimum, ops.logical_and)
_arithmetic("power", ops.power, None)
_arithmetic("atan2", ops.atan2, None)
_arithmetic("and", ops.bitwise_and, ops.logical_and)
_arithmetic("or", ops.bitwise_or, ops.logical_or)
_arithmetic("xor", ops.bitwise_xor, ops.not_equal)
_arithmetic("shift_left", ops.shift_left, None)
_arithmetic("shift_right_logical", ops.shift_right_logical, None)


@converts("shift_right_arithmetic")
def _shift_right_arithmetic(node: Node) -> Expr:
    """Shifts right, and fills the upper bits with copies of the highest bit, also for unsigned integers."""
    x, y = two_operands(node)
    dtype = node.dtype()
    if dtype.is_signed or not dtype.is_integer:
        return ops.shift_right(x, y)
    signed = f"i{dtype.bits}"
    return ops.bit_cast(ops.shift_right(ops.bit_cast(x, to=signed), ops.bit_cast(y, to=signed)), to=dtype.name)


_COMPARISONS = {
    "EQ": ops.equal,
    "NE": ops.not_equal,
    "LT": ops.less,
    "LE": ops.less_equal,
    "GT": ops.greater,
    "GE": ops.greater_equal,
}
_COMPARE_TYPES = ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")


@converts("compare")
def _compare(node: Node) -> Expr:
    x, y = two_operands(node)
    compare = _COMPARISONS[node.word("comparison_direction", tuple(_COMPARISONS))]
    if node.word("compare_type", _COMPARE_TYPES, "NOTYPE") == "TOTALORDER" and node.dtype().is_float:
        return compare(total_order_key(node, x), total_order_key(node, y))
    return node.rounded(compare, x, y)


def total_order_key(node: Node, x: Expr) -> Expr:
    """Return integers that have the order of the floats x in IEEE 754's totalOrder: -NaN, -inf, -0, 0, inf, NaN."""
    if x.known_element_type.is_narrow_float:
        x = node.cast(x, F32)
    dtype = x.known_element_type
    bits = node.emit(ops.bit_cast(x, to=f"i{dtype.bits}"))
    return ops.bitwise_xor(bits, ops.bitwise_and(ops.shift_right(bits, dtype.bits - 1), (1 << (dtype.bits - 1)) - 1))


@converts("select")
def _select(node: Node) -> Expr:
    """Selects elements by a predicate, which may have rank 0."""
    node.expect_operands(3)
    x, y = unified(node, 1, 2)
    cond = node.operands[0]
    if node.shape(0) != ():
        cond = node.importer.with_shape(cond, x.tensor_type.known_shape)
    return ops.where(cond, x, y)


@converts("clamp")
def _clamp(node: Node) -> Expr:
    """Clamps the elements to bounds, which may have rank 0."""
    node.expect_operands(3)
    low, x, high = node.operands
    shape = node.shape(1)
    low, high = (
        bound if bound.tensor_type.shape == () else node.importer.with_shape(bound, shape) for bound in (low, high)
    )
    if node.dtype(1).is_bool:
        return ops.logical_and(ops.logical_or(x, low), high)
    return node.rounded(lambda x, low, high: ops.minimum(ops.maximum(x, low), high), x, low, high)


# ---- conversions ----


@converts("convert")
def _convert(node: Node) -> Expr:
    """Converts elements.  A float that is out of an integer type's range becomes the nearest integer.  NaN becomes
    0.
    """
    return converted(node, node.operands[0], node.result_dtype())


def converted(node: Node, x: Expr, dtype: DType) -> Expr:
    """Return x converted to `dtype` by the rules of StableHLO."""
    source = x.known_element_type
    if source == dtype:
        return x
    if not (source.is_float and dtype.is_integer):
        return ops.cast(x, to=dtype.name)
    if source.is_narrow_float:
        x, source = node.cast(x, F32), F32
    x = node.emit(x)
    lowest, highest = dtype.limits
    nan = ops.not_equal(x, x)
    if highest <= 1 << (24 if source == F32 else 53):  # the float type represents both limits
        clamped = ops.minimum(ops.maximum(x, float(lowest)), float(highest))
        return ops.cast(ops.where(nan, 0.0, clamped), to=dtype.name)
    above = node.emit(ops.greater_equal(x, float(highest + 1)))
    below = node.emit(ops.less(x, float(lowest)))
    outside = ops.logical_or(ops.logical_or(above, below), nan)
    inside = ops.cast(ops.where(outside, 0.0, x), to=dtype.name)
    return ops.where(above, highest, ops.where(below, lowest, inside))


@converts("bitcast_convert")
def _bitcast_convert(node: Node) -> Expr:
    """Reinterprets bits.  If the sizes differ, the last axis contains the parts of an element, lowest bits first."""
    (x,) = node.operands
    source, target = node.dtype(), node.result_dtype()
    if source.bits == target.bits:
        return ops.bit_cast(x, to=target.name)
    if source.is_bool or target.is_bool or min(source.bits, target.bits) < 8:
        raise RelvmUnsupportedError(f"conversions from {source} to {target} are not supported")
    shape = node.shape()
    if source.bits > target.bits:
        count = source.bits // target.bits
        wide = node.emit(ops.expand_dims(ops.bit_cast(x, to=f"u{source.bits}"), axes=(len(shape),)))
        shifts = np.arange(count) * target.bits
        parts = ops.shift_right_logical(wide, np.asarray(shifts, f"u{source.bits // 8}"))
        return ops.bit_cast(ops.cast(parts, to=f"u{target.bits}"), to=target.name)
    count = target.bits // source.bits
    if not shape or shape[-1] != count:
        raise RelvmFormatError(f"the last axis of {node.type()} must have the size {count}")
    axis = len(shape) - 1
    narrow = node.emit(ops.cast(ops.bit_cast(x, to=f"u{source.bits}"), to=f"u{target.bits}"))
    shifts = np.arange(count) * source.bits
    shifted = ops.shift_left(narrow, np.asarray(shifts, f"u{target.bits // 8}"))
    return ops.bit_cast(ops.sum(shifted, axes=(axis,)), to=target.name)


@converts("reduce_precision")
def _reduce_precision(node: Node) -> Expr:
    """Rounds to the nearest number of the format, ties to even.  Overflow becomes infinity, and underflow zero."""
    (x,) = node.operands
    exponent, mantissa = node.integer("exponent_bits"), node.integer("mantissa_bits")
    if exponent < 1 or mantissa < 0:
        raise RelvmFormatError(f"the format e{exponent}m{mantissa} is not valid")
    dtype = node.dtype()
    if dtype.bits not in (16, 32, 64):
        raise RelvmUnsupportedError(f"elements of the type {dtype} are not supported")
    own_mantissa = {"bf16": 7, "f16": 10, "f32": 23, "f64": 52}[dtype.name]
    own_exponent = dtype.bits - 1 - own_mantissa
    integer = dtype_of(f"u{dtype.bits}")
    bits = node.emit(ops.bit_cast(x, to=integer.name))
    result = bits
    if mantissa < own_mantissa:
        cut = own_mantissa - mantissa
        last = ops.bitwise_and(ops.shift_right_logical(bits, cut), 1)
        rounded = ops.add(ops.add(bits, (1 << (cut - 1)) - 1), last)
        result = node.emit(ops.bitwise_and(rounded, ((1 << dtype.bits) - 1) ^ ((1 << cut) - 1)))
    if exponent < own_exponent:
        sign_mask, exponent_mask = 1 << (dtype.bits - 1), ((1 << own_exponent) - 1) << own_mantissa
        own_bias, bias = (1 << (own_exponent - 1)) - 1, (1 << (exponent - 1)) - 1
        part = node.emit(ops.bitwise_and(result, exponent_mask))
        sign = node.emit(ops.bitwise_and(result, sign_mask))
        overflows = ops.greater(part, (own_bias + bias) << own_mantissa)
        underflows = ops.less_equal(part, (own_bias - bias) << own_mantissa)
        result = ops.where(overflows, ops.bitwise_or(sign, exponent_mask), result)
        result = ops.where(underflows, sign, result)
    wide = node.cast(x, F32) if dtype.is_narrow_float else x
    return ops.where(ops.not_equal(wide, wide), x, ops.bit_cast(result, to=dtype.name))


@converts("chlo.next_after")
def _next_after(node: Node) -> Expr:
    """Returns the next float after x in the direction of y."""
    x, y = two_operands(node)
    dtype = node.dtype()
    wide_x, wide_y = (node.cast(each, F32) if dtype.is_narrow_float else each for each in (x, y))
    signed = {16: I16, 32: I32, 64: I64}[dtype.bits]
    bits_x, bits_y = (node.emit(ops.bit_cast(each, to=signed.name)) for each in (x, y))
    magnitude_mask = signed.highest
    size_x = node.emit(ops.bitwise_and(bits_x, magnitude_mask))
    size_y = ops.bitwise_and(bits_y, magnitude_mask)
    differs = ops.not_equal(ops.bitwise_and(bits_x, signed.lowest), ops.bitwise_and(bits_y, signed.lowest))
    toward_zero = ops.logical_or(ops.greater(size_x, size_y), differs)
    stepped = ops.add(bits_x, ops.where(toward_zero, node.number(-1, signed), node.number(1, signed)))
    smallest = ops.bitwise_or(ops.bitwise_and(bits_y, signed.lowest), 1)
    from_zero = ops.where(ops.equal(size_y, 0), bits_y, smallest)
    result = ops.where(ops.equal(size_x, 0), from_zero, stepped)
    result = ops.where(ops.equal(wide_x, wide_y), bits_y, result)
    nan = node.emit(ops.bit_cast(node.number(np.nan, dtype), to=signed.name))
    is_nan = ops.logical_or(ops.not_equal(wide_x, wide_x), ops.not_equal(wide_y, wide_y))
    return ops.bit_cast(ops.where(is_nan, nan, result), to=dtype.name)


@converts("optimization_barrier")
def _optimization_barrier(node: Node) -> tuple[Expr, ...]:
    return tuple(node.operands)


@converts("sdy.sharding_constraint")
def _sharding_constraint(node: Node) -> Expr:
    """Returns the operand.  The sharding is ignored, because a program runs on one device."""
    return node.operands[0]


@converts("builtin.unrealized_conversion_cast")
def _conversion_cast(node: Node) -> Expr:
    """Returns the operand.  An artifact of JAX has such casts around operations of dialects without versions."""
    node.expect_operands(1)
    return node.operands[0]
