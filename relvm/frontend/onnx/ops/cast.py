"""Cast and CastLike: conversion between element types, including strings."""

from __future__ import annotations

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmArgumentError, RelvmUnsupportedError
from relvm.frontend.onnx.ops.strings import numbers_to_strings
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.ir.dtypes import F32, F64, STR, DType
from relvm.ir.expr import Expr

_ROUND_MODES = ("up", "down", "nearest")
# The largest number of each type.  A saturating conversion clips to it.
_LARGEST = {"f8e4m3fn": 448.0, "f8e4m3fnuz": 240.0, "f8e5m2": 57344.0, "f8e5m2fnuz": 57344.0}
_POWERS = "f8e8m0fnu"


@converts("Cast")
def _cast(node: OnnxNode) -> Expr:
    return _convert_input(node, node.graph.element_type(node.attribute("to"), "Cast"))


@converts("CastLike")
def _cast_like(node: OnnxNode) -> Expr:
    return _convert_input(node, node.tensor(1).known_element_type)


def _convert_input(node: OnnxNode, dtype: DType) -> Expr:
    return convert_dtype(
        TensorExpr(node, node.tensor(0)), dtype, bool(node.attribute("saturate", 1)), node.attribute("round_mode", "up")
    )


def convert_dtype(x: TensorExpr, dtype: DType, saturate: bool = True, round_mode: str = "up") -> Expr:
    """Convert x to another dtype, as ONNX Cast-25 defines it.

    Parameters
    ----------
    saturate
        What happens to a number that is too large, if `dtype` is an 8-bit float.  If True, the number becomes the
        largest number of `dtype`.  If False, it becomes infinity, or NaN if `dtype` has no infinity.
    round_mode
        How to round a number to a power of two: "up", "down" or "nearest".  Only used for the dtype float8e8m0, which
        contains only powers of two.
    """
    if dtype == STR:
        return numbers_to_strings(x)
    if x.type.dtype == STR:
        is_plain = dtype in (F32, F64) or (dtype.is_integer and dtype.is_arithmetic)
        if not is_plain and not dtype.is_float:
            raise RelvmUnsupportedError(f"converting strings to {dtype} is not supported")
        numbers = x.apply(ops.string_to_number, to=dtype.name if is_plain else F32.name)
        return numbers.expr if is_plain else convert_dtype(numbers, dtype, saturate, round_mode)
    if dtype.name == _POWERS:
        return _round_to_power_of_two(x.cast(F32).apply(ops.abs), saturate, round_mode).cast(dtype).expr
    if saturate and dtype.name in _LARGEST and not x.dtype.is_bool:
        x = x.cast(F32) if not x.dtype.is_arithmetic or not x.dtype.is_float else x
        limit = _LARGEST[dtype.name]
        x = x.apply(ops.clip, min=-limit, max=limit)
    return x.cast(dtype).expr


def _round_to_power_of_two(x: TensorExpr, saturate: bool, round_mode: str) -> TensorExpr:
    """Round the elements of x, non-negative f32 numbers, to powers of two.  Infinity and NaN are unchanged.

    Numbers below 2^-126 are rounded to 2^-126 or 2^-127.  Source: ONNX's notes on E8M0.

    saturate: whether a number that is too large becomes the largest power of two, instead of infinity.
    round_mode: "up", "down" or "nearest".
    """
    if round_mode not in _ROUND_MODES:
        raise RelvmArgumentError(f"round_mode is {round_mode!r}, expected one of {', '.join(_ROUND_MODES)}")
    smallest, normal, largest = 2.0**-127, 2.0**-126, 2.0**127
    near = x.apply(ops.maximum, normal).apply(ops.cast, to=_POWERS).cast(F32)
    power = near
    if round_mode == "up":
        power = (near < x).where(near * 2.0, near)
    if round_mode == "down":
        power = (near > x).where(near * 0.5, near)
    rounds_up = {"up": x > 0.0, "down": x > np.inf, "nearest": x > smallest}[round_mode]
    tiny = rounds_up.where(TensorExpr(x.node, x.operand(normal)), smallest)
    power = (x < normal).where(tiny, power)
    power = power.apply(ops.minimum, largest) if saturate else power
    return x.apply(ops.equal, np.inf).where(x, power)
