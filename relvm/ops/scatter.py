"""Scatter: replaces elements or slices at computed positions by updates, or combines them with updates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relvm.errors import RelvmArgumentError
from relvm.ir.loop_ir import Buffer, Local, Scalar, select
from relvm.ir.operator import expect, op
from relvm.ir.type_rules import expect_equal_dims, expect_numeric, expect_same_dtype
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel, flat_position, loop_nest
from relvm.kernels.updates import copy_input
from relvm.ops.gather import (
    check_element_indices,
    check_index_rows,
    expect_from_end,
    index_from_front,
    numpy_positions,
    numpy_slices,
    slice_number,
)


def _larger(x: Scalar, y: Scalar) -> Scalar:
    return select((x > y).logical_or(x.ne(x)) if x.dtype.is_float else x > y, x, y)


def _smaller(x: Scalar, y: Scalar) -> Scalar:
    return select((x < y).logical_or(x.ne(x)) if x.dtype.is_float else x < y, x, y)


# Two functions that combine an element and its update: the first in NumPy, the second in a kernel.
_REDUCTIONS: dict[str, tuple[Callable, Callable[[Scalar, Scalar], Scalar]]] = {
    "none": (lambda x, update: update, lambda x, update: update),
    "add": (np.add, lambda x, update: x + update),
    "mul": (np.multiply, lambda x, update: x * update),
    "max": (np.maximum, _larger),
    "min": (np.minimum, _smaller),
}


def _expect_updates(op: str, x: TensorType, updates: TensorType, reduction: object) -> None:
    known = reduction in _REDUCTIONS
    message = "{}: reduction is {!r}, expected one of {}"
    expect(known, message, op, reduction, ", ".join(_REDUCTIONS), error=RelvmArgumentError)
    expect_same_dtype(op, x=x, updates=updates)
    if reduction != "none":
        expect_numeric(op, x=x)


def _expect_shape(op: str, updates: TensorType, rank: int, dims: tuple | None) -> None:
    expect(updates.rank in (None, rank), "{}: updates has rank {}, expected {}", op, updates.rank, rank)
    for axis, (got, wanted) in enumerate(zip(updates.shape or (), dims or (), strict=False)):
        expect_equal_dims(op, f"dimension {axis} of updates and the expected size differ", wanted, got)


def _numpy_scatter_elements(x, indices, updates, *, axis: int, reduction: str, from_end: bool) -> np.ndarray:
    result, combine = x.copy(), _REDUCTIONS[reduction][0]
    for at, place in numpy_positions("scatter_elements", x, indices, axis, from_end):
        result[place] = combine(result[place], updates[at])
    return result


def _generate_positions(
    k: KernelBuilder, op: str, x: Buffer, indices: Buffer, axis: int, from_end: bool, body: Callable
) -> None:
    """Generate code for each index in `indices`, by calling body(at, place).

    from_end: whether a negative index counts from the end of the axis.  Otherwise, it is out of range.

    body: a function that generates the code.  `at` is the flat position of the index in `indices`, and `place` is the
    flat position in x to which the index refers.
    """
    axis %= len(x.shape)
    with loop_nest(k, list(indices.shape)) as counters:
        at = k.let("at", flat_position(tuple(counters), indices.shape))
        found = index_from_front(k, op, indices.flat(at), axis, x.shape[axis], from_end)
        body(at, k.let("place", flat_position((*counters[:axis], found, *counters[axis + 1 :]), x.shape)))


def _scatter_elements(k: KernelBuilder, inputs, outputs, *, axis: int, reduction: str, from_end: bool) -> None:
    (x, indices, updates), (out,) = inputs, outputs
    combine = _REDUCTIONS[reduction][1]

    def put(at: Local, place: Local) -> None:
        k.store(out, (place,), combine(out.flat(place), updates.flat(at)))

    copy_input(k, x, out)
    _generate_positions(k, "scatter_elements", x, indices, axis, from_end, put)


@op("scatter_elements", numpy=_numpy_scatter_elements, lower=CustomKernel(_scatter_elements), strings=True)
def scatter_elements(
    x: TensorType,
    indices: TensorType,
    updates: TensorType,
    *,
    axis: int,
    reduction: str = "none",
    from_end: bool = True,
) -> TensorType:
    """A copy of x with elements of `updates` written to the positions that `indices` selects along `axis`.  For axis 0,
    updates[i, j] is written to result[indices[i, j], j].  For axis 1, it is written to result[i, indices[i, j]].

    x: any tensor of rank >= 1.
    indices: a tensor of dtype i32 or i64 and of the same rank as x.  Along each axis other than `axis`, its size is at
    most the size of x.  Each index is in [-n, n), where n is the size of x along `axis`.
    updates: a tensor with the dtype of x and the shape of `indices`.
    axis: the axis, in [-rank, rank).
    reduction: how an update changes an element.  "none" replaces the element.  If several updates have the same
    position, the last one in row-major order remains.  "add", "mul", "max" and "min" combine the element with each of
    its updates, in row-major order.  These four are not allowed for bool.
    from_end: whether a negative index counts from the end of the axis.  Otherwise, it is out of range.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if an argument has another dtype or rank, or the axis is out of range.  Raises
    RelvmArgumentError if the reduction is unknown or `from_end` is not a bool.  Raises RelvmShapeError if the shapes of
    `updates` and `indices` differ, or `indices` is longer than x along an axis other than `axis`.  At run time, it
    raises RelvmIndexError if an index is out of range.
    Source: ONNX ScatterElements-18.

    Examples:

        >>> run(
        ...     "scatter_elements(x, indices, updates, axis=0)",
        ...     x=[1, 2, 3, 4],
        ...     indices=[3, 0],
        ...     updates=[40, 10],
        ... )
        [10  2  3 40]
    """
    check_element_indices("scatter_elements", x, indices, axis)
    expect_from_end("scatter_elements", from_end)
    _expect_updates("scatter_elements", x, updates, reduction)
    if indices.rank is not None:
        _expect_shape("scatter_elements", updates, indices.rank, indices.shape)
    return x


def _numpy_scatter_nd(x, indices, updates, *, depth: int, reduction: str) -> np.ndarray:
    result, combine = x.copy(), _REDUCTIONS[reduction][0]
    for at, place in numpy_slices("scatter_nd", x, indices):
        result[place] = combine(result[place], updates[at])
    return result


def _scatter_nd(k: KernelBuilder, inputs, outputs, *, depth: int, reduction: str) -> None:
    (x, indices, updates), (out,) = inputs, outputs
    combine, width = _REDUCTIONS[reduction][1], k.size(x.shape[depth:])
    copy_input(k, x, out)
    with k.loop(k.size(indices.shape[:-1]), name="row") as row:
        target = k.let("target", slice_number(k, "scatter_nd", x, indices, row, depth) * width)
        source = k.let("source", row * width)
        with k.loop(width, simd=True) as i:
            k.store(out, (target + i,), combine(out.flat(target + i), updates.flat(source + i)))


@op("scatter_nd", numpy=_numpy_scatter_nd, lower=CustomKernel(_scatter_nd), strings=True)
def scatter_nd(
    x: TensorType, indices: TensorType, updates: TensorType, *, depth: int, reduction: str = "none"
) -> TensorType:
    """x with some slices replaced by, or combined with, slices of `updates`.  Each row of `indices` selects a slice of
    x.  If a is the position of a row, x[indices[a]] becomes updates[a], or is combined with updates[a].

    x: any tensor of rank >= depth.
    indices: a tensor of dtype i32 or i64 and of shape (..., depth).  A row contains one index for each of the first
    `depth` axes of x, in [-n, n) for an axis of size n.
    updates: a tensor of the dtype of x.  Its shape is the shape of `indices` without the last dimension, followed by
    the shape of x without the first `depth` dimensions.
    depth: the number of axes of x that the indices select from, at least 0.
    reduction: with "none", the update replaces the slice.  If several updates have the same slice, the last one counts.
    With "add", "mul", "max" or "min", the updates are combined with the slice in row-major order of the updates.  A
    bool x requires "none".
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if an argument has another dtype, or the ranks do not fit together.  Raises RelvmArgumentError
    if the reduction is unknown.  Raises RelvmShapeError if `updates` has another shape, or the last dimension of
    `indices` is not `depth`.  At run time, it raises RelvmIndexError if an index is out of range.
    Source: ONNX ScatterND-18.

    Examples:

        >>> run(
        ...     "scatter_nd(x, indices, updates, depth=1)",
        ...     x=[[1, 2], [3, 4]],
        ...     indices=[[1]],
        ...     updates=[[30, 40]],
        ... )
        [[ 1  2]
         [30 40]]
    """
    check_index_rows("scatter_nd", indices, depth)
    _expect_updates("scatter_nd", x, updates, reduction)
    if x.rank is None or indices.rank is None:
        return x
    expect(x.rank >= depth, "scatter_nd: x has rank {}, expected at least {}", x.rank, depth)
    known = x.shape is not None and indices.shape is not None
    dims = (*indices.known_shape[:-1], *x.known_shape[depth:]) if known else None
    _expect_shape("scatter_nd", updates, indices.rank - 1 + x.rank - depth, dims)
    return x
