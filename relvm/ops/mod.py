"""Remainders of elementwise division, with two conventions for the sign."""

from __future__ import annotations

import numpy as np

from relvm.ir.loop_ir import Operation, Scalar, integer_remainder, select
from relvm.ir.operator import op
from relvm.ir.type_rules import broadcast, expect_numeric, expect_same_dtype
from relvm.ir.types import TensorType
from relvm.kernels.lowering_rules import elementwise


def _numbers(name: str, x: TensorType, y: TensorType) -> TensorType:
    expect_numeric(name, x=x, y=y)
    expect_same_dtype(name, x=x, y=y)
    return broadcast(name, x.dtype, x, y)


def _remainder(x: Scalar, y: Scalar) -> Scalar:
    return Operation("fmod", (x, y), x.dtype) if x.dtype.is_float else integer_remainder(x, y)


def _modulo(x: Scalar, y: Scalar) -> Scalar:
    rest = _remainder(x, y)
    if not x.dtype.is_float and not x.dtype.is_signed:
        return rest
    other_side = rest.ne(0).logical_and((rest < 0).ne(y < 0))
    moved = select(other_side, rest + y, rest)
    if x.dtype.is_float:  # a result of zero has the sign of y
        moved = select(rest.eq(0), Operation("copysign", (rest, y), x.dtype), moved)
    return moved


@op("remainder", numpy=np.fmod, lower=elementwise(_remainder))
def remainder(x: TensorType, y: TensorType) -> TensorType:
    """x - trunc(x / y) * y, elementwise.  The result has the sign of x.  For integers, it is 0 where y is 0.

    x, y: tensors of the same integer or float dtype, whose shapes broadcast.
    Result: a tensor of that dtype, with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ or are not allowed.  Raises RelvmShapeError if the shapes do not
    broadcast.
    Source: ONNX Mod-13 (fmod=1); special float values: C11 F.10.7.1.

    Examples:

        >>> run("remainder(x, y)", x=[7, -7], y=[3, 3])
        [ 1 -1]
    """
    return _numbers("remainder", x, y)


@op("modulo", numpy=np.mod, lower=elementwise(_modulo))
def modulo(x: TensorType, y: TensorType) -> TensorType:
    """x - floor(x / y) * y, elementwise.  The result has the sign of y.  For integers, it is 0 where y is 0.

    x, y: tensors of the same integer or float dtype, whose shapes broadcast.
    Result: a tensor of that dtype, with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ or are not allowed.  Raises RelvmShapeError if the shapes do not
    broadcast.
    Source: ONNX Mod-13 (fmod=0); floats: numpy.mod.

    Examples:

        >>> run("modulo(x, y)", x=[7, -7], y=[3, 3])
        [1 2]
    """
    return _numbers("modulo", x, y)
