"""Elementwise operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.torch.promotion import promoted_dtype
from relvm.frontend.torch.registry import Node, converts
from relvm.ir.dtypes import BOOL, F32, I32, I64, DType
from relvm.ir.expr import Expr
from relvm.ir.types import TensorType


def float_argument(node: Node, x: Expr) -> Expr:
    """Return x as the argument of a function of real numbers.  Integers and bools get the float dtype of the result."""
    return node.wide(x if x.known_element_type.is_float else node.cast(x, node.out_dtype()))


def _real(function: Callable[..., Expr], *names: str) -> None:
    @converts(*names)
    def convert(node: Node, self: Expr) -> Expr:
        return function(float_argument(node, self))


def _constant(x: Expr, value: float) -> Expr:
    from relvm.ir.expr import constant

    return constant(np.asarray(value, x.known_element_type.numpy))


_real(ops.acos, "acos", "arccos")
_real(ops.acosh, "acosh", "arccosh")
_real(ops.asin, "asin", "arcsin")
_real(ops.asinh, "asinh", "arcsinh")
_real(ops.atan, "atan", "arctan")
_real(ops.atanh, "atanh", "arctanh")
_real(ops.cos, "cos")
_real(ops.cosh, "cosh")
_real(ops.erf, "erf", "special_erf")
_real(ops.erfc, "erfc", "special_erfc")
_real(ops.exp, "exp")
_real(lambda x: ops.power(_constant(x, 2), x), "exp2", "special_exp2")
_real(ops.expm1, "expm1", "special_expm1")
_real(ops.log, "log")
_real(ops.log1p, "log1p", "special_log1p")
_real(lambda x: ops.divide(ops.log(x), math.log(10)), "log10")
_real(lambda x: ops.divide(ops.log(x), math.log(2)), "log2")
_real(ops.reciprocal, "reciprocal")
_real(lambda x: ops.reciprocal(ops.sqrt(x)), "rsqrt")
_real(ops.sigmoid, "sigmoid", "special_expit")
_real(ops.sin, "sin")
_real(ops.sinh, "sinh")
_real(ops.sqrt, "sqrt")
_real(ops.tan, "tan")
_real(ops.tanh, "tanh")
_real(lambda x: ops.multiply(x, math.pi / 180), "deg2rad")
_real(lambda x: ops.multiply(x, 180 / math.pi), "rad2deg")


def is_nan(x: Expr) -> Expr:
    """Return a bool tensor that is true where x, a float tensor, is NaN."""
    return ops.not_equal(x, x)


def truncated(x: Expr) -> Expr:
    """Return a float tensor rounded toward zero."""
    return ops.where(ops.less(x, 0), ops.ceil(x), ops.floor(x))


def _sinc(node: Node, x: Expr) -> Expr:
    x = node.emit(ops.multiply(x, math.pi))
    return ops.where(ops.equal(x, 0), 1, ops.divide(ops.sin(x), x))


@converts("sinc", "special_sinc")
def _sinc_of(node: Node, self: Expr) -> Expr:
    return _sinc(node, float_argument(node, self))


@converts("logit", "special_logit")
def _logit(node: Node, self: Expr, eps: float | None = None) -> Expr:
    x = node.emit(float_argument(node, self))
    if eps is not None:
        x = node.emit(ops.where(ops.greater(x, 1 - eps), 1 - eps, ops.where(ops.less(x, eps), eps, x)))
    return ops.log(ops.divide(x, ops.subtract(_constant(x, 1), x)))


def _rounding(function: Callable[[Expr], Expr], *names: str) -> None:
    """Register `function`, which rounds floats, as the converter of operators that return integers unchanged."""

    @converts(*names)
    def convert(node: Node, self: Expr) -> Expr:
        return function(node.wide(self)) if self.known_element_type.is_float else self


_rounding(ops.ceil, "ceil")
_rounding(ops.floor, "floor")
_rounding(truncated, "trunc", "fix")


@converts("round")
def _round(node: Node, self: Expr) -> Expr:
    return ops.round(node.wide(self)) if self.known_element_type.is_float else self


@converts("round.decimals", "special_round")
def _round_decimals(node: Node, self: Expr, *, decimals: int = 0) -> Expr:
    if not self.known_element_type.is_float:
        if decimals < 0:
            raise RelvmUnsupportedError("rounding of integers to tens is not supported")
        return self
    x = node.wide(self)
    if decimals == 0:
        return ops.round(x)
    factor = 10.0 ** abs(decimals)
    if decimals > 0:
        return ops.divide(ops.round(ops.multiply(x, factor)), factor)
    return ops.multiply(ops.round(ops.divide(x, factor)), factor)


@converts("frac")
def _frac(node: Node, self: Expr) -> Expr:
    x = node.emit(node.wide(self))
    return ops.subtract(x, truncated(x))


@converts("abs", "absolute")
def _abs(node: Node, self: Expr) -> Expr:
    return self if self.known_element_type.is_bool else ops.abs(self)


@converts("neg", "negative")
def _neg(node: Node, self: Expr) -> Expr:
    return ops.negative(self)


@converts("positive", "resolve_conj", "resolve_neg", "conj", "_conj", "conj_physical", "real")
def _positive(node: Node, self: Expr) -> Expr:
    return self


@converts("square")
def _square(node: Node, self: Expr) -> Expr:
    x = node.emit(self)
    return ops.logical_and(x, x) if x.known_element_type.is_bool else ops.multiply(x, x)


@converts("sign", "sgn")
def _sign(node: Node, self: Expr) -> Expr:
    """Returns the sign of each element.  NaN has the sign 0."""
    dtype = self.known_element_type
    if dtype.is_bool:
        return self
    if dtype.is_float:
        x = node.emit(node.wide(self))
        return ops.where(ops.greater(x, 0), 1, ops.where(ops.less(x, 0), -1, _constant(x, 0)))
    return ops.sign(self)


@converts("signbit")
def _signbit(node: Node, self: Expr) -> Expr:
    dtype = self.known_element_type
    if dtype.is_float:
        return ops.less(ops.bit_cast(self, to=f"i{dtype.bits}"), 0)
    if dtype.is_bool or not dtype.is_signed:
        return node.full(False, self.tensor_type.known_shape, BOOL)
    return ops.less(self, 0)


@converts("isnan")
def _isnan(node: Node, self: Expr) -> Expr:
    if not self.known_element_type.is_float:
        return node.full(False, self.tensor_type.known_shape, BOOL)
    return is_nan(node.emit(node.wide(self)))


@converts("isinf")
def _isinf(node: Node, self: Expr) -> Expr:
    if not self.known_element_type.is_float:
        return node.full(False, self.tensor_type.known_shape, BOOL)
    return ops.equal(ops.abs(node.wide(self)), math.inf)


@converts("isposinf")
def _isposinf(node: Node, self: Expr) -> Expr:
    if not self.known_element_type.is_float:
        return node.full(False, self.tensor_type.known_shape, BOOL)
    return ops.equal(node.wide(self), math.inf)


@converts("isneginf")
def _isneginf(node: Node, self: Expr) -> Expr:
    if not self.known_element_type.is_float:
        return node.full(False, self.tensor_type.known_shape, BOOL)
    return ops.equal(node.wide(self), -math.inf)


@converts("isfinite")
def _isfinite(node: Node, self: Expr) -> Expr:
    if not self.known_element_type.is_float:
        return node.full(True, self.tensor_type.known_shape, BOOL)
    return ops.is_finite(node.wide(self))


@converts("isreal")
def _isreal(node: Node, self: Expr) -> Expr:
    return node.full(True, self.tensor_type.known_shape, BOOL)


@converts("angle")
def _angle(node: Node, self: Expr) -> Expr:
    x = node.emit(float_argument(node, self))
    return ops.where(is_nan(x), x, ops.where(ops.less(x, 0), math.pi, _constant(x, 0)))


@converts("nan_to_num")
def _nan_to_num(
    node: Node, self: Expr, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Expr:
    dtype = self.known_element_type
    if not dtype.is_float:
        return self
    x = node.emit(node.wide(self))
    highest = float(np.finfo(dtype.numpy).max) if dtype.bits >= 32 else {"f16": 65504.0}.get(dtype.name, 3.3895314e38)
    x = node.emit(ops.where(is_nan(x), 0.0 if nan is None else nan, x))
    x = node.emit(ops.where(ops.equal(x, math.inf), highest if posinf is None else posinf, x))
    return ops.where(ops.equal(x, -math.inf), -highest if neginf is None else neginf, x)


@converts("bitwise_not", "__invert__")
def _bitwise_not(node: Node, self: Expr) -> Expr:
    return (ops.logical_not if self.known_element_type.is_bool else ops.bitwise_not)(self)


def as_bool(node: Node, x: Any) -> Expr:
    """Return a bool tensor that is true where the elements of x differ from 0."""
    if not isinstance(x, Expr):
        return node.number(bool(x), BOOL)
    return node.cast(x, BOOL)


@converts("logical_not")
def _logical_not(node: Node, self: Expr) -> Expr:
    return ops.logical_not(as_bool(node, self))


def _logical(function: Callable[[Expr, Expr], Expr], name: str) -> None:
    @converts(name)
    def convert(node: Node, self: Expr, other: Expr) -> Expr:
        return function(as_bool(node, self), as_bool(node, other))


_logical(ops.logical_and, "logical_and")
_logical(ops.logical_or, "logical_or")
_logical(ops.not_equal, "logical_xor")


# ---- two operands ----


def operands(node: Node, *values: Any) -> list[Expr]:
    """Return operands as tensors of the dtype in which PyTorch computes the result."""
    return [node.number(value, node.out_dtype()) for value in values]


def wide_operands(node: Node, *values: Any) -> list[Expr]:
    """Return operands like `operands`, but as f32 instead of narrower floats.

    Numbers and tensors of rank 0 are not rounded to the narrower dtype before.
    """
    dtype = node.out_dtype()
    if not dtype.is_narrow_float:
        return operands(node, *values)
    return [node.wide(node.number(value, dtype)) if _has_axes(value) else node.number(value, F32) for value in values]


def _has_axes(value: Any) -> bool:
    return isinstance(value, Expr) and isinstance(value.type, TensorType) and value.type.rank != 0


def _scaled(node: Node, y: Expr, alpha: Any) -> Expr:
    if alpha == 1 and not isinstance(alpha, bool):
        return y
    if y.known_element_type.is_bool:
        return ops.logical_and(y, node.number(bool(alpha), BOOL))
    return ops.multiply(y, node.number(alpha, y.known_element_type))


@converts("add.Tensor", "add.Scalar")
def _add(node: Node, self: Any, other: Any, alpha: Any = 1) -> Expr:
    x, y = wide_operands(node, self, other)
    y = _scaled(node, y, alpha)
    return ops.logical_or(x, y) if x.known_element_type.is_bool else ops.add(x, y)


@converts("sub.Tensor", "sub.Scalar", "subtract.Tensor", "subtract.Scalar")
def _sub(node: Node, self: Any, other: Any, alpha: Any = 1) -> Expr:
    x, y = wide_operands(node, self, other)
    return ops.subtract(x, _scaled(node, y, alpha))


@converts("rsub.Tensor", "rsub.Scalar")
def _rsub(node: Node, self: Any, other: Any, alpha: Any = 1) -> Expr:
    return _sub(node, other, self, alpha)


@converts("mul.Tensor", "mul.Scalar", "multiply.Tensor", "multiply.Scalar")
def _mul(node: Node, self: Any, other: Any) -> Expr:
    x, y = wide_operands(node, self, other)
    return ops.logical_and(x, y) if x.known_element_type.is_bool else ops.multiply(x, y)


@converts("div.Tensor", "div.Scalar", "divide.Tensor", "divide.Scalar", "true_divide.Tensor", "true_divide.Scalar")
def _div(node: Node, self: Any, other: Any) -> Expr:
    return ops.divide(*wide_operands(node, self, other))


def floor_quotient(node: Node, x: Expr, y: Expr) -> Expr:
    """Return x / y rounded down.   Source: c10/util/BFloat16-math.h, div_floor_floating, for floats."""
    x, y = node.emit(x), node.emit(y)
    if x.known_element_type.is_integer:
        quotient = node.emit(ops.divide(x, y))
        rest = node.emit(ops.subtract(x, ops.multiply(quotient, y)))
        inexact = ops.logical_and(ops.not_equal(rest, 0), ops.not_equal(ops.less(rest, 0), ops.less(y, 0)))
        return ops.where(inexact, ops.subtract(quotient, 1), quotient)
    rest = node.emit(ops.remainder(x, y))
    quotient = node.emit(ops.divide(ops.subtract(x, rest), y))
    lower = ops.logical_and(ops.not_equal(rest, 0), ops.not_equal(ops.less(y, 0), ops.less(rest, 0)))
    quotient = node.emit(ops.where(lower, ops.subtract(quotient, 1), quotient))
    floor = node.emit(ops.floor(quotient))
    floor = node.emit(ops.where(ops.greater(ops.subtract(quotient, floor), 0.5), ops.add(floor, 1), floor))
    ratio = node.emit(ops.divide(x, y))
    floor = ops.where(ops.equal(quotient, 0), ops.multiply(ratio, 0), floor)
    return ops.where(ops.equal(y, 0), ratio, floor)


@converts("div.Tensor_mode", "div.Scalar_mode", "divide.Tensor_mode", "divide.Scalar_mode")
def _div_mode(node: Node, self: Any, other: Any, *, rounding_mode: str | None) -> Expr:
    """Divides, and rounds as stated.  The quotient of an integer and 0 is undefined instead of an error."""
    x, y = wide_operands(node, self, other)
    if rounding_mode == "floor":
        return floor_quotient(node, x, y)
    if rounding_mode == "trunc":
        quotient = node.emit(ops.divide(x, y))
        return truncated(quotient) if x.known_element_type.is_float else quotient
    return ops.divide(x, y)


@converts("floor_divide", "floor_divide.Scalar")
def _floor_divide(node: Node, self: Any, other: Any) -> Expr:
    return floor_quotient(node, *wide_operands(node, self, other))


@converts("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def _remainder(node: Node, self: Any, other: Any) -> Expr:
    """Returns a remainder with the sign of the divisor.  That of an integer and 0 is undefined instead of an error."""
    x, y = (node.emit(each) for each in wide_operands(node, self, other))
    if not x.known_element_type.is_float:
        return ops.modulo(x, y)
    rest = node.emit(ops.remainder(x, y))
    differs = ops.logical_and(ops.not_equal(rest, 0), ops.not_equal(ops.less(y, 0), ops.less(rest, 0)))
    return ops.where(differs, ops.add(rest, y), rest)


@converts("fmod.Tensor", "fmod.Scalar")
def _fmod(node: Node, self: Any, other: Any) -> Expr:
    return ops.remainder(*wide_operands(node, self, other))


@converts("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def _pow(node: Node, self: Any, exponent: Any) -> Expr:
    dtype = node.out_dtype()
    if isinstance(self, Expr) and dtype.is_float and exponent in (2, 3, 0.5, -0.5, -1, -2):
        x = node.emit(node.wide(node.cast(self, dtype)))
        match exponent:
            case 2:
                return ops.multiply(x, x)
            case 3:
                return ops.multiply(ops.multiply(x, x), x)
            case 0.5:
                return ops.sqrt(x)
            case -0.5:
                return ops.reciprocal(ops.sqrt(x))
            case -1:
                return ops.reciprocal(x)
        return ops.reciprocal(ops.multiply(x, x))
    x, y = wide_operands(node, self, exponent)
    if x.known_element_type.is_bool:  # b ** 0 is true
        return ops.logical_or(x, ops.logical_not(y))
    return ops.power(x, y)


@converts("float_power.Tensor_Tensor", "float_power.Tensor_Scalar", "float_power.Scalar")
def _float_power(node: Node, self: Any, exponent: Any) -> Expr:
    return ops.power(*operands(node, self, exponent))


_COMPARISONS = {
    **{"eq": ops.equal, "ne": ops.not_equal, "lt": ops.less, "le": ops.less_equal, "gt": ops.greater},
    **{"ge": ops.greater_equal, "not_equal": ops.not_equal, "less": ops.less, "less_equal": ops.less_equal},
    **{"greater": ops.greater, "greater_equal": ops.greater_equal},
}


def _comparison(function: Callable[[Expr, Expr], Expr], name: str) -> None:
    @converts(f"{name}.Tensor", f"{name}.Scalar")
    def convert(node: Node, self: Any, other: Any) -> Expr:
        x, y = (node.wide(each) for each in node.promoted(self, other))
        return function(x, y)


for _name, _function in _COMPARISONS.items():
    _comparison(_function, _name)


def _bitwise(name: str, on_integers: Callable[..., Expr], on_bools: Callable[..., Expr]) -> None:
    @converts(
        *(f"bitwise_{name}.{overload}" for overload in ("Tensor", "Scalar", "Scalar_Tensor")),
        *(f"__{name}__.{overload}" for overload in ("Tensor", "Scalar")),
    )
    def convert(node: Node, self: Any, other: Any) -> Expr:
        x, y = operands(node, self, other)
        return (on_bools if x.known_element_type.is_bool else on_integers)(x, y)


_bitwise("and", ops.bitwise_and, ops.logical_and)
_bitwise("or", ops.bitwise_or, ops.logical_or)
_bitwise("xor", ops.bitwise_xor, ops.not_equal)


def _in_range(node: Node, y: Expr, dtype: DType) -> Expr:
    return ops.logical_and(ops.greater_equal(y, 0), ops.less(y, dtype.bits))


_SHIFT_OVERLOADS = ("Tensor", "Tensor_Scalar", "Scalar_Tensor")


@converts(*(f"bitwise_left_shift.{each}" for each in _SHIFT_OVERLOADS), "__lshift__.Tensor", "__lshift__.Scalar")
def _left_shift(node: Node, self: Any, other: Any) -> Expr:
    x, y = (node.emit(each) for each in operands(node, self, other))
    zero = node.number(0, x.known_element_type)
    return ops.where(_in_range(node, y, x.known_element_type), ops.shift_left(x, y), zero)


@converts(*(f"bitwise_right_shift.{each}" for each in _SHIFT_OVERLOADS), "__rshift__.Tensor", "__rshift__.Scalar")
def _right_shift(node: Node, self: Any, other: Any) -> Expr:
    x, y = (node.emit(each) for each in operands(node, self, other))
    dtype = x.known_element_type
    last = node.number(dtype.bits - 1, dtype)
    return ops.shift_right(x, ops.where(_in_range(node, y, dtype), y, last))


@converts("maximum", "max.other")
def _maximum(node: Node, self: Expr, other: Expr) -> Expr:
    x, y = wide_operands(node, self, other)
    return ops.logical_or(x, y) if x.known_element_type.is_bool else ops.maximum(x, y)


@converts("minimum", "min.other")
def _minimum(node: Node, self: Expr, other: Expr) -> Expr:
    x, y = wide_operands(node, self, other)
    return ops.logical_and(x, y) if x.known_element_type.is_bool else ops.minimum(x, y)


def _ignoring_nan(node: Node, x: Expr, y: Expr, function: Callable[[Expr, Expr], Expr]) -> Expr:
    x, y = node.emit(x), node.emit(y)
    if not x.known_element_type.is_float:
        return function(x, y)
    return ops.where(is_nan(x), y, ops.where(is_nan(y), x, function(x, y)))


@converts("fmax")
def _fmax(node: Node, self: Expr, other: Expr) -> Expr:
    x, y = wide_operands(node, self, other)
    if x.known_element_type.is_bool:
        return ops.logical_or(x, y)
    return _ignoring_nan(node, x, y, ops.maximum)


@converts("fmin")
def _fmin(node: Node, self: Expr, other: Expr) -> Expr:
    x, y = wide_operands(node, self, other)
    if x.known_element_type.is_bool:
        return ops.logical_and(x, y)
    return _ignoring_nan(node, x, y, ops.minimum)


@converts("atan2", "arctan2")
def _atan2(node: Node, self: Expr, other: Expr) -> Expr:
    return ops.atan2(*wide_operands(node, self, other))


@converts("hypot")
def _hypot(node: Node, self: Expr, other: Expr) -> Expr:
    x, y = (node.emit(ops.abs(each)) for each in wide_operands(node, self, other))
    high, low = node.emit(ops.maximum(x, y)), node.emit(ops.minimum(x, y))
    ratio = node.emit(ops.divide(low, high))
    result = ops.multiply(high, ops.sqrt(ops.add(ops.multiply(ratio, ratio), 1)))
    infinite = ops.logical_or(ops.equal(x, math.inf), ops.equal(y, math.inf))
    return ops.where(infinite, math.inf, ops.where(ops.equal(high, 0), high, result))


@converts("copysign.Tensor", "copysign.Scalar")
def _copysign(node: Node, self: Any, other: Any) -> Expr:
    x, y = operands(node, self, other)
    dtype = x.known_element_type
    negative = ops.less(ops.bit_cast(y, to=f"i{dtype.bits}"), 0)
    size = node.emit(ops.abs(x))
    return ops.where(negative, ops.negative(size), size)


def log_add_exp(node: Node, x: Expr, y: Expr, base: float | None = None) -> Expr:
    """Return log(exp(x) + exp(y)), also for other bases."""
    x, y = node.emit(x), node.emit(y)
    high = node.emit(ops.maximum(x, y))
    distance = ops.negative(ops.abs(ops.subtract(x, y)))
    if base is not None:
        distance = ops.multiply(distance, math.log(base))
    rest = ops.log1p(ops.exp(distance))
    if base is not None:
        rest = ops.divide(rest, math.log(base))
    same = ops.logical_and(ops.equal(x, y), ops.equal(ops.abs(x), math.inf))
    return ops.where(same, x, ops.add(high, rest))


@converts("logaddexp")
def _logaddexp(node: Node, self: Expr, other: Expr) -> Expr:
    x, y = wide_operands(node, self, other)
    return log_add_exp(node, x, y)


@converts("logaddexp2")
def _logaddexp2(node: Node, self: Expr, other: Expr) -> Expr:
    x, y = wide_operands(node, self, other)
    return log_add_exp(node, x, y, 2)


def _xlogy_of(function: Callable[[Expr], Expr], *names: str) -> None:
    overloads = ("Tensor", "Scalar_Self", "Scalar_Other")
    own = ("", ".self_scalar", ".other_scalar")

    @converts(
        *(f"{name}{each}" for name in names if name.startswith("special") for each in own),
        *(f"{name}.{each}" for name in names if not name.startswith("special") for each in overloads),
    )
    def convert(node: Node, self: Any, other: Any) -> Expr:
        x, y = (node.emit(each) for each in wide_operands(node, self, other))
        result = ops.where(ops.equal(x, 0), _constant(x, 0), ops.multiply(x, function(y)))
        return ops.where(is_nan(y), y, result)


_xlogy_of(ops.log, "xlogy", "special_xlogy")
_xlogy_of(ops.log1p, "special_xlog1py")


@converts("heaviside")
def _heaviside(node: Node, self: Expr, values: Expr) -> Expr:
    x, y = (node.emit(each) for each in operands(node, self, values))
    if x.known_element_type.is_bool:
        return ops.logical_or(x, y)
    one, zero = node.number(1, x.known_element_type), node.number(0, x.known_element_type)
    positive = ops.where(ops.greater(x, 0), one, zero)
    return ops.where(ops.equal(x, 0), y, positive)


@converts("ldexp.Tensor")
def _ldexp(node: Node, self: Expr, other: Expr) -> Expr:
    x, y = wide_operands(node, self, other)
    return ops.multiply(x, ops.power(_constant(x, 2), y))


@converts("addcmul")
def _addcmul(node: Node, self: Expr, tensor1: Expr, tensor2: Expr, *, value: Any = 1) -> Expr:
    x, y, z = wide_operands(node, self, tensor1, tensor2)
    product = ops.multiply(y, z)
    return ops.add(x, product if value == 1 else ops.multiply(product, node.number(value, x.known_element_type)))


@converts("addcdiv")
def _addcdiv(node: Node, self: Expr, tensor1: Expr, tensor2: Expr, *, value: Any = 1) -> Expr:
    x, y, z = wide_operands(node, self, tensor1, tensor2)
    quotient = ops.divide(y, z)
    return ops.add(x, quotient if value == 1 else ops.multiply(quotient, node.number(value, x.known_element_type)))


@converts("lerp.Scalar", "lerp.Tensor", "lerp.Scalar_Tensor")
def lerp(node: Node, self: Expr, end: Expr, weight: Any) -> Expr:
    x, y, w = (node.emit(each) for each in wide_operands(node, self, end, weight))
    span = node.emit(ops.subtract(y, x))
    near = ops.add(x, ops.multiply(w, span))
    far = ops.subtract(y, ops.multiply(span, ops.subtract(_constant(x, 1), w)))
    return ops.where(ops.less(ops.abs(w), 0.5), near, far)


@converts("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def _where(node: Node, condition: Expr, self: Any, other: Any) -> Expr:
    x, y = operands(node, self, other)
    return ops.where(node.cast(condition, BOOL), x, y)


@converts("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(node: Node, self: Expr, mask: Expr, value: Any) -> Expr:
    return ops.where(node.cast(mask, BOOL), node.number(value, self.known_element_type), self)


def clamped(node: Node, x: Expr, low: Any, high: Any) -> Expr:
    """Return x clamped to bounds, of which each can be None.  NaN stays NaN."""
    dtype = x.known_element_type
    maximum, minimum = (ops.logical_or, ops.logical_and) if dtype.is_bool else (ops.maximum, ops.minimum)
    if low is not None:
        x = maximum(node.emit(x), node.wide(node.number(low, dtype)))
    if high is not None:
        x = minimum(node.emit(x), node.wide(node.number(high, dtype)))
    return x


@converts("clamp", "clamp.Tensor", "clip", "clip.Tensor")
def _clamp(node: Node, self: Expr, min: Any = None, max: Any = None) -> Expr:
    (x,) = wide_operands(node, self)
    return clamped(node, x, min, max)


@converts("clamp_min", "clamp_min.Tensor")
def _clamp_min(node: Node, self: Expr, min: Any) -> Expr:
    (x,) = wide_operands(node, self)
    return clamped(node, x, min, None)


@converts("clamp_max", "clamp_max.Tensor")
def _clamp_max(node: Node, self: Expr, max: Any) -> Expr:
    (x,) = wide_operands(node, self)
    return clamped(node, x, None, max)


def _greatest_common_divisor(node: Node, x: Expr, y: Expr) -> Expr:
    """Return the greatest common divisors of x and y, by a loop that runs Euclid's algorithm on all elements."""
    from relvm.ir.expr import Tuple
    from relvm.ir.types import TensorType, TupleType

    builder = node.importer.builder
    shape = node.out_shape()
    x, y = (node.broadcast(node.emit(ops.abs(each)), shape) for each in (x, y))
    type_ = TensorType(x.known_element_type, shape)
    state = TupleType((type_, type_))

    def loop(recurse: Expr, a: Expr, b: Expr) -> Expr:
        some = builder.emit(ops.max(ops.cast(ops.not_equal(b, 0), to="i64")))

        def again() -> Expr:
            rest = builder.emit(ops.where(ops.equal(b, 0), b, ops.modulo(a, b)))
            return builder.call(recurse, builder.emit(ops.where(ops.equal(b, 0), a, b)), rest)

        return builder.if_(builder.emit(ops.greater(some, 0)), again, lambda: Tuple((a, b)))

    function = builder.local_function([("a", type_), ("b", type_)], loop, state, name="gcd", recursive=True)
    return node.items(builder.call(function, x, y))[0]


@converts("gcd")
def _gcd(node: Node, self: Expr, other: Expr) -> Expr:
    return _greatest_common_divisor(node, *operands(node, self, other))


@converts("lcm")
def _lcm(node: Node, self: Expr, other: Expr) -> Expr:
    x, y = (node.emit(each) for each in operands(node, self, other))
    divisor = node.emit(_greatest_common_divisor(node, x, y))
    product = ops.abs(ops.multiply(ops.divide(x, ops.where(ops.equal(divisor, 0), 1, divisor)), y))
    return ops.where(ops.equal(divisor, 0), 0, product)


@converts("isclose")
def _isclose(
    node: Node, self: Expr, other: Expr, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Expr:
    x, y = (node.emit(node.wide(each)) for each in node.promoted(self, other))
    same = node.emit(ops.equal(x, y))
    if x.known_element_type.is_bool:
        return same
    if not x.known_element_type.is_float:
        a, b = node.cast(x, F32), node.cast(y, F32)
        if x.known_element_type == I64:
            a, b = (ops.cast(each, to="f64") for each in (x, y))
        return ops.logical_or(
            same, ops.less_equal(ops.abs(ops.subtract(a, b)), ops.add(ops.abs(ops.multiply(b, rtol)), atol))
        )
    limit = ops.add(ops.abs(ops.multiply(y, rtol)), atol)
    distance = node.emit(ops.abs(ops.subtract(x, y)))
    close = ops.logical_or(same, ops.logical_and(ops.is_finite(distance), ops.less_equal(distance, limit)))
    if equal_nan:
        close = ops.logical_or(close, ops.logical_and(is_nan(x), is_nan(y)))
    return close


@converts("nextafter")
def _nextafter(node: Node, self: Expr, other: Expr) -> Expr:
    x, y = (node.emit(each) for each in operands(node, self, other))
    dtype = x.known_element_type
    name = f"i{dtype.bits}"
    bits = node.emit(ops.bit_cast(x, to=name))
    toward_zero = ops.logical_or(
        ops.logical_and(ops.greater(x, 0), ops.less(y, x)), ops.logical_and(ops.less(x, 0), ops.greater(y, x))
    )
    stepped = ops.bit_cast(ops.where(toward_zero, ops.subtract(bits, 1), ops.add(bits, 1)), to=dtype.name)
    smallest = float(np.finfo(dtype.numpy).smallest_subnormal)
    from_zero = ops.where(ops.less(y, 0), -smallest, node.number(smallest, dtype))
    result = ops.where(ops.equal(x, 0), from_zero, stepped)
    result = ops.where(ops.equal(x, y), y, result)
    return ops.where(ops.logical_or(is_nan(x), is_nan(y)), math.nan, result)


@converts("frexp.Tensor")
def _frexp(node: Node, self: Expr) -> tuple[Expr, Expr]:
    """Returns 0 as the exponent of infinity and NaN."""
    x = node.emit(node.wide(self))
    dtype = x.known_element_type
    name, mantissa_bits = f"i{dtype.bits}", np.finfo(dtype.numpy).nmant
    bias = np.finfo(dtype.numpy).maxexp - 1
    is_regular = node.emit(ops.logical_and(ops.is_finite(x), ops.not_equal(x, 0)))
    # A subnormal number is multiplied by a power of 2 first.
    small = node.emit(ops.less(ops.abs(x), float(np.finfo(dtype.numpy).smallest_normal)))
    scaled = ops.where(small, ops.multiply(x, 2.0**mantissa_bits), x)
    bits = node.emit(ops.bit_cast(scaled, to=name))
    field = node.number(((1 << (dtype.bits - 1 - mantissa_bits)) - 1) << mantissa_bits, bits.known_element_type)
    half = node.number((bias - 1) << mantissa_bits, bits.known_element_type)
    mantissa = ops.bit_cast(ops.bitwise_or(ops.bitwise_and(bits, ops.bitwise_not(field)), half), to=dtype.name)
    stored = ops.divide(ops.bitwise_and(bits, field), 1 << mantissa_bits)
    shift = ops.multiply(ops.cast(small, to=name), mantissa_bits)
    exponent = ops.cast(ops.subtract(ops.subtract(stored, bias - 1), shift), to="i32")
    exponent = ops.where(is_regular, exponent, node.number(0, I32))
    return ops.where(is_regular, mantissa, x), exponent


def computed_dtype(*values: Any) -> DType:
    """Return the dtype to which values are promoted, or f32 for narrower floats."""
    dtype = promoted_dtype(values)
    return F32 if dtype.is_narrow_float else dtype
