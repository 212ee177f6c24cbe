"""Conversion between unboxed scalars and tensors of rank 0."""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmIndexError, RelvmTypeError, counted
from relvm.ir.dtypes import BOOL, F64, I64, DType, dtype_of
from relvm.ir.operator import expect, op
from relvm.ir.type_rules import expect_tensor
from relvm.ir.types import PrimType, TensorType
from relvm.kernels.lowering_rules import Builtin


def _to_scalar(x: np.ndarray) -> bool | int | float:
    value = x.item()
    if isinstance(value, int) and value >= 1 << 63:
        raise RelvmTypeError(f"to_scalar: {value} is out of the range of i64")
    return value


@op("to_scalar", numpy=_to_scalar, lower=Builtin("tensor_item"))
def to_scalar(x: TensorType) -> PrimType:
    """The element of a tensor of rank 0 as a scalar.

    x: a tensor of rank 0.
    Result: a scalar: bool for bool, i64 for an integer dtype, f64 for a float dtype.
    Raises RelvmTypeError if x has another rank or an unknown dtype or, at run time, if a u64 is out of the range of
    i64.
    Source: numpy.ndarray.item.

    Examples:

        >>> run("to_scalar(x)", x=3)
        3
    """
    expect_tensor("to_scalar", x=x)
    expect(x.rank in (0, None), "to_scalar: x has rank {}, expected 0", x.rank)
    return PrimType(BOOL if x.known_dtype.is_bool else I64 if x.known_dtype.is_integer else F64)


def _element_at(x: np.ndarray, position: int) -> bool | int | float:
    if not 0 <= position < x.size:
        raise RelvmIndexError(
            f"element_at: position {position} is out of range; the tensor has {counted(x.size, 'element')}"
        )
    return _to_scalar(x.reshape(-1)[position])


@op("element_at", numpy=_element_at, lower=Builtin("tensor_element"))
def element_at(x: TensorType, position: PrimType) -> PrimType:
    """The element of a tensor at a flat position, as a scalar.

    x: a tensor of any rank.
    position: the position in row-major order, counted from 0, as a scalar of type i64.
    Result: a scalar: bool for bool, i64 for an integer dtype, f64 for a float dtype.
    Raises RelvmTypeError if x has an unknown dtype, the position is not such a scalar or, at run time, if a u64 is out
    of the range of i64.  Raises RelvmIndexError at run time if the position is out of range.
    Source: numpy.ndarray.item.

    Examples:

        >>> run("element_at(x, 3)", x=[[1, 2], [3, 4]])
        4
    """
    expect_tensor("element_at", x=x)
    is_index = isinstance(position, PrimType) and position.dtype == I64
    expect(is_index, "element_at: position is {}, expected a scalar of type i64", position)
    return PrimType(BOOL if x.known_dtype.is_bool else I64 if x.known_dtype.is_integer else F64)


def _to_tensor(value: bool | int | float, *, dtype: str | DType) -> np.ndarray:
    try:
        return np.array(value, dtype_of(dtype).numpy)
    except OverflowError:
        raise RelvmTypeError(f"to_tensor: {value} is out of the range of dtype {dtype_of(dtype)}") from None


@op("to_tensor", numpy=_to_tensor, lower=Builtin("scalar_to_tensor", ("dtype",)))
def to_tensor(value: PrimType, *, dtype: str | DType) -> TensorType:
    """A scalar as a tensor of rank 0.

    value: a scalar of dtype bool, i64 or f64.
    dtype: bool for a bool, any integer or float dtype for an i64, a float dtype for an f64.
    Result: a tensor of rank 0 and of dtype `dtype`.  For a float dtype, the value is rounded to the nearest number.
    Raises RelvmTypeError if the argument is not a scalar, the dtype is not allowed for the scalar or, at run time, if
    an integer is out of the range of the dtype.
    Source: numpy.array.

    Examples:

        >>> run("to_tensor(2.5, dtype=f32)")
        2.5
    """
    expect(isinstance(value, PrimType), "to_tensor: value is {}, expected a scalar", value)
    target = dtype_of(dtype)
    fits = target.is_bool if value.dtype == BOOL else target.is_float or (target.is_integer and value.dtype == I64)
    expect(fits, "to_tensor: dtype {} is incompatible with a scalar of type {}", target, value.dtype)
    return TensorType(target, ())
