"""Runs of equal rows of a matrix."""

from __future__ import annotations

from collections.abc import Callable

import relvm.ops as ops
from relvm.ir.dtypes import U8
from relvm.ir.expr import Expr, Shape


def begins_of_runs(emit: Callable[[Expr], Expr], rows: Expr, *, nan_equals_nan: bool) -> Expr:
    """Return a bool vector that states for each row whether it differs from the row before it.

    emit: a function that binds an expression to a variable.
    rows: a matrix of known shape.   nan_equals_nan: whether two NaN are equal.
    """
    count, width = rows.tensor_type.known_shape
    here = emit(ops.iota(Shape((count,))))
    is_first = ops.equal(here, 0)
    if width == 0:
        return emit(is_first)
    before = emit(ops.gather(rows, emit(ops.maximum(ops.subtract(here, 1), 0)), axis=0))
    differs = ops.not_equal(rows, before)
    if rows.known_element_type.is_float and nan_equals_nan:
        differs = ops.logical_and(differs, ops.logical_or(ops.equal(rows, rows), ops.equal(before, before)))
    changes = ops.max(ops.cast(emit(differs), to=U8.name), axes=(1,))
    return emit(ops.logical_or(ops.greater(changes, 0), is_first))
