"""Operations along axes that are only known at run time.

Each axis is split into a pair of axes.  If the axis is chosen for the operation, the first axis of the pair has size 1,
otherwise the second.  For example, if the first and last axis of a tensor of shape (a, b, c) are chosen, the tensor is
reshaped to (1, a, b, 1, 1, c).  The operation runs along the second axis of every pair.  These axes are known at
compile time.
"""

from __future__ import annotations

import relvm.ops as ops
from relvm.data_classes import record
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_sizes import assert_all_false, dims_as_tensor, iota, known_count, run_time_sizes
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.ir.dtypes import I64


def nonnegative_axes(axes: TensorExpr, rank: int) -> TensorExpr:
    """Replace negative axes, which count from the end, by the equivalent non-negative axes.

    Axes that are out of range for a tensor of rank `rank` raise an error at run time.
    """
    axes = axes.cast(I64)
    assert_all_false((axes < -rank).apply(ops.logical_or, axes > rank - 1), f"axes outside [-{rank}, {rank})")
    return (axes < 0).where(axes + rank, axes)


def match_axes(axes: TensorExpr, rank: int) -> TensorExpr:
    """Return a matrix of type bool[rank, len(axes)] that is true at (i, j) if `axes[j]` is axis i.

    `axes` contains axes of a tensor of rank `rank`.  Axes that are out of range or given twice raise an error at run
    time.
    """
    matched = iota(axes.node, rank, 1).apply(ops.equal, nonnegative_axes(axes, rank))
    assert_all_false(matched.cast(I64).apply(ops.sum, axes=(1,)) > 1, "duplicate axes")
    return matched


def axis_mask(axes: TensorExpr, rank: int) -> TensorExpr:
    """Return a mask of type bool[rank] that is true for each axis that the vector `axes` contains."""
    return match_axes(axes, rank).cast(I64).apply(ops.sum, axes=(1,)) > 0


def scatter_to_axes(matched: TensorExpr, integers: TensorExpr, default: int) -> TensorExpr:
    """Convert a vector with an integer for some axes to a vector with an integer for every axis of a tensor.

    For example, the integers 5 and 7 for the axes 2 and 0 of a tensor of rank 3 become [7, default, 5].

    matched: the result of `match_axes` for the axes that have an integer.
    integers: their integers, in the same order.
    default: the integer for all other axes.
    """
    chosen = (matched.cast(I64) * integers).apply(ops.sum, axes=(1,))
    return (matched.cast(I64).apply(ops.sum, axes=(1,)) > 0).where(chosen, default)


def unmasked_elements(vector: TensorExpr, mask: TensorExpr, count: int) -> TensorExpr:
    """Return the elements of `vector` at the positions at which `mask` is false.

    count: the number of these elements.
    """
    shape = vector.node.shape([count])
    return vector.apply(ops.gather, mask.apply(ops.logical_not).apply(ops.nonzero, shape), axis=0)


@record
class SplitAxes:
    """A tensor in which each axis is split into a pair: a kept axis, and an axis along which an operation runs.

    x: the reshaped tensor, with twice as many axes.
    kept_sizes: i64[rank], the size of each kept axis.  It is 1 if the operation runs along the original axis.
    is_chosen: bool[rank], whether the operation runs along each original axis.
    """

    x: TensorExpr
    kept_sizes: TensorExpr
    is_chosen: TensorExpr

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of `x` along which the operation runs: the second axis of each pair."""
        return tuple(range(1, len(self.x.shape), 2))


def split_axes(x: TensorExpr, is_chosen: TensorExpr) -> SplitAxes:
    """Reshape x so that each axis becomes a pair: a kept axis, and an axis along which an operation runs.

    An axis of size n becomes the pair (1, n) if the operation runs along the axis, otherwise (n, 1).  The shape of x
    must be known.

    is_chosen: bool[rank], whether the operation runs along each axis.
    """
    sizes = dims_as_tensor(x.node, x.shape)
    kept_sizes = is_chosen.where(1, sizes)
    pairs = zip(run_time_sizes(kept_sizes), run_time_sizes(is_chosen.where(sizes, 1)), strict=True)
    return SplitAxes(x.reshape(*(dim for pair in pairs for dim in pair)), kept_sizes, is_chosen)


def merge_around_axis(x: TensorExpr, axis: TensorExpr) -> TensorExpr:
    """Reshape x to rank 3: merge all axes before `axis` into one, and all axes after it.

    The shape of x must be known.   axis: a tensor of one element, the number of an axis.
    """
    rank = len(x.shape)
    if known_count(axis, "an axis") != 1:
        raise RelvmUnsupportedError(f"expected an axis of one element, got {axis.type}")
    axis = nonnegative_axes(axis.reshape(1), rank)
    sizes, numbers = dims_as_tensor(x.node, x.shape), iota(x.node, rank)
    sides = (numbers < axis, numbers.apply(ops.equal, axis), numbers > axis)
    parts = [side.where(sizes, 1).apply(ops.prod, keepdims=True) for side in sides]
    return x.reshape(*run_time_sizes(parts[0].apply(ops.concat, *parts[1:], axis=0)))
