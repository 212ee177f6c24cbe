"""Elementwise operators with their own type rules: selection, clamping, and conversion of dtypes."""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmArgumentError
from relvm.ir.dtypes import BF16, F16, F32, F64, I16, I32, I64, STR, DType, dtype_of
from relvm.ir.loop_ir import Literal, Operation, Scalar, select
from relvm.ir.operator import expect, op
from relvm.ir.type_rules import broadcast, expect_bool, expect_numeric, expect_same_dtype, expect_tensor, with_dtype
from relvm.ir.types import TensorType
from relvm.kernels.lowering_rules import ALIAS, elementwise


@op("identity", numpy=lambda x: x, lower=ALIAS, moves=True)
def identity(x: TensorType) -> TensorType:
    """x, unchanged.

    x: any tensor.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if the argument is not a tensor.
    Source: ONNX Identity-16.

    Examples:

        >>> run("identity(x)", x=[1, 2])
        [1 2]
    """
    expect_tensor("identity", x=x)
    return x


@op("where", numpy=np.where, lower=elementwise(lambda cond, x, y: select(cond, x, y)), moves=True)
def where(cond: TensorType, x: TensorType, y: TensorType) -> TensorType:
    """x where cond is true, otherwise y, elementwise.

    cond: a bool tensor.
    x, y: tensors of the same dtype.  The shapes of `cond`, x and y must broadcast.
    Result: a tensor with the dtype of x and the broadcast shape.
    Raises RelvmTypeError if `cond` has another dtype, or x and y have different dtypes.  Raises RelvmShapeError if the
    shapes do not broadcast.
    Source: ONNX Where-16.

    Examples:

        >>> run("where(cond, x, y)", cond=[True, False], x=[1, 2], y=[10, 20])
        [ 1 20]
    """
    expect_bool("where", cond=cond)
    expect_same_dtype("where", x=x, y=y)
    return broadcast("where", x.dtype, cond, x, y)


def _numpy_clip(x: np.ndarray, *, min: float | None, max: float | None) -> np.ndarray:
    at_least = x if min is None else np.maximum(x, np.asarray(min, x.dtype))
    return at_least if max is None else np.minimum(at_least, np.asarray(max, x.dtype))


def _clip(x: Scalar, *, min: float | None, max: float | None) -> Scalar:
    at_least = x if min is None else select(x < min, Literal(min, x.dtype), x)
    return at_least if max is None else select(x > max, Literal(max, x.dtype), at_least)


@op("clip", numpy=_numpy_clip, lower=elementwise(_clip))
def clip(x: TensorType, *, min: float | None = None, max: float | None = None) -> TensorType:
    """x clamped to [`min`, `max`], elementwise; NaN stays NaN.

    x: a tensor of an integer or float dtype.
    min, max: numbers that the dtype of x can represent, with min <= max.  None means that there is no bound.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has dtype bool.  Raises RelvmArgumentError if a bound is not such a number.
    Source: ONNX Clip-13.

    Examples:

        >>> run("clip(x, min=0.0, max=1.0)", x=[-1.0, 0.5, 2.0])
        [0.  0.5 1. ]
    """
    expect_numeric("clip", x=x)
    for name, bound in (("min", min), ("max", max)):
        fits = bound is None or (isinstance(bound, int | float) and not isinstance(bound, bool) and bound == bound)
        expect(fits, "clip: {} is {!r}, expected a number or None", name, bound, error=RelvmArgumentError)
        if bound is not None and x.known_dtype.is_integer:
            lowest, highest = x.known_dtype.limits
            fits = isinstance(bound, int) and lowest <= bound <= highest
            expect(fits, "clip: {} is {!r}, which {} cannot represent", name, bound, x.dtype, error=RelvmArgumentError)
    ordered = min is None or max is None or min <= max
    expect(ordered, "clip: min {} exceeds max {}", min, max, error=RelvmArgumentError)
    return x


def _numpy_cast(x: np.ndarray, *, to: str | DType) -> np.ndarray:
    target = dtype_of(to)
    by_way_of_f32 = all(dtype.isbuiltin != 1 for dtype in (x.dtype, target.numpy))  # ml_dtypes lacks some conversions
    return (x.astype(np.float32) if by_way_of_f32 else x).astype(target.numpy)


def _cast(x: Scalar, *, to: str | DType) -> Scalar:
    return x.to(dtype_of(to))


@op("cast", numpy=_numpy_cast, lower=elementwise(_cast), moves=True)
def cast(x: TensorType, *, to: str | DType) -> TensorType:
    """x converted to another dtype.  To bool: true where x is not 0.  From float to integer: rounded toward zero.  From
    integer to integer: modulo 2^bits.  To float: the nearest number.  An overflow results in infinity, NaN or the
    largest number, depending on the dtype.

    x: a tensor of any dtype except str.
    to: the name of any dtype except str, such as `f32`.
    Result: a tensor with the dtype `to` and the shape of x.  If the integer dtype cannot represent a float (or NaN),
    the result depends on the processor.
    Raises RelvmTypeError if the dtype is unknown, or x contains strings.
    Source: ONNX Cast-25 with saturate=0; NumPy's and ml_dtypes's astype.

    Examples:

        >>> run("cast(x, to=i64)", x=[-1.7, 2.9])
        [-1  2]
    """
    expect_tensor("cast", x=x)
    dtype = dtype_of(to)
    expect(x.dtype != STR, "cast: x is {}; use string_to_number to convert strings to numbers", x)
    expect(dtype != STR, "cast: cannot cast to str; use string_of_number to convert numbers to strings")
    return with_dtype(x, dtype)


def _numpy_saturating_cast(x: np.ndarray, *, to: str | DType) -> np.ndarray:
    dtype = dtype_of(to)
    return np.where(np.isnan(x), dtype.limits[0], np.clip(x, *dtype.limits)).astype(dtype.numpy)


def _saturating_cast(x: Scalar, *, to: str | DType) -> Scalar:
    dtype = dtype_of(to)
    if x.dtype == F32 and dtype.bits == 8:
        return Operation(f"rvm_saturate_{dtype}", (x,), dtype)
    lowest, highest = (Literal(limit, x.dtype) for limit in dtype.limits)
    return select(x > lowest, select(x < highest, x, highest), lowest).to(dtype)


@op("saturating_cast", numpy=_numpy_saturating_cast, lower=elementwise(_saturating_cast))
def saturating_cast(x: TensorType, *, to: str | DType) -> TensorType:
    """x converted to a narrow integer dtype: rounded toward zero and clamped to the range of the dtype.

    x: a tensor of a float dtype.
    to: the name of an integer dtype of at most 16 bits.
    Result: a tensor with the dtype `to` and the shape of x.  NaN becomes the lowest number of `to`.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX QuantizeLinear-25; its reference implementation and ONNX Runtime for NaN.

    Examples:

        >>> run("saturating_cast(x, to=u8)", x=[-3.0, 99.5, 300.0])
        [  0  99 255]
    """
    expect_tensor("saturating_cast", x=x)
    expect(x.dtype is None or x.dtype.is_float, "saturating_cast: x has dtype {}, expected a float dtype", x.dtype)
    dtype = dtype_of(to)
    right = dtype.is_integer and dtype.bits <= 16
    expect(right, "saturating_cast: to is {}, expected an integer dtype of at most 16 bits", dtype)
    return with_dtype(x, dtype)


# For each float dtype, the integer dtype of the same size.
_BITS_OF = {F16: I16, BF16: I16, F32: I32, F64: I64}


def _numpy_bit_cast(x: np.ndarray, *, to: str | DType) -> np.ndarray:
    dtype = dtype_of(to)
    return x.astype(bool) if dtype.is_bool else x.view(dtype.numpy)


def _bit_cast(x: Scalar, *, to: str | DType) -> Scalar:
    dtype = dtype_of(to)
    if x.dtype == dtype:
        return x
    if x.dtype in _BITS_OF:
        x = Operation(f"rvm_bits_of_{x.dtype}", (x,), _BITS_OF[x.dtype])
    if dtype in _BITS_OF:
        return Operation(f"rvm_{dtype}_of_bits", (x.to(_BITS_OF[dtype]),), dtype)
    return x.to(dtype)


@op("bit_cast", numpy=_numpy_bit_cast, lower=elementwise(_bit_cast), moves=True)
def bit_cast(x: TensorType, *, to: str | DType) -> TensorType:
    """The bits of x reinterpreted as another dtype.

    x: a tensor of dtype f16, bf16, f32, f64, bool or an integer dtype.
    to: the name of one of these dtypes, such as `i32`, with the same number of bits.
    Result: a tensor with the dtype `to` and the shape of x.  A bool is true if any of its bits is 1.
    Raises RelvmTypeError if a dtype is not allowed, or the numbers of bits differ.
    Source: ONNX BitCast-26.

    Examples:

        >>> run("bit_cast(x, to=i32)", x=[1.0, -0.0])
        [ 1065353216 -2147483648]
    """
    expect_tensor("bit_cast", x=x)
    dtype = dtype_of(to)
    for each in (x.known_dtype, dtype):
        known = each in _BITS_OF or not each.is_float
        expect(known, "bit_cast: {} is not supported; expected f16, bf16, f32, f64, bool or an integer dtype", each)
    message = "bit_cast: cannot cast {} to {}; both must have the same number of bits"
    expect(x.known_dtype.bits == dtype.bits, message, x.dtype, dtype)
    return with_dtype(x, dtype)
