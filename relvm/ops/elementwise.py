"""Elementwise operators, as rows.

A row declares an operator in two steps:

    floor = float_function("floor", np.floor, idempotent=True)(
        "The largest integer not above x, elementwise.", "ONNX Floor-13", "x=[-1.5, 0.5, 2.0] -> [-2.  0.  2.]"
    )

The first step states the name, the reference implementation in NumPy, the kernel and the algebraic traits.  The kernel
computes an element of the result from the elements of the arguments.  By default, it is the function of loop IR that
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
from relvm.ir.dtypes import BOOL, I64, U64, DType, dtype_of
from relvm.ir.loop_ir import Literal, Operation, Scalar, integer_quotient, integer_remainder, select
from relvm.ir.operator import Operator, Traits, expect, op
from relvm.ir.type_rules import (
    broadcast,
    expect_bool,
    expect_float,
    expect_numeric,
    expect_same_dtype,
    expect_tensor,
    with_dtype,
)
from relvm.ir.types import TensorType
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
        `name` of loop IR.
        traits: the fields of `Traits`.
        """
        rule = functools.partial(self.type_rule, name)
        rule.__module__ = __name__  # unpickling an operator imports the module of its type rule
        call = f"{name}({', '.join(inspect.signature(rule).parameters)})"

        def declare(meaning: str, source: str, example: str) -> Operator:
            inputs, result = example.split(" -> ")
            lines = textwrap.indent(f'>>> run("{call}", {inputs})\n{result}', "    ")
            rule.__doc__ = f"{inspect.cleandoc(meaning)}\n\n{self.doc}\nSource: {source}.\n\nExamples:\n\n{lines}"
            lower = elementwise(kernel or operation(name))
            return op(name, numpy=numpy, lower=lower, strings=strings, traits=Traits(**traits))(rule)

        return declare


def operation(function: str) -> Callable[..., Scalar]:
    """Return the kernel that applies a function of loop IR."""
    return lambda *operands: Operation(function, operands, operands[0].dtype)


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


def _integer(name: str, x: TensorType) -> TensorType:
    expect_tensor(name, x=x)
    expect(x.known_dtype.is_integer, "{}: x has dtype {}, expected an integer dtype", name, x.dtype)
    return x


def _floats(name: str, x: TensorType, y: TensorType) -> TensorType:
    expect_float(name, x=x, y=y)
    expect_same_dtype(name, x=x, y=y)
    return broadcast(name, x.dtype, x, y)


def _float_predicate(name: str, x: TensorType) -> TensorType:
    expect_float(name, x=x)
    return with_dtype(x, BOOL)


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
integer_function = Kind(_integer, _UNARY.format("a tensor of an integer dtype", "another dtype"))
float_arithmetic = Kind(_floats, _BINARY.format("float"))
float_predicate = Kind(
    _float_predicate,
    """x: a tensor of a float dtype.
Result: a bool tensor with the shape of x.
Raises RelvmTypeError if x has another dtype.""",
)
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
    return Operation("fmod", (x, y), x.dtype) if x.dtype.is_float else integer_remainder(x, y)


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
    moved = select(other_side, rest + y, rest)
    if x.dtype.is_float:  # a result of zero has the sign of y
        moved = select(rest.eq(0), Operation("copysign", (rest, y), x.dtype), moved)
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
        return operation("power")(x, y)
    wide = I64 if x.dtype.is_signed else U64
    return Operation(f"rvm_power_{wide}", (x.to(wide), y.to(wide)), wide).to(x.dtype)


power = arithmetic("power", _numpy_power, _power, neutral=lambda dtype: 1)(
    """x to the power of y, elementwise.

    Integers wrap around.  Where y is a negative integer, the result is the exact power rounded toward zero, or 0 if x
    is 0.  If y is the constant 2 or 3, a float power is computed as x * x or x * x * x.  A cube is then rounded after
    each multiplication, so it can differ slightly from the correctly rounded result.""",
    "ONNX Pow-15; special float values: C11 F.10.4.4",
    "x=[1.0, 2.0, 3.0], y=2.0 -> [1. 4. 9.]",
)


_Comparison = Callable[[Scalar, Scalar], Scalar]


def _extreme(is_beyond: _Comparison, reaches: _Comparison) -> Callable[[Scalar, Scalar], Scalar]:
    """Return the function for `maximum` or `minimum`: x if is_beyond(x, y) or x is NaN, otherwise y.

    reaches(x, y): whether x and y are equal, or x is beyond y.
    """

    def is_number(scalar: Scalar) -> bool:
        return not scalar.dtype.is_float or (isinstance(scalar, Literal) and scalar.value == scalar.value)

    def point(x: Scalar, y: Scalar) -> Scalar:
        if is_number(x):
            return select(is_beyond(x, y), x, y)
        if is_number(y):  # comparisons are false if x is NaN; processors have an instruction for the strict comparison
            is_zero = isinstance(y, Literal) and y.value == 0  # -0 and 0 are equal, but have different bits
            return select((reaches if is_zero else is_beyond)(y, x), y, x)
        return select(is_beyond(x, y).logical_or(x.ne(x)), x, y)

    return point


maximum = arithmetic(
    "maximum",
    np.maximum,
    _extreme(lambda x, y: x > y, lambda x, y: x >= y),
    commutative=True,
    neutral=lambda dtype: dtype.lowest,
)(
    "The larger of x and y, elementwise; NaN where x or y is NaN.",
    "ONNX Max-13; NaN: NumPy",
    "x=[1, 5, 3], y=[4, 2, 3] -> [4 5 3]",
)
minimum = arithmetic(
    "minimum",
    np.minimum,
    _extreme(lambda x, y: x < y, lambda x, y: x <= y),
    commutative=True,
    neutral=lambda dtype: dtype.highest,
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
logical_not = bool_function("logical_not", np.logical_not, lambda x: x.logical_not(), involution=True)(
    "not x, elementwise.", "ONNX Not-1", "x=[True, False] -> [False  True]"
)

# Bits.

bitwise_and = bitwise(
    "bitwise_and",
    np.bitwise_and,
    operation("and"),
    commutative=True,
    neutral=lambda dtype: -1 if dtype.is_signed else dtype.highest,
)("Bitwise AND of x and y, elementwise.", "ONNX BitwiseAnd-18", "x=[12, 10], y=[10, 6] -> [8 2]")
bitwise_or = bitwise("bitwise_or", np.bitwise_or, operation("or"), commutative=True, neutral=lambda dtype: 0)(
    "Bitwise OR of x and y, elementwise.", "ONNX BitwiseOr-18", "x=[12, 10], y=[10, 6] -> [14 14]"
)
bitwise_xor = bitwise("bitwise_xor", np.bitwise_xor, operation("xor"), commutative=True, neutral=lambda dtype: 0)(
    "Bitwise exclusive OR of x and y, elementwise.", "ONNX BitwiseXor-18", "x=[12, 10], y=[10, 6] -> [ 6 12]"
)


def _is_inside(x: Scalar, count: Scalar) -> Scalar:
    inside = count < x.dtype.bits
    return (count >= 0).logical_and(inside) if x.dtype.is_signed else inside


def _shift_left(x: Scalar, y: Scalar) -> Scalar:
    return select(_is_inside(x, y), operation("shl")(x, y), Literal(0, x.dtype))


shift_left = bitwise("shift_left", np.left_shift, _shift_left, neutral=lambda dtype: 0)(
    "Left shift of x by y bits, elementwise; 0 where y is negative or at least the number of bits of the dtype.",
    "ONNX BitShift-28",
    "x=np.uint8([1, 3]), y=np.uint8([4, 1]) -> [16  6]",
)


def _shift_right(x: Scalar, y: Scalar) -> Scalar:
    sign = select(x < 0, Literal(-1, x.dtype), Literal(0, x.dtype)) if x.dtype.is_signed else Literal(0, x.dtype)
    return select(_is_inside(x, y), operation("shr")(x, y), sign)


shift_right = bitwise("shift_right", np.right_shift, _shift_right, neutral=lambda dtype: 0)(
    """Right shift of x by y bits, elementwise, arithmetic for signed integers.  Where y is negative or at least the
    number of bits, the result is -1 for negative x, otherwise 0.""",
    "ONNX BitShift-28",
    "x=np.uint8([16, 7]), y=np.uint8([4, 1]) -> [1 3]",
)


def _unsigned(dtype: DType) -> DType:
    """Return the unsigned dtype of the same size as an integer dtype."""
    return dtype_of(f"u{dtype.bits}")


def _shift_right_logical(x: Scalar, y: Scalar) -> Scalar:
    unsigned = _unsigned(x.dtype)
    shifted = operation("shr")(x.to(unsigned), y.to(unsigned)).to(x.dtype)
    return select(_is_inside(x, y), shifted, Literal(0, x.dtype))


def _numpy_shift_right_logical(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    unsigned = f"u{x.dtype.itemsize}"
    return np.right_shift(x.view(unsigned), y.view(unsigned)).view(x.dtype)


shift_right_logical = bitwise(
    "shift_right_logical", _numpy_shift_right_logical, _shift_right_logical, neutral=lambda dtype: 0
)(
    """Right shift of x by y bits, elementwise, which fills with zeros.  The result is 0 where y is negative or at least
    the number of bits.""",
    "StableHLO shift_right_logical",
    "x=np.int8([-1, 16]), y=np.int8([4, 1]) -> [15  8]",
)
bitwise_not = integer_function(
    "bitwise_not",
    np.bitwise_not,
    lambda x: operation("xor")(x, Literal(-1 if x.dtype.is_signed else x.dtype.highest, x.dtype)),
    involution=True,
)("Bitwise NOT of x, elementwise.", "ONNX BitwiseNot-18", "x=[0, 5] -> [-1 -6]")

_FIVES, _THREES, _HALF_BYTES = 0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F


def _bits_as_u64(x: Scalar) -> Scalar:
    """Return the bits of an integer as a u64, with zeros above."""
    return x.to(_unsigned(x.dtype)).to(U64)


def _set_bits(x: Scalar) -> Scalar:
    """Return the number of bits of a u64 that are 1."""
    and_, shift = operation("and"), operation("shr")

    def right(value: Scalar, bits: int) -> Scalar:
        return shift(value, Literal(bits, U64))

    def masked(value: Scalar, mask: int) -> Scalar:
        return and_(value, Literal(mask, U64))

    pairs = x - masked(right(x, 1), _FIVES)
    nibbles = masked(pairs, _THREES) + masked(right(pairs, 2), _THREES)
    total = masked(nibbles + right(nibbles, 4), _HALF_BYTES)
    for bits in (8, 16, 32):
        total = total + right(total, bits)
    return masked(total, 0x7F)


def _count_leading_zeros(x: Scalar) -> Scalar:
    smeared = _bits_as_u64(x)
    for bits in (1, 2, 4, 8, 16, 32):
        smeared = operation("or")(smeared, operation("shr")(smeared, Literal(bits, U64)))
    return (Literal(x.dtype.bits, U64) - _set_bits(smeared)).to(x.dtype)


def _numpy_population_count(x: np.ndarray) -> np.ndarray:
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(x.dtype)


def _numpy_count_leading_zeros(x: np.ndarray) -> np.ndarray:
    smeared = x.view(f"u{x.dtype.itemsize}")
    for bits in (1, 2, 4, 8, 16, 32):
        if bits < 8 * x.dtype.itemsize:
            smeared = smeared | (smeared >> smeared.dtype.type(bits))
    return (8 * x.dtype.itemsize - np.bitwise_count(smeared).astype(np.int64)).astype(x.dtype)


population_count = integer_function(
    "population_count", _numpy_population_count, lambda x: _set_bits(_bits_as_u64(x)).to(x.dtype)
)("The number of bits that are 1, elementwise.", "StableHLO popcnt", "x=np.int8([-1, 5, 0]) -> [8 2 0]")
count_leading_zeros = integer_function("count_leading_zeros", _numpy_count_leading_zeros, _count_leading_zeros)(
    "The number of bits above the highest bit that is 1, elementwise; the number of all bits where x is 0.",
    "StableHLO count_leading_zeros",
    "x=np.int8([1, -1, 0]) -> [7 0 8]",
)

# Functions of one number.

negative = numeric_function("negative", np.negative, lambda x: -x, involution=True)(
    "-x, elementwise; integers wrap around.", "ONNX Neg-13", "x=[1.0, -2.0] -> [-1.  2.]"
)


def _abs(x: Scalar) -> Scalar:
    if x.dtype.is_float:
        return operation("abs")(x)
    return select(x < 0, -x, x) if x.dtype.is_signed else x


abs_ = numeric_function("abs", np.abs, _abs, idempotent=True)(
    "The absolute value, elementwise; the smallest signed integer stays negative.",
    "ONNX Abs-13",
    "x=[1.0, -2.0] -> [1. 2.]",
)


def _sign(x: Scalar) -> Scalar:
    zero = x if x.dtype.is_float else Literal(0, x.dtype)  # for floats, so that NaN propagates
    below = select(x < 0, Literal(-1, x.dtype), zero) if x.dtype.is_signed else zero
    return select(x > 0, Literal(1, x.dtype), below)


sign = numeric_function("sign", np.sign, _sign, idempotent=True)(
    "The sign, elementwise: 1 where x > 0, -1 where x < 0, 0 where x is 0, NaN where x is NaN.",
    "ONNX Sign-13",
    "x=[-3.0, 0.0, 5.0] -> [-1.  0.  1.]",
)
relu = numeric_function(
    "relu", lambda x: np.maximum(x, 0), lambda x: select(x < 0, Literal(0, x.dtype), x), idempotent=True
)("max(x, 0), elementwise; NaN stays NaN.", "ONNX Relu-14", "x=[-1.0, 0.0, 2.0] -> [0. 0. 2.]")
floor = float_function("floor", np.floor, idempotent=True)(
    "The largest integer not above x, elementwise.", "ONNX Floor-13", "x=[-1.5, 0.5, 2.0] -> [-2.  0.  2.]"
)
ceil = float_function("ceil", np.ceil, idempotent=True)(
    "The smallest integer not below x, elementwise.", "ONNX Ceil-13", "x=[-1.5, 0.5, 2.0] -> [-1.  1.  2.]"
)
round_ = float_function("round", np.rint, operation("round"), idempotent=True)(
    "The integer nearest to x, elementwise; ties to even.", "ONNX Round-11", "x=[0.5, 1.5, 2.4] -> [0. 2. 2.]"
)


def _numpy_round_away(x: np.ndarray) -> np.ndarray:
    whole = np.trunc(x)
    return np.copysign(np.abs(whole) + (np.abs(x - whole) >= 0.5), x).astype(x.dtype)


round_away = float_function("round_away", _numpy_round_away, operation("round_away"), idempotent=True)(
    "The integer nearest to x, elementwise; ties away from zero.",
    "C11 7.12.9.6 (round)",
    "x=[0.5, -1.5, 2.4] -> [ 1. -2.  2.]",
)
is_finite = float_predicate("is_finite", np.isfinite, lambda x: (x - x).eq(0))(
    "Whether x is neither infinite nor NaN, elementwise.",
    "StableHLO is_finite",
    "x=[1.0, np.inf, np.nan] -> [ True False False]",
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
    return Literal(1, x.dtype) / (Operation("exp", (-x,), x.dtype) + 1)


sigmoid = float_function("sigmoid", lambda x: 1 / (1 + np.exp(-x)), _sigmoid)(
    "1 / (1 + exp(-x)), elementwise.", "ONNX Sigmoid-13", "x=[-1.0, 0.0, 1.0] -> [0.269 0.5   0.731]"
)
_numpy_erf = np.vectorize(math.erf, otypes=[np.float64])
erf = float_function("erf", _numpy_erf)(
    "The error function, 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x, elementwise.",
    "ONNX Erf-13, C11 7.12.8.1",
    "x=[-1.0, 0.0, 1.0] -> [-0.843  0.     0.843]",
)

_numpy_erfc = np.vectorize(math.erfc, otypes=[np.float64])
erfc = float_function("erfc", _numpy_erfc)(
    "The complementary error function, 1 - erf(x), elementwise, accurate where erf(x) is near 1.",
    "C11 7.12.8.2",
    "x=[-1.0, 0.0, 1.0] -> [1.843 1.    0.157]",
)
cbrt = float_function("cbrt", np.cbrt)(
    "The cube root, elementwise.", "C11 7.12.7.1", "x=[8.0, -1.0, 2.0] -> [ 2.   -1.    1.26]"
)

# Exponential, trigonometric and hyperbolic functions.


def numpy_exp_ftz(x: np.ndarray) -> np.ndarray:
    least = -708.3 if x.dtype == np.float64 else np.float32(-86.9)  # those of rvm_exp_ftz_f64 and rvm_exp_ftz_f32
    return np.where(x < least, np.zeros((), x.dtype), np.exp(x))


exp = float_function("exp", np.exp)(
    "e to the power of x, elementwise.", "ONNX Exp-13, C11 F.10.3.1", "x=[0.0, 1.0, -1.0] -> [1.    2.718 0.368]"
)
exp_ftz = float_function("exp_ftz", numpy_exp_ftz)(
    """e to the power of x, or 0 where x is below -86.9 (for f64: -708.3), elementwise.  So no result of f32 or f64 is
    subnormal.  The name means "flush to zero": arithmetic on subnormal numbers is slow on many processors.""",
    "C11 F.10.3.1, 5.2.4.2.2",
    "x=[0.0, -1.0, -100.0] -> [1.    0.368 0.   ]",
)
expm1 = float_function("expm1", np.expm1)(
    "e to the power of x, minus 1, elementwise, accurate for x near 0.",
    "C11 7.12.6.3, F.10.3.3",
    "x=[0.0, 1.0, -1.0] -> [ 0.     1.718 -0.632]",
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
atan2 = float_arithmetic("atan2", np.arctan2, operation("atan2"))(
    "The angle in radians of the point (y, x), elementwise: the inverse tangent of x / y in the quadrant of the point.",
    "C11 7.12.4.4, F.10.1.4",
    "x=[1.0, -1.0], y=[1.0, -1.0] -> [ 0.785 -2.356]",
)
