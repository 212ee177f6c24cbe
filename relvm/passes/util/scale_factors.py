"""Constant factors of tensors, and their propagation from the result of an operator to its argument.

A factor is an f64 array of the same rank as the tensor.  Along each axis, it has size 1 or the size of the tensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm import ops
from relvm.ir.dtypes import DType
from relvm.ir.expr import Constant, Expr, OpCall, constant
from relvm.ir.symbolic import AnyDim, exact_quotient
from relvm.passes.canonicalize.movement_rules import permutation_of

Shape = tuple[AnyDim, ...]


def match_factor(call: OpCall) -> tuple[Expr, np.ndarray] | None:
    """Match `call` as the product of a tensor x and a constant factor, with a result of the same shape as x.

    Return x and the factor, or None if `call` does not match.
    """
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
    return x, with_rank(factor, type_.known_rank)


def match_shift(call: OpCall) -> tuple[Expr, np.ndarray] | None:
    """Match `call` as the sum of a tensor x and a constant term, with a result of the same shape as x.

    Return x and the term, or None if `call` does not match.
    """
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
    return x, with_rank(shift, type_.known_rank)


def with_rank(value: np.ndarray, rank: int) -> np.ndarray:
    """Add leading axes of size 1 to `value`, so that it has `rank` axes."""
    return value.reshape((1,) * (rank - value.ndim) + value.shape)


def multiply_weights(weights: Constant, factor: np.ndarray) -> Constant | None:
    """Return `weights` times `factor`, rounded once.  Return None if an element becomes infinite or NaN."""
    result = np.empty_like(weights.value)
    with np.errstate(all="ignore"):
        np.multiply(weights.value, factor, out=result, dtype=np.float64, casting="same_kind")
    return constant(result, is_new=True) if np.isfinite(result).all() else None


def combine(function: np.ufunc, first: np.ndarray, second: np.ndarray, dtype: DType) -> Constant | None:
    """Apply `function` to two factors or terms, and return the result as a constant of dtype `dtype`.

    Return None if the result is not finite, or if it has more elements than either operand, because both are broadcast.
    Leading axes of size 1 are removed.
    """
    with np.errstate(all="ignore"):
        result = function(first, second).astype(dtype.numpy)
    if result.size > max(first.size, second.size) or not np.isfinite(result).all():
        return None
    varying = [axis for axis, dim in enumerate(result.shape) if dim != 1]
    return constant(result.reshape(result.shape[min(varying, default=result.ndim) :]))


def exact_reciprocal(divisor: Constant) -> Constant | None:
    """Return 1 / divisor if multiplication by it gives exactly the results of the division, otherwise None.

    The elements of `divisor` must be powers of two or their negatives, with reciprocals that are normal numbers.
    """
    with np.errstate(all="ignore"):
        result = 1 / divisor.value
    mantissa, _ = np.frexp(divisor.value)
    size = np.abs(result)
    exact = (np.abs(mantissa) == 0.5) & (size >= np.finfo(result.dtype).tiny) & (size < np.inf)
    return constant(result) if np.all(exact) else None


def varies_only_along(factor: np.ndarray, axis: int) -> bool:
    """Return whether the factor has size 1 along all axes other than `axis`."""
    return factor.size == factor.shape[axis]


def factor_before_transpose(factor: np.ndarray, call: OpCall) -> np.ndarray:
    """Convert `factor`, a factor of the result of the transposition `call`, to a factor of its argument."""
    return np.transpose(factor, np.argsort(permutation_of(call)))


def factor_before_view(factor: np.ndarray, shape: Shape, source: Shape) -> np.ndarray | None:
    """Convert `factor`, a factor of the result of a view, to a factor of its argument.

    Return None if no such factor is found.

    shape: the shape of the result.
    source: the shape of the argument.
    """
    if factor.size == 1:
        return factor.reshape((1,) * len(source))
    parts = _group_axes(shape, source)
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


def _group_axes(first: Shape, second: Shape) -> list[tuple[list[int], list[int]]] | None:
    """Divide the axes of two shapes into groups of consecutive axes, which correspond in pairs.

    Both groups of a pair have the same number of elements.  The groups are as small as possible, and axes of size 1 are
    omitted.  For example, shapes (2, 3, 4) and (6, 4) give the pairs ([0, 1], [0]) and ([2], [1]).  Return None if the
    sizes do not divide one another, as in (2, 3) and (3, 2), or are not proven to.

    The two shapes must have the same total number of elements.
    """
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
