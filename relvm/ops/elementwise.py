"""Elementwise operators, as rows.

A row declares an operator in two steps:

    floor = float_function("floor", np.floor, idempotent=True)(
        "The largest integer not above x, elementwise.", "ONNX Floor-13", "x=[-1.5, 0.5, 2.0] -> [-2.  0.  2.]"
    )

The first step states the name, the reference implementation in NumPy, the kernel and the algebraic traits.  The kernel
computes an element of the result from the elements of the arguments.  By default, it is the function of <math.h> that
has the name of the operator.  The second step is the documentation: the meaning, the source and an example.  The kind
of the operator, such as `float_function`, adds the type rule, and the documentation of arguments, result and errors.

Elementwise operators with attributes or with other type rules are in relvm/ops/where_cast.py.
"""

from __future__ import annotations

import functools
import inspect
import math
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

from relvm.data_classes import value_record
from relvm.ir.dtypes import BOOL, I64, U64
from relvm.ir.operator import Operator, Traits, expect, op
from relvm.ir.type_rules import broadcast, expect_bool, expect_float, expect_numeric, expect_same_dtype
from relvm.ir.types import TensorType
from relvm.kernels.loop_ir import (
    Binary,
    Intrinsic,
    Literal,
    Scalar,
    Select,
    Unary,
    integer_quotient,
    integer_remainder,
)
from relvm.kernels.lowering_rules import elementwise


@value_record
class Kind:
    """A kind of elementwise operator.

    type_rule(name, *types): the type rule, which names the operator in messages.
    doc: the documentation of the arguments, the result and the errors.
    """

    type_rule: Callable[..., TensorType]
    doc: str

    def __call__(
        self,
        name: str,
        numpy: Callable[..., Any],
        kernel: Callable[..., Scalar] | None = None,
        *,
        strings: bool = False,
        **traits: Any,
    ) -> Callable[[str, str, str], Operator]:
        """Return a function that declares an operator.  Its arguments are the meaning, the source and an example.

        name, numpy, strings: as for `op`.
        kernel: computes an element of the result from the elements of the arguments.  None stands for the function
        `name` of <math.h>.
        traits: the fields of `Traits`.
        """
        rule = functools.partial(self.type_rule, name)
        rule.__module__ = __name__  # unpickling an operator imports the module of its type rule
        call = f"{name}({', '.join(inspect.signature(rule).parameters)})"

        def declare(meaning: str, source: str, example: str) -> Operator:
            inputs, result = example.split(" -> ")
            lines = textwrap.indent(f'>>> run("{call}", {inputs})\n{result}', "    ")
            rule.__doc__ = f"{inspect.cleandoc(meaning)}\n\n{self.doc}\nSource: {source}.\n\nExamples:\n\n{lines}"
            lower = elementwise(kernel or c_function(name))
            return op(name, numpy=numpy, lower=lower, strings=strings, traits=Traits(**traits))(rule)

        return declare


def c_function(name: str) -> Callable[[Scalar], Scalar]:
    """Return the kernel that applies the function `name` of <math.h>."""
    return lambda x: Intrinsic(name, (x,), x.dtype)


def _float(name: str, x: TensorType) -> TensorType:
    expect_float(name, x=x)
    return x


def _number(name: str, x: TensorType) -> TensorType:
    expect_numeric(name, x=x)
    return x


def _bool(name: str, x: TensorType) -> TensorType:
    expect_bool(name, x=x)
    return x


def _numbers(name: str, x: TensorType, y: TensorType) -> TensorType:
    expect_numeric(name, x=x, y=y)
    expect_same_dtype(name, x=x, y=y)
    return broadcast(name, x.dtype, x, y)


def _integers(name: str, x: TensorType, y: TensorType) -> TensorType:
    expect_same_dtype(name, x=x, y=y)
    expect(x.known_dtype.is_integer, "{}: x has dtype {}, expected an integer dtype", name, x.dtype)
    return broadcast(name, x.dtype, x, y)


def _comparable(name: str, x: TensorType, y: TensorType) -> TensorType:
    expect_same_dtype(name, x=x, y=y)
    return broadcast(name, BOOL, x, y)


def _bools(name: str, x: TensorType, y: TensorType) -> TensorType:
    expect_bool(name, x=x, y=y)
    return broadcast(name, BOOL, x, y)


_UNARY = """x: {}.
Result: a tensor of the same type as x.
Raises RelvmTypeError if x has {}."""
_BINARY = """x, y: tensors of the same {} dtype, whose shapes broadcast.
Result: a tensor of that dtype, with the broadcast shape.
Raises RelvmTypeError if the dtypes differ or are not allowed.  Raises RelvmShapeError if the shapes do not
broadcast."""
_PREDICATE = """x, y: {} whose shapes broadcast.
Result: a bool tensor with the broadcast shape.
Raises RelvmTypeError if {}.  Raises RelvmShapeError if the shapes do not broadcast."""

float_function = Kind(_float, _UNARY.format("a tensor of a float dtype", "another dtype"))
angle_function = Kind(_float, _UNARY.format("a tensor of a float dtype, in radians", "another dtype"))
numeric_function = Kind(_number, _UNARY.format("a tensor of an integer or float dtype", "dtype bool"))
bool_function = Kind(_bool, _UNARY.format("a bool tensor", "another dtype"))
arithmetic = Kind(_numbers, _BINARY.format("integer or float"))
bitwise = Kind(_integers, _BINARY.format("integer"))
comparison = Kind(_comparable, _PREDICATE.format("tensors of the same dtype,", "the dtypes differ"))
logical = Kind(_bools, _PREDICATE.format("bool tensors", "an argument has another dtype"))


# Arithmetic.

add = arithmetic(
    "add", np.add, lambda x, y: x + y, commutative=True, neutral=lambda dtype: -0.0 if dtype.is_float else 0
)("x + y, elementwise; integers wrap around.", "ONNX Add-14", "x=[1.0, 2.0, 3.0], y=0.5 -> [1.5 2.5 3.5]")
subtract = arithmetic("subtract", np.subtract, lambda x, y: x - y, neutral=lambda dtype: 0)(
    "x - y, elementwise; integers wrap around.", "ONNX Sub-14", "x=[[1, 2], [3, 4]], y=[1, 1] -> [[0 1]\n [2 3]]"
)
multiply = arithmetic("multiply", np.multiply, lambda x, y: x * y, commutative=True, neutral=lambda dtype: 1)(
    "x * y, elementwise; integers wrap around.",
    "ONNX Mul-14",
    "x=[[1.0], [2.0]], y=[1.0, 10.0, 100.0] -> [[  1.  10. 100.]\n [  2.  20. 200.]]",
)


def _numpy_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f":
        return x / y
    quotient = np.floor_divide(x, y)  # this is 0 where y is 0
    inexact = (y != 0) & (quotient * y != x)
    return quotient + (inexact & ((x < 0) != (y < 0))).astype(x.dtype)


def _divide(x: Scalar, y: Scalar) -> Scalar:
    return x / y if x.dtype.is_float else integer_quotient(x, y)


divide = arithmetic("divide", _numpy_divide, _divide, neutral=lambda dtype: 1)(
    """x / y, elementwise.  Integer quotients are rounded toward zero.  The quotient of an integer and 0 is 0.  The
    quotient of the smallest integer and -1 is the smallest integer.""",
    "ONNX Div-14; NumPy for the integer cases that ONNX does not define",
    "x=[7, -7], y=[2, 2] -> [ 3 -3]",
)


def _remainder(x: Scalar, y: Scalar) -> Scalar:
    return Intrinsic("fmod", (x, y), x.dtype) if x.dtype.is_float else integer_remainder(x, y)


remainder = arithmetic("remainder", np.fmod, _remainder)(
    "x - trunc(x / y) * y, elementwise.  The result has the sign of x.  For integers, it is 0 where y is 0.",
    "ONNX Mod-13 (fmod=1); special float values: C11 F.10.7.1",
    "x=[7, -7], y=[3, 3] -> [ 1 -1]",
)


def _modulo(x: Scalar, y: Scalar) -> Scalar:
    rest = _remainder(x, y)
    if not x.dtype.is_float and not x.dtype.is_signed:
        return rest
    other_side = rest.ne(0).logical_and((rest < 0).ne(y < 0))
    moved = Select(other_side, rest + y, rest)
    if x.dtype.is_float:  # a result of zero has the sign of y
        moved = Select(rest.eq(0), Intrinsic("copysign", (rest, y), x.dtype), moved)
    return moved


modulo = arithmetic("modulo", np.mod, _modulo)(
    "x - floor(x / y) * y, elementwise.  The result has the sign of y.  For integers, it is 0 where y is 0.",
    "ONNX Mod-13 (fmod=0); floats: numpy.mod",
    "x=[7, -7], y=[3, 3] -> [1 2]",
)


def _numpy_power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f":
        return np.power(x, y)
    positive = np.power(x, np.where(y < 0, 0, y).astype(y.dtype))
    reciprocal = np.where(x == 1, 1, np.where(x == -1, 1 - 2 * (y % 2).astype(np.int64), 0))
    return np.where(y < 0, reciprocal.astype(x.dtype), positive)


def _power(x: Scalar, y: Scalar) -> Scalar:
    """Return x to the power of y.  If y is the constant 2 or 3, compute the power by multiplication."""
    match y:
        case Literal(value=2):
            return x * x
        case Literal(value=3):
            return x * x * x
    if x.dtype.is_float:
        return Intrinsic("pow", (x, y), x.dtype)
    wide = I64 if x.dtype.is_signed else U64
    return Intrinsic(f"rvm_power_{wide}", (x.to(wide), y.to(wide)), wide).to(x.dtype)


power = arithmetic("power", _numpy_power, _power, neutral=lambda dtype: 1)(
    """x to the power of y, elementwise.

    Integers wrap around.  Where y is a negative integer, the result is the exact power rounded toward zero, or 0 if x
    is 0.  If y is the constant 2 or 3, a float power is computed as x * x or x * x * x.  A cube is then rounded after
    each multiplication, so it can differ slightly from the correctly rounded result.""",
    "ONNX Pow-15; special float values: C11 F.10.4.4",
    "x=[1.0, 2.0, 3.0], y=2.0 -> [1. 4. 9.]",
)


def _extreme(is_first: Callable[[Scalar, Scalar], Scalar]) -> Callable[[Scalar, Scalar], Scalar]:
    def point(x: Scalar, y: Scalar) -> Scalar:
        chosen = is_first(x, y)
        return Select(chosen.logical_or(x.ne(x)) if x.dtype.is_float else chosen, x, y)

    return point


maximum = arithmetic(
    "maximum", np.maximum, _extreme(lambda x, y: x > y), commutative=True, neutral=lambda dtype: dtype.lowest
)(
    "The larger of x and y, elementwise; NaN where x or y is NaN.",
    "ONNX Max-13; NaN: NumPy",
    "x=[1, 5, 3], y=[4, 2, 3] -> [4 5 3]",
)
minimum = arithmetic(
    "minimum", np.minimum, _extreme(lambda x, y: x < y), commutative=True, neutral=lambda dtype: dtype.highest
)(
    "The smaller of x and y, elementwise; NaN where x or y is NaN.",
    "ONNX Min-13; NaN: NumPy",
    "x=[1, 5, 3], y=[4, 2, 3] -> [1 2 3]",
)

# Comparisons and logic.

equal = comparison("equal", np.equal, lambda x, y: x.eq(y), strings=True)(
    "x == y, elementwise; false where x or y is NaN.",
    "ONNX Equal-13, IEEE 754",
    "x=[1, 2, 3], y=[1, 5, 3] -> [ True False  True]",
)
not_equal = comparison("not_equal", np.not_equal, lambda x, y: x.ne(y), strings=True)(
    "x != y, elementwise; true where x or y is NaN.", "IEEE 754", "x=[1, 2, 3], y=[1, 5, 3] -> [False  True False]"
)
less = comparison("less", np.less, lambda x, y: x < y)(
    "x < y, elementwise; false where x or y is NaN.",
    "ONNX Less-13, IEEE 754",
    "x=[1.0, 2.0, 3.0], y=2.0 -> [ True False False]",
)
less_equal = comparison("less_equal", np.less_equal, lambda x, y: x <= y)(
    "x <= y, elementwise; false where x or y is NaN.",
    "ONNX LessOrEqual-16, IEEE 754",
    "x=[1.0, 2.0, 3.0], y=2.0 -> [ True  True False]",
)
greater = comparison("greater", np.greater, lambda x, y: x > y)(
    "x > y, elementwise; false where x or y is NaN.",
    "ONNX Greater-13, IEEE 754",
    "x=[1.0, 2.0, 3.0], y=2.0 -> [False False  True]",
)
greater_equal = comparison("greater_equal", np.greater_equal, lambda x, y: x >= y)(
    "x >= y, elementwise; false where x or y is NaN.",
    "ONNX GreaterOrEqual-16",
    "x=[1.0, 2.0, 3.0], y=2.0 -> [False  True  True]",
)
logical_and = logical(
    "logical_and", np.logical_and, lambda x, y: x.logical_and(y), commutative=True, neutral=lambda dtype: True
)("x and y, elementwise.", "ONNX And-7", "x=[True, True, False], y=[True, False, False] -> [ True False False]")
logical_or = logical(
    "logical_or", np.logical_or, lambda x, y: x.logical_or(y), commutative=True, neutral=lambda dtype: False
)("x or y, elementwise.", "ONNX Or-7", "x=[True, True, False], y=[True, False, False] -> [ True  True False]")
logical_not = bool_function("logical_not", np.logical_not, lambda x: Unary("!", x, BOOL), involution=True)(
    "not x, elementwise.", "ONNX Not-1", "x=[True, False] -> [False  True]"
)

# Bits.


def _bitwise(symbol: str) -> Callable[[Scalar, Scalar], Scalar]:
    return lambda x, y: Binary(symbol, x, y, x.dtype)


bitwise_and = bitwise(
    "bitwise_and",
    np.bitwise_and,
    _bitwise("&"),
    commutative=True,
    neutral=lambda dtype: -1 if dtype.is_signed else dtype.highest,
)("Bitwise AND of x and y, elementwise.", "ONNX BitwiseAnd-18", "x=[12, 10], y=[10, 6] -> [8 2]")
bitwise_or = bitwise("bitwise_or", np.bitwise_or, _bitwise("|"), commutative=True, neutral=lambda dtype: 0)(
    "Bitwise OR of x and y, elementwise.", "ONNX BitwiseOr-18", "x=[12, 10], y=[10, 6] -> [14 14]"
)
bitwise_xor = bitwise("bitwise_xor", np.bitwise_xor, _bitwise("^"), commutative=True, neutral=lambda dtype: 0)(
    "Bitwise exclusive OR of x and y, elementwise.", "ONNX BitwiseXor-18", "x=[12, 10], y=[10, 6] -> [ 6 12]"
)


def _is_inside(x: Scalar, count: Scalar) -> Scalar:
    inside = count < x.dtype.bits
    return (count >= 0).logical_and(inside) if x.dtype.is_signed else inside


def _shift_left(x: Scalar, y: Scalar) -> Scalar:
    return Select(_is_inside(x, y), Binary("<<", x, y, x.dtype), Literal(0, x.dtype))


shift_left = bitwise("shift_left", np.left_shift, _shift_left, neutral=lambda dtype: 0)(
    "Left shift of x by y bits, elementwise; 0 where y is negative or at least the number of bits of the dtype.",
    "ONNX BitShift-28",
    "x=np.uint8([1, 3]), y=np.uint8([4, 1]) -> [16  6]",
)


def _shift_right(x: Scalar, y: Scalar) -> Scalar:
    sign = Select(x < 0, Literal(-1, x.dtype), Literal(0, x.dtype)) if x.dtype.is_signed else Literal(0, x.dtype)
    return Select(_is_inside(x, y), Binary(">>", x, y, x.dtype), sign)


shift_right = bitwise("shift_right", np.right_shift, _shift_right, neutral=lambda dtype: 0)(
    """Right shift of x by y bits, elementwise, arithmetic for signed integers.  Where y is negative or at least the
    number of bits, the result is -1 for negative x, otherwise 0.""",
    "ONNX BitShift-28",
    "x=np.uint8([16, 7]), y=np.uint8([4, 1]) -> [1 3]",
)

# Functions of one number.

negative = numeric_function("negative", np.negative, lambda x: -x, involution=True)(
    "-x, elementwise; integers wrap around.", "ONNX Neg-13", "x=[1.0, -2.0] -> [-1.  2.]"
)


def _abs(x: Scalar) -> Scalar:
    if x.dtype.is_float:
        return Intrinsic("fabs", (x,), x.dtype)
    return Select(x < 0, -x, x) if x.dtype.is_signed else x


abs_ = numeric_function("abs", np.abs, _abs, idempotent=True)(
    "The absolute value, elementwise; the smallest signed integer stays negative.",
    "ONNX Abs-13",
    "x=[1.0, -2.0] -> [1. 2.]",
)


def _sign(x: Scalar) -> Scalar:
    zero = x if x.dtype.is_float else Literal(0, x.dtype)  # for floats, so that NaN propagates
    below = Select(x < 0, Literal(-1, x.dtype), zero) if x.dtype.is_signed else zero
    return Select(x > 0, Literal(1, x.dtype), below)


sign = numeric_function("sign", np.sign, _sign, idempotent=True)(
    "The sign, elementwise: 1 where x > 0, -1 where x < 0, 0 where x is 0, NaN where x is NaN.",
    "ONNX Sign-13",
    "x=[-3.0, 0.0, 5.0] -> [-1.  0.  1.]",
)
relu = numeric_function(
    "relu", lambda x: np.maximum(x, 0), lambda x: Select(x < 0, Literal(0, x.dtype), x), idempotent=True
)("max(x, 0), elementwise; NaN stays NaN.", "ONNX Relu-14", "x=[-1.0, 0.0, 2.0] -> [0. 0. 2.]")
floor = float_function("floor", np.floor, idempotent=True)(
    "The largest integer not above x, elementwise.", "ONNX Floor-13", "x=[-1.5, 0.5, 2.0] -> [-2.  0.  2.]"
)
ceil = float_function("ceil", np.ceil, idempotent=True)(
    "The smallest integer not below x, elementwise.", "ONNX Ceil-13", "x=[-1.5, 0.5, 2.0] -> [-1.  1.  2.]"
)
round_ = float_function("round", np.rint, c_function("rint"), idempotent=True)(
    "The integer nearest to x, elementwise; ties to even.", "ONNX Round-11", "x=[0.5, 1.5, 2.4] -> [0. 2. 2.]"
)
reciprocal = float_function("reciprocal", np.reciprocal, lambda x: Literal(1, x.dtype) / x)(
    "1 / x, elementwise.", "ONNX Reciprocal-13", "x=[1.0, 2.0, -4.0] -> [ 1.    0.5  -0.25]"
)
sqrt = float_function("sqrt", np.sqrt)(
    "The square root, elementwise; NaN where x is below 0.",
    "ONNX Sqrt-13, IEEE 754",
    "x=[1.0, 2.0, 4.0] -> [1.    1.414 2.   ]",
)


def _sigmoid(x: Scalar) -> Scalar:
    return Literal(1, x.dtype) / (Intrinsic("exp", (-x,), x.dtype) + 1)


sigmoid = float_function("sigmoid", lambda x: 1 / (1 + np.exp(-x)), _sigmoid)(
    "1 / (1 + exp(-x)), elementwise.", "ONNX Sigmoid-13", "x=[-1.0, 0.0, 1.0] -> [0.269 0.5   0.731]"
)
_numpy_erf = np.vectorize(math.erf, otypes=[np.float64])
erf = float_function("erf", _numpy_erf)(
    "The error function, 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x, elementwise.",
    "ONNX Erf-13, C11 7.12.8.1",
    "x=[-1.0, 0.0, 1.0] -> [-0.843  0.     0.843]",
)

# Exponential, trigonometric and hyperbolic functions.

exp = float_function("exp", np.exp)(
    "e to the power of x, elementwise.", "ONNX Exp-13, C11 F.10.3.1", "x=[0.0, 1.0, -1.0] -> [1.    2.718 0.368]"
)
log = float_function("log", np.log)(
    "The natural logarithm, elementwise; -inf where x is 0, NaN where x is below 0.",
    "ONNX Log-13, C11 F.10.3.7",
    "x=[1.0, 2.0, 10.0] -> [0.    0.693 2.303]",
)
log1p = float_function("log1p", np.log1p)(
    """The natural logarithm of 1 + x, elementwise, accurate for x near 0.  It is -inf where x is -1, and NaN where x
    is below -1.""",
    "C11 7.12.6.9, F.10.3.9",
    "x=[0.0, 1.0] -> [0.    0.693]",
)
sin = angle_function("sin", np.sin)("The sine, elementwise.", "ONNX Sin-7", "x=[0.0, 1.0, 2.0] -> [0.    0.841 0.909]")
cos = angle_function("cos", np.cos)(
    "The cosine, elementwise.", "ONNX Cos-7", "x=[0.0, 1.0, 2.0] -> [ 1.     0.54  -0.416]"
)
tan = angle_function("tan", np.tan)("The tangent, elementwise.", "ONNX Tan-22", "x=[0.0, 1.0] -> [0.    1.557]")
asin = float_function("asin", np.arcsin)(
    "The inverse sine in radians, elementwise; NaN outside [-1, 1].",
    "ONNX Asin-22",
    "x=[-1.0, 0.0, 0.5] -> [-1.571  0.     0.524]",
)
acos = float_function("acos", np.arccos)(
    "The inverse cosine in radians, elementwise; NaN outside [-1, 1].",
    "ONNX Acos-22",
    "x=[-1.0, 0.0, 1.0] -> [3.142 1.571 0.   ]",
)
atan = float_function("atan", np.arctan)(
    "The inverse tangent in radians, elementwise, in [-pi / 2, pi / 2].",
    "ONNX Atan-22",
    "x=[-1.0, 0.0, 1.0] -> [-0.785  0.     0.785]",
)
sinh = float_function("sinh", np.sinh)(
    "The hyperbolic sine, elementwise.", "ONNX Sinh-22", "x=[-1.0, 0.0, 1.0] -> [-1.175  0.     1.175]"
)
cosh = float_function("cosh", np.cosh)(
    "The hyperbolic cosine, elementwise.", "ONNX Cosh-22", "x=[-1.0, 0.0, 1.0] -> [1.543 1.    1.543]"
)
tanh = float_function("tanh", np.tanh)(
    "The hyperbolic tangent, elementwise.", "ONNX Tanh-13", "x=[-1.0, 0.0, 1.0] -> [-0.762  0.     0.762]"
)
asinh = float_function("asinh", np.arcsinh)(
    "The inverse hyperbolic sine, elementwise.", "ONNX Asinh-22", "x=[-1.0, 0.0, 1.0] -> [-0.881  0.     0.881]"
)
acosh = float_function("acosh", np.arccosh)(
    "The inverse hyperbolic cosine, elementwise; NaN where x is below 1.",
    "ONNX Acosh-22",
    "x=[1.0, 2.0] -> [0.    1.317]",
)
atanh = float_function("atanh", np.arctanh)(
    "The inverse hyperbolic tangent, elementwise; infinite where x is -1 or 1, NaN outside [-1, 1].",
    "ONNX Atanh-22",
    "x=[-0.5, 0.0, 0.5] -> [-0.549  0.     0.549]",
)
