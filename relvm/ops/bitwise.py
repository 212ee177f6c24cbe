"""Elementwise bitwise operators on two integer tensors."""

from __future__ import annotations

import numpy as np

from relvm.ir.loop_ir import Literal, Operation, Scalar, select
from relvm.ir.operator import Traits, expect, op
from relvm.ir.type_rules import broadcast, expect_same_dtype
from relvm.ir.types import TensorType
from relvm.kernels.lowering_rules import Pointwise, elementwise


def _bitwise(function: str) -> Pointwise:
    return elementwise(lambda x, y: Operation(function, (x, y), x.dtype))


def _integers(name: str, x: TensorType, y: TensorType) -> TensorType:
    expect_same_dtype(name, x=x, y=y)
    expect(x.known_dtype.is_integer, "{}: x has dtype {}, expected an integer dtype", name, x.dtype)
    return broadcast(name, x.dtype, x, y)


@op(
    "bitwise_and",
    numpy=np.bitwise_and,
    lower=_bitwise("and"),
    traits=Traits(commutative=True, neutral=lambda dtype: -1 if dtype.is_signed else dtype.highest),
)
def bitwise_and(x: TensorType, y: TensorType) -> TensorType:
    """Bitwise AND of x and y, elementwise.

    x, y: tensors of the same integer dtype, whose shapes broadcast.
    Result: a tensor of that dtype, with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ or are not allowed.  Raises RelvmShapeError if the shapes do not
    broadcast.
    Source: ONNX BitwiseAnd-18.

    Examples:

        >>> run("bitwise_and(x, y)", x=[12, 10], y=[10, 6])
        [8 2]
    """
    return _integers("bitwise_and", x, y)


@op("bitwise_or", numpy=np.bitwise_or, lower=_bitwise("or"), traits=Traits(commutative=True, neutral=lambda dtype: 0))
def bitwise_or(x: TensorType, y: TensorType) -> TensorType:
    """Bitwise OR of x and y, elementwise.

    x, y: tensors of the same integer dtype, whose shapes broadcast.
    Result: a tensor of that dtype, with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ or are not allowed.  Raises RelvmShapeError if the shapes do not
    broadcast.
    Source: ONNX BitwiseOr-18.

    Examples:

        >>> run("bitwise_or(x, y)", x=[12, 10], y=[10, 6])
        [14 14]
    """
    return _integers("bitwise_or", x, y)


@op(
    "bitwise_xor", numpy=np.bitwise_xor, lower=_bitwise("xor"), traits=Traits(commutative=True, neutral=lambda dtype: 0)
)
def bitwise_xor(x: TensorType, y: TensorType) -> TensorType:
    """Bitwise exclusive OR of x and y, elementwise.

    x, y: tensors of the same integer dtype, whose shapes broadcast.
    Result: a tensor of that dtype, with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ or are not allowed.  Raises RelvmShapeError if the shapes do not
    broadcast.
    Source: ONNX BitwiseXor-18.

    Examples:

        >>> run("bitwise_xor(x, y)", x=[12, 10], y=[10, 6])
        [ 6 12]
    """
    return _integers("bitwise_xor", x, y)


def _is_inside(x: Scalar, count: Scalar) -> Scalar:
    inside = count < x.dtype.bits
    return (count >= 0).logical_and(inside) if x.dtype.is_signed else inside


def _shift_left(x: Scalar, y: Scalar) -> Scalar:
    return select(_is_inside(x, y), Operation("shl", (x, y), x.dtype), Literal(0, x.dtype))


def _shift_right(x: Scalar, y: Scalar) -> Scalar:
    sign = select(x < 0, Literal(-1, x.dtype), Literal(0, x.dtype)) if x.dtype.is_signed else Literal(0, x.dtype)
    return select(_is_inside(x, y), Operation("shr", (x, y), x.dtype), sign)


@op("shift_left", numpy=np.left_shift, lower=elementwise(_shift_left), traits=Traits(neutral=lambda dtype: 0))
def shift_left(x: TensorType, y: TensorType) -> TensorType:
    """Left shift of x by y bits, elementwise; 0 where y is negative or at least the number of bits of the dtype.

    x, y: tensors of the same integer dtype, whose shapes broadcast.
    Result: a tensor of that dtype, with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ or are not allowed.  Raises RelvmShapeError if the shapes do not
    broadcast.
    Source: ONNX BitShift-28.

    Examples:

        >>> run("shift_left(x, y)", x=np.uint8([1, 3]), y=np.uint8([4, 1]))
        [16  6]
    """
    return _integers("shift_left", x, y)


@op("shift_right", numpy=np.right_shift, lower=elementwise(_shift_right), traits=Traits(neutral=lambda dtype: 0))
def shift_right(x: TensorType, y: TensorType) -> TensorType:
    """Right shift of x by y bits, elementwise, arithmetic for signed integers.  Where y is negative or at least the
    number of bits, the result is -1 for negative x, otherwise 0.

    x, y: tensors of the same integer dtype, whose shapes broadcast.
    Result: a tensor of that dtype, with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ or are not allowed.  Raises RelvmShapeError if the shapes do not
    broadcast.
    Source: ONNX BitShift-28.

    Examples:

        >>> run("shift_right(x, y)", x=np.uint8([16, 7]), y=np.uint8([4, 1]))
        [1 3]
    """
    return _integers("shift_right", x, y)
