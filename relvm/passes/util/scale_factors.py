"""Constant factors of tensors, and what they are of what a tensor was made of.

A factor is an f64 array with as many axes as the tensor: along each it has one element, or as many as the tensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm import ops
from relvm.ir.dtypes import DType
from relvm.ir.expr import Constant, Expr, OpCall, constant
from relvm.ir.symbolic import AnyDim, exact_quotient
from relvm.passes.canonicalize.movement_rules import order_of

Shape = tuple[AnyDim, ...]


def factor_of(call: OpCall) -> tuple[Expr, np.ndarray] | None:
    """The tensor x and the factor where `call` is x times a factor, without more elements than x; else None."""
    match call.op, call.args:
        case ops.multiply, (x, Constant(value=value)) | (Constant(value=value), x):
            factor = value.astype(np.float64)
        case ops.divide, (x, Constant(value=value)):
            with np.errstate(divide="ignore"):
                factor = 1 / value.astype(np.float64)
        case ops.negative, (x,):
            factor = np.array(-1.0)
        case _:
            return None
    type_ = call.tensor_type
    if not type_.known_dtype.is_float or x.type != type_ or type_.shape is None or isinstance(x, Constant):
        return None
    return x, aligned(factor, type_.known_rank)


def shift_of(call: OpCall) -> tuple[Expr, np.ndarray] | None:
    """The tensor x and the constant where `call` is x and a constant, without more elements than x; else None."""
    match call.op, call.args:
        case ops.add, (x, Constant(value=value)) | (Constant(value=value), x):
            shift = value.astype(np.float64)
        case ops.subtract, (x, Constant(value=value)):
            shift = -value.astype(np.float64)
        case _:
            return None
    type_ = call.tensor_type
    if not type_.known_dtype.is_float or x.type != type_ or type_.shape is None or isinstance(x, Constant):
        return None
    return x, aligned(shift, type_.known_rank)


def aligned(value: np.ndarray, rank: int) -> np.ndarray:
    """The same elements with axes of size 1 in front."""
    return value.reshape((1,) * (rank - value.ndim) + value.shape)


def times(weights: Constant, factor: np.ndarray) -> Constant | None:
    """The weights, each times its factor and rounded once; None where one becomes infinite, or NaN."""
    result = np.empty_like(weights.value)
    with np.errstate(all="ignore"):
        np.multiply(weights.value, factor, out=result, dtype=np.float64, casting="same_kind")
    return constant(result) if np.isfinite(result).all() else None


def combined(function: np.ufunc, first: np.ndarray, second: np.ndarray, dtype: DType) -> Constant | None:
    """The function of two factors or terms; None where that has more elements than both, or one that is not finite."""
    with np.errstate(all="ignore"):
        result = function(first, second).astype(dtype.numpy)
    if result.size > max(first.size, second.size) or not np.isfinite(result).all():
        return None
    varying = [axis for axis, dim in enumerate(result.shape) if dim != 1]
    return constant(result.reshape(result.shape[min(varying, default=result.ndim) :]))


def reciprocal(divisor: Constant) -> Constant | None:
    """1 / divisor, where multiplying by it is the same: where that is a power of two."""
    with np.errstate(all="ignore"):
        result = 1 / divisor.value
    mantissa, _ = np.frexp(divisor.value)
    size = np.abs(result)
    exact = (np.abs(mantissa) == 0.5) & (size >= np.finfo(result.dtype).tiny) & (size < np.inf)
    return constant(result) if np.all(exact) else None


def varies_along(factor: np.ndarray, axis: int) -> bool:
    """Whether the factor is the same along every axis but that one."""
    return factor.size == factor.shape[axis]


def of_transposed(factor: np.ndarray, call: OpCall) -> np.ndarray:
    """The factor of the argument of a transposition whose result has `factor`."""
    return np.transpose(factor, np.argsort(order_of(call)))


def of_viewed(factor: np.ndarray, shape: Shape, source: Shape) -> np.ndarray | None:
    """The factor of a tensor of shape `source` whose view of shape `shape` has `factor`; None where there is none, or
    none is found."""
    if factor.size == 1:
        return factor.reshape((1,) * len(source))
    parts = _common_parts(shape, source)
    if parts is None:
        return None
    expanded: list[Any] = [1] * len(shape)
    result: list[Any] = [1] * len(source)
    for axes, source_axes in parts:
        if all(factor.shape[axis] == 1 for axis in axes):
            continue
        for axis in axes:
            expanded[axis] = shape[axis]
        for axis in source_axes:
            result[axis] = source[axis]
    if not all(isinstance(dim, int) for dim in (*expanded, *result)):
        return None
    return np.broadcast_to(factor, expanded).reshape(result)


def _common_parts(first: Shape, second: Shape) -> list[tuple[list[int], list[int]]] | None:
    """The axes, but those of size 1, of two shapes of as many elements, divided in order into small parts of equal
    size; None where no such parts are found."""
    ours, theirs = ([axis for axis, dim in enumerate(shape) if dim != 1] for shape in (first, second))
    parts = []
    while ours and theirs:
        parts.append(([ours.pop(0)], [theirs.pop(0)]))
        left, right = first[parts[-1][0][0]], second[parts[-1][1][0]]
        while left != right:
            if ours and exact_quotient(right, left) is not None:
                parts[-1][0].append(ours.pop(0))
                left = left * first[parts[-1][0][-1]]
            elif theirs and exact_quotient(left, right) is not None:
                parts[-1][1].append(theirs.pop(0))
                right = right * second[parts[-1][1][-1]]
            else:
                return None
    return None if ours or theirs else parts
