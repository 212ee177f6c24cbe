"""Gather: elements and slices at computed positions."""

from __future__ import annotations

from functools import partial

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmIndexError
from relvm.ir.dtypes import I32, I64
from relvm.ir.loop_ir import Buffer, Literal, Scalar, as_scalar, maximum, minimum
from relvm.ir.operator import claim_at_most, expect, op
from relvm.ir.symbolic import AnyDim
from relvm.ir.type_rules import expect_axis, expect_equal_dims, expect_integers, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import (
    CustomKernel,
    GatherKernel,
    nonnegative_index,
    parallel_loop_nest,
)


def expect_indices(op: str, indices: TensorType) -> None:
    """Check that `indices` has dtype i32 or i64."""
    expect_tensor(op, indices=indices)
    expect(indices.dtype in (I32, I64), "{}: indices has dtype {}, expected i32 or i64", op, indices.dtype)


def expect_from_end(op: str, from_end: object) -> None:
    """Check that the attribute `from_end` is a bool."""
    is_bool = isinstance(from_end, bool)
    expect(is_bool, "{}: from_end is {!r}, expected a bool", op, from_end, error=RelvmArgumentError)


def numpy_index_from_front(op: str, index: int, axis: int, size: int, from_end: bool) -> int:
    """Convert `index` to an index in [0, size).  Raise RelvmIndexError if it is out of range.

    from_end: whether a negative index counts from the end of the axis.  Otherwise, it is out of range.
    """
    if not (-size if from_end else 0) <= index < size:
        raise RelvmIndexError(f"{op}: index {index} is outside axis {axis} of size {size}")
    return int(index % size)


def index_from_front(
    k: KernelBuilder, op: str, index: Scalar, axis: int, size: AnyDim, from_end: bool = True
) -> Scalar:
    """Generate code that converts `index` to an index in [0, size), and fails if it is out of range.

    from_end: whether a negative index counts from the end of the axis.  Otherwise, it is out of range.
    """
    count, index = as_scalar(size, I64), k.let("index", index.to(I64))
    outside = (index < (-count if from_end else 0)).logical_or(index >= count)
    k.fail(outside, "INDEX_ERROR", f"{op}: index %lld is outside axis {axis} of size %lld", index, count)
    return nonnegative_index(index, count) if from_end else index


def check_indices(k: KernelBuilder, indices: Buffer, size: AnyDim, axis: int, from_end: bool, *, op: str) -> None:
    """Generate code that fails if an element of `indices` is not an index of an axis of `size` elements.

    A SIMD loop finds the least and the largest index.  If one of them is out of range, another loop finds the first
    index that is, for the message.

    from_end: whether a negative index counts from the end of the axis.  Otherwise, it is out of range.
    """
    count, dtype = as_scalar(size, I64), indices.dtype
    least, most = (k.variable(name, Literal(0, dtype)) for name in ("least", "most"))
    with k.loop(k.size(indices.shape), name="n", simd=True, reduce=[("min", least), ("max", most)]) as n:
        index = k.let("index", indices.flat(n))
        k.assign(least, minimum(index, least))
        k.assign(most, maximum(index, most))
    lowest = -count if from_end else Literal(0, I64)
    with (
        k.branch((least.to(I64) < lowest).logical_or(most.to(I64) >= count)),
        k.loop(k.size(indices.shape), name="n") as n,
    ):
        index_from_front(k, op, indices.flat(n), axis, size, from_end)


# ---- slices along an axis ----


def _numpy_gather(x: np.ndarray, indices: np.ndarray, *, axis: int, from_end: bool) -> np.ndarray:
    for index in indices.flat:
        numpy_index_from_front("gather", index, axis % x.ndim, x.shape[axis], from_end)
    return np.take(x, indices, axis)


def _gather(k: KernelBuilder, inputs, outputs, *, axis: int, from_end: bool) -> None:
    """Generate the kernel of `gather`.  It checks all indices before it copies anything."""
    (x, indices), (out,) = inputs, outputs
    axis %= len(x.shape)
    size, count, width = k.size(x.shape[axis : axis + 1]), k.size(indices.shape), k.size(x.shape[axis + 1 :])
    check_indices(k, indices, x.shape[axis], axis, from_end, op="gather")
    with parallel_loop_nest(k, [k.size(x.shape[:axis]), count], width * 4 + 4) as (row, n):
        index = k.let("index", indices.flat(n).to(I64))
        source = k.let("source", (row * size + (nonnegative_index(index, size) if from_end else index)) * width)
        target = k.let("target", (row * count + n) * width)
        with k.loop(width, simd=True) as i:
            k.store(out, (target + i,), x.flat(source + i))


@op("gather", numpy=_numpy_gather, lower=GatherKernel(_gather, check=partial(check_indices, op="gather")), moves=True)
def gather(x: TensorType, indices: TensorType, *, axis: int = 0, from_end: bool = True) -> TensorType:
    """The slices of x along an axis at the given indices.

    x: any tensor of rank >= 1.
    indices: a tensor of dtype i32 or i64.  Each index is in [-n, n), where n is the size of the axis.
    axis: the axis, in [-rank, rank).
    from_end: whether a negative index counts from the end of the axis.  Otherwise, it is out of range.
    Result: a tensor of the dtype of x.  Its shape is that of x, with the dimension of `axis` replaced by the shape of
    `indices`.
    Raises RelvmTypeError if `indices` has another dtype or the axis is out of range.  Raises RelvmArgumentError if
    `from_end` is not a bool.  At run time, it raises RelvmIndexError if an index is out of range.
    Source: ONNX Gather-13.

    Examples:

        >>> run("gather(x, indices)", x=[10, 20, 30], indices=[[0, 2], [-1, 1]])
        [[10 30]
         [30 20]]
    """
    expect_tensor("gather", x=x, indices=indices)
    expect(indices.dtype in (I32, I64), "gather: indices has dtype {}, expected i32 or i64", indices.dtype)
    expect_from_end("gather", from_end)
    if x.rank is None:
        return TensorType(x.dtype)
    at = expect_axis("gather", axis, x.rank)
    if x.shape is None or indices.shape is None:
        return TensorType(x.dtype, None, None if indices.rank is None else x.rank - 1 + indices.rank)
    return TensorType(x.dtype, (*x.shape[:at], *indices.shape, *x.shape[at + 1 :]))


# ---- one element for each index ----


def check_element_indices(op: str, x: TensorType, indices: TensorType, axis: int) -> int | None:
    """Check the shapes of x and `indices` as far as they are known.  Return `axis` counted from 0, or None for unknown
    ranks.

    The ranks must be equal.  Along each axis other than `axis`, `indices` must be at most as long as x.
    """
    expect_tensor(op, x=x)
    expect_indices(op, indices)
    rank = indices.rank if x.rank is None else x.rank
    if rank is None:
        return None
    expect(indices.rank in (None, rank), "{}: x has rank {}, but indices has rank {}", op, rank, indices.rank)
    at = expect_axis(op, axis, rank)
    for i, (longest, size) in enumerate(zip(x.shape or (), indices.shape or (), strict=False)):
        if i != at:
            claim_at_most(size, longest, f"{op}: dimension {i} of indices is {{}}, which exceeds that of x, {{}}")
    return at


def numpy_positions(op: str, x: np.ndarray, indices: np.ndarray, axis: int, from_end: bool = True):
    """Yield the position of each index in `indices`, and the position in x to which the index refers."""
    axis %= x.ndim
    for at in np.ndindex(indices.shape):
        yield (
            at,
            (*at[:axis], numpy_index_from_front(op, int(indices[at]), axis, x.shape[axis], from_end), *at[axis + 1 :]),
        )


def _numpy_gather_elements(x: np.ndarray, indices: np.ndarray, *, axis: int, from_end: bool) -> np.ndarray:
    result = np.empty(indices.shape, x.dtype)
    for at, place in numpy_positions("gather_elements", x, indices, axis, from_end):
        result[at] = x[place]
    return result


def _gather_elements(k: KernelBuilder, inputs, outputs, *, axis: int, from_end: bool) -> None:
    """Generate the kernel of `gather_elements`.  It checks all indices before it copies anything."""
    (x, indices), (out,) = inputs, outputs
    axis %= len(x.shape)
    size = as_scalar(x.shape[axis], I64)
    check_indices(k, indices, x.shape[axis], axis, from_end, op="gather_elements")
    with parallel_loop_nest(k, indices.shape, k.size(indices.shape[2:]) * 8, simd=True) as counters:
        index = k.let("index", indices[tuple(counters)].to(I64))
        place = nonnegative_index(index, size) if from_end else index
        k.store(out, counters, x[(*counters[:axis], place, *counters[axis + 1 :])])


@op("gather_elements", numpy=_numpy_gather_elements, lower=CustomKernel(_gather_elements), moves=True)
def gather_elements(x: TensorType, indices: TensorType, *, axis: int, from_end: bool = True) -> TensorType:
    """The elements of x at positions that `indices` selects along `axis`.  For axis 0, result[i, j] is
    x[indices[i, j], j].  For axis 1, result[i, j] is x[i, indices[i, j]].

    x: any tensor of rank >= 1.
    indices: a tensor of dtype i32 or i64 and of the same rank as x.  Along each axis other than `axis`, its size is at
    most the size of x.  Each index is in [-n, n), where n is the size of x along `axis`.
    axis: the axis, in [-rank, rank).
    from_end: whether a negative index counts from the end of the axis.  Otherwise, it is out of range.
    Result: a tensor with the dtype of x and the shape of `indices`.
    Raises RelvmTypeError if `indices` has another dtype, the ranks differ, or the axis is out of range.  Raises
    RelvmArgumentError if `from_end` is not a bool.  Raises RelvmShapeError if `indices` is longer than x along an axis
    other than `axis`.  At run time, it raises RelvmIndexError if an index is out of range.
    Source: ONNX GatherElements-13.

    Examples:

        >>> run(
        ...     "gather_elements(x, indices, axis=1)",
        ...     x=[[1, 2], [3, 4]],
        ...     indices=[[0, 0], [1, 0]],
        ... )
        [[1 1]
         [4 3]]
    """
    check_element_indices("gather_elements", x, indices, axis)
    expect_from_end("gather_elements", from_end)
    return TensorType(x.dtype, indices.shape, x.rank if indices.rank is None else indices.rank)


# ---- one slice for each row of indices ----


def check_index_rows(op: str, indices: TensorType, depth: int) -> None:
    """Check that `indices` has shape (..., depth)."""
    expect_indices(op, indices)
    expect_integers(op, "depth", (depth,))
    expect(depth >= 0, "{}: depth is {}, expected at least 0", op, depth)
    expect(indices.rank != 0, "{}: indices has rank 0, expected at least 1", op)
    if indices.shape is not None:
        expect_equal_dims(op, "the last dimension of indices and depth differ", indices.shape[-1], depth)


def slice_number(k: KernelBuilder, op: str, x: Buffer, indices: Buffer, row: Scalar, depth: int) -> Scalar:
    """Generate code that computes the number of the slice of x that a row of `indices` selects.

    Slices are numbered in row-major order over the first `depth` axes of x.

    row: the number of the row, which has `depth` elements.
    """
    start: Scalar = Literal(0, I64)
    for axis in range(depth):
        index = index_from_front(k, op, indices.flat(row * depth + axis), axis, x.shape[axis])
        start = k.let("slice", start * as_scalar(x.shape[axis], I64) + index)
    return start


def numpy_slices(op: str, x: np.ndarray, indices: np.ndarray):
    """Yield the position of each row of `indices`, and the index tuple of the slice of x that the row selects.

    A row consists of the indices along the last axis.  Raise RelvmIndexError if an index is out of range.
    """
    for at in np.ndindex(indices.shape[:-1]):
        yield at, tuple(numpy_index_from_front(op, i, axis, x.shape[axis], True) for axis, i in enumerate(indices[at]))


def _numpy_gather_nd(x: np.ndarray, indices: np.ndarray, *, depth: int) -> np.ndarray:
    result = np.empty((*indices.shape[:-1], *x.shape[depth:]), x.dtype)
    for at, place in numpy_slices("gather_nd", x, indices):
        result[at] = x[place]
    return result


def _gather_nd(k: KernelBuilder, inputs, outputs, *, depth: int) -> None:
    (x, indices), (out,) = inputs, outputs
    width = k.size(x.shape[depth:])
    with k.loop(k.size(indices.shape[:-1]), name="row") as row:
        source = k.let("source", slice_number(k, "gather_nd", x, indices, row, depth) * width)
        target = k.let("target", row * width)
        with k.loop(width, simd=True) as i:
            k.store(out, (target + i,), x.flat(source + i))


@op("gather_nd", numpy=_numpy_gather_nd, lower=CustomKernel(_gather_nd), moves=True)
def gather_nd(x: TensorType, indices: TensorType, *, depth: int) -> TensorType:
    """The slices of x that the rows of `indices` select: result[a] is x[indices[a]], if a is the position of a row.

    x: any tensor of rank >= depth.
    indices: a tensor of dtype i32 or i64 and of shape (..., depth).  A row contains one index for each of the first
    `depth` axes of x, in [-n, n) for an axis of size n.
    depth: the number of axes of x that the indices select from, at least 0.
    Result: a tensor of the dtype of x.  Its shape is the shape of `indices` without the last dimension, followed by the
    shape of x without the first `depth` dimensions.
    Raises RelvmTypeError if `indices` has another dtype, or a rank is too small.  Raises RelvmShapeError if the last
    dimension of `indices` is not `depth`.  At run time, it raises RelvmIndexError if an index is out of range.
    Source: ONNX GatherND-13 without batches.

    Examples:

        >>> run("gather_nd(x, indices, depth=2)", x=[[1, 2], [3, 4]], indices=[[0, 1], [1, 1]])
        [2 4]
    """
    expect_tensor("gather_nd", x=x)
    check_index_rows("gather_nd", indices, depth)
    if x.rank is None or indices.rank is None:
        return TensorType(x.dtype)
    expect(x.rank >= depth, "gather_nd: x has rank {}, expected at least {}", x.rank, depth)
    if x.shape is None or indices.shape is None:
        return TensorType(x.dtype, None, indices.rank - 1 + x.rank - depth)
    return TensorType(x.dtype, (*indices.shape[:-1], *x.shape[depth:]))
