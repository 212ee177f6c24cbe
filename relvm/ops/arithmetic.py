"""Elementwise arithmetic of two tensors."""

from __future__ import annotations

import numpy as np

from relvm.ir.dtypes import I64, U64
from relvm.ir.loop_ir import Literal, Operation, Scalar, integer_quotient, select
from relvm.ir.operator import Traits, op
from relvm.ir.type_rules import broadcast, expect_numeric, expect_same_dtype
from relvm.ir.types import TensorType
from relvm.kernels.lowering_rules import elementwise


def _binary(name: str, x: TensorType, y: TensorType) -> TensorType:
    expect_numeric(name, x=x, y=y)
    expect_same_dtype(name, x=x, y=y)
    return broadcast(name, x.dtype, x, y)


@op(
    "add",
    numpy=np.add,
    lower=elementwise(lambda x, y: x + y),
    traits=Traits(commutative=True, neutral=lambda dtype: -0.0 if dtype.is_float else 0),
)
def add(x: TensorType, y: TensorType) -> TensorType:
    """x + y, elementwise; integers wrap around.

    x, y: tensors of the same integer or float dtype, whose shapes broadcast.
    Result: a tensor of that dtype, with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ or are not allowed.  Raises RelvmShapeError if the shapes do not
    broadcast.
    Source: ONNX Add-14.

    Examples:

        >>> run("add(x, y)", x=[1.0, 2.0, 3.0], y=0.5)
        [1.5 2.5 3.5]
    """
    return _binary("add", x, y)


@op("subtract", numpy=np.subtract, lower=elementwise(lambda x, y: x - y), traits=Traits(neutral=lambda dtype: 0))
def subtract(x: TensorType, y: TensorType) -> TensorType:
    """x - y, elementwise; integers wrap around.

    x, y: tensors of the same integer or float dtype, whose shapes broadcast.
    Result: a tensor of that dtype, with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ or are not allowed.  Raises RelvmShapeError if the shapes do not
    broadcast.
    Source: ONNX Sub-14.

    Examples:

        >>> run("subtract(x, y)", x=[[1, 2], [3, 4]], y=[1, 1])
        [[0 1]
         [2 3]]
    """
    return _binary("subtract", x, y)


@op(
    "multiply",
    numpy=np.multiply,
    lower=elementwise(lambda x, y: x * y),
    traits=Traits(commutative=True, neutral=lambda dtype: 1),
)
def multiply(x: TensorType, y: TensorType) -> TensorType:
    """x * y, elementwise; integers wrap around.

    x, y: tensors of the same integer or float dtype, whose shapes broadcast.
    Result: a tensor of that dtype, with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ or are not allowed.  Raises RelvmShapeError if the shapes do not
    broadcast.
    Source: ONNX Mul-14.

    Examples:

        >>> run("multiply(x, y)", x=[[1.0], [2.0]], y=[1.0, 10.0, 100.0])
        [[  1.  10. 100.]
         [  2.  20. 200.]]
    """
    return _binary("multiply", x, y)


def _numpy_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f":
        return x / y
    quotient = np.floor_divide(x, y)  # this is 0 where y is 0
    inexact = (y != 0) & (quotient * y != x)
    return quotient + (inexact & ((x < 0) != (y < 0))).astype(x.dtype)


def _divide(x: Scalar, y: Scalar) -> Scalar:
    return x / y if x.dtype.is_float else integer_quotient(x, y)


@op("divide", numpy=_numpy_divide, lower=elementwise(_divide), traits=Traits(neutral=lambda dtype: 1))
def divide(x: TensorType, y: TensorType) -> TensorType:
    """x / y, elementwise.  Integer quotients are rounded toward zero.  The quotient of an integer and 0 is 0.  The
    quotient of the smallest integer and -1 is the smallest integer.

    x, y: tensors of the same integer or float dtype, whose shapes broadcast.
    Result: a tensor of that dtype, with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ or are not allowed.  Raises RelvmShapeError if the shapes do not
    broadcast.
    Source: ONNX Div-14; NumPy for the integer cases that ONNX does not define.

    Examples:

        >>> run("divide(x, y)", x=[7, -7], y=[2, 2])
        [ 3 -3]
    """
    return _binary("divide", x, y)


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
        return Operation("power", (x, y), x.dtype)
    wide = I64 if x.dtype.is_signed else U64
    return Operation(f"rvm_power_{wide}", (x.to(wide), y.to(wide)), wide).to(x.dtype)


@op("power", numpy=_numpy_power, lower=elementwise(_power), traits=Traits(neutral=lambda dtype: 1))
def power(x: TensorType, y: TensorType) -> TensorType:
    """x to the power of y, elementwise.

    Integers wrap around.  Where y is a negative integer, the result is the exact power rounded toward zero, or 0 if x
    is 0.  If y is the constant 2 or 3, a float power is computed as x * x or x * x * x.  A cube is then rounded after
    each multiplication, so it can differ slightly from the correctly rounded result.

    x, y: tensors of the same integer or float dtype, whose shapes broadcast.
    Result: a tensor of that dtype, with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ or are not allowed.  Raises RelvmShapeError if the shapes do not
    broadcast.
    Source: ONNX Pow-15; special float values: C11 F.10.4.4.

    Examples:

        >>> run("power(x, y)", x=[1.0, 2.0, 3.0], y=2.0)
        [1. 4. 9.]
    """
    return _binary("power", x, y)


def _extreme(function: str):
    def point(x: Scalar, y: Scalar) -> Scalar:
        chosen = x > y if function == "maximum" else x < y
        return select(chosen.logical_or(x.ne(x)) if x.dtype.is_float else chosen, x, y)

    return elementwise(point)


@op(
    "maximum",
    numpy=np.maximum,
    lower=_extreme("maximum"),
    traits=Traits(commutative=True, neutral=lambda dtype: dtype.lowest),
)
def maximum(x: TensorType, y: TensorType) -> TensorType:
    """The larger of x and y, elementwise; NaN where x or y is NaN.

    x, y: tensors of the same integer or float dtype, whose shapes broadcast.
    Result: a tensor of that dtype, with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ or are not allowed.  Raises RelvmShapeError if the shapes do not
    broadcast.
    Source: ONNX Max-13; NaN: NumPy.

    Examples:

        >>> run("maximum(x, y)", x=[1, 5, 3], y=[4, 2, 3])
        [4 5 3]
    """
    return _binary("maximum", x, y)


@op(
    "minimum",
    numpy=np.minimum,
    lower=_extreme("minimum"),
    traits=Traits(commutative=True, neutral=lambda dtype: dtype.highest),
)
def minimum(x: TensorType, y: TensorType) -> TensorType:
    """The smaller of x and y, elementwise; NaN where x or y is NaN.

    x, y: tensors of the same integer or float dtype, whose shapes broadcast.
    Result: a tensor of that dtype, with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ or are not allowed.  Raises RelvmShapeError if the shapes do not
    broadcast.
    Source: ONNX Min-13; NaN: NumPy.

    Examples:

        >>> run("minimum(x, y)", x=[1, 5, 3], y=[4, 2, 3])
        [1 2 3]
    """
    return _binary("minimum", x, y)
