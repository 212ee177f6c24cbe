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
from relvm.frontend.onnx.dynamic_sizes import assert_none, count_of, iota, numbers_of, run_time_sizes
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.ir.dtypes import I64


def counted(axes: TensorExpr, rank: int) -> TensorExpr:
    """Replace negative axes of a tensor of rank `rank` by non-negative ones.  Reject out-of-range axes at run time."""
    axes = axes.cast(I64)
    assert_none((axes < -rank).apply(ops.logical_or, axes > rank - 1), f"axes outside [-{rank}, {rank})")
    return (axes < 0).where(axes + rank, axes)


def matches(axes: TensorExpr, rank: int) -> TensorExpr:
    """Compare each axis of a tensor of rank `rank` with each entry of the vector `axes`.

    Return a tensor of type bool[rank, len(axes)], which is true where the axis equals the entry.  Axes that are out of
    range or given twice are rejected at run time.
    """
    found = iota(axes.node, rank, 1).apply(ops.equal, counted(axes, rank))
    assert_none(found.cast(I64).apply(ops.sum, axes=(1,)) > 1, "duplicate axes")
    return found


def chosen_axes(axes: TensorExpr, rank: int) -> TensorExpr:
    """Return the mask of the axes of a tensor of rank `rank` that the vector `axes` contains: bool[rank]."""
    return matches(axes, rank).cast(I64).apply(ops.sum, axes=(1,)) > 0


def placed(found: TensorExpr, numbers: TensorExpr, otherwise: int) -> TensorExpr:
    """Return a vector with one integer for each axis of a tensor.

    found: the result of `matches` for a vector of axes.   numbers: the integers for the axes in this vector, in the
    same order.   otherwise: the integer for all other axes.
    """
    chosen = (found.cast(I64) * numbers).apply(ops.sum, axes=(1,))
    return (found.cast(I64).apply(ops.sum, axes=(1,)) > 0).where(chosen, otherwise)


def rest_of(numbers: TensorExpr, gone: TensorExpr, count: int) -> TensorExpr:
    """Return the elements of the vector `numbers` at which the mask `gone` is false.

    count: the number of these elements.
    """
    shape = numbers.node.shape([count])
    return numbers.apply(ops.gather, gone.apply(ops.logical_not).apply(ops.nonzero, shape), axis=0)


@record
class SplitAxes:
    """A tensor in which each axis is split into a kept axis and an axis to operate along.

    x: the reshaped tensor.   kept: i64[rank], the size of each kept axis.  It is 1 if the axis is chosen for the
    operation.   gone: bool[rank], whether each axis is chosen for the operation.
    """

    x: TensorExpr
    kept: TensorExpr
    gone: TensorExpr

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes along which to operate: the second of each pair."""
        return tuple(range(1, len(self.x.shape), 2))


def parted(x: TensorExpr, gone: TensorExpr) -> SplitAxes:
    """Reshape x so that each of its axes becomes two: a kept axis, and an axis to operate along.

    The shape of x must be known.   gone: bool[rank], whether each axis is chosen for the operation.  The size of a
    chosen axis goes to the second of the two axes, and that of any other axis to the first.  The other of the two has
    size 1.
    """
    sizes = numbers_of(x.node, x.shape)
    kept = gone.where(1, sizes)
    pairs = zip(run_time_sizes(kept), run_time_sizes(gone.where(sizes, 1)), strict=True)
    return SplitAxes(x.reshape(*(dim for pair in pairs for dim in pair)), kept, gone)


def along(x: TensorExpr, axis: TensorExpr) -> TensorExpr:
    """Reshape x to three axes: the merged axes before `axis`, the axis itself, and the merged axes after it.

    The shape of x must be known.  The order of the elements stays the same.   axis: a tensor of one element.
    """
    rank = len(x.shape)
    if count_of(axis, "an axis") != 1:
        raise RelvmUnsupportedError(f"expected an axis of one element, got {axis.type}")
    axis = counted(axis.reshape(1), rank)
    sizes, numbers = numbers_of(x.node, x.shape), iota(x.node, rank)
    sides = (numbers < axis, numbers.apply(ops.equal, axis), numbers > axis)
    parts = [side.where(sizes, 1).apply(ops.prod, keepdims=True) for side in sides]
    return x.reshape(*run_time_sizes(parts[0].apply(ops.concat, *parts[1:], axis=0)))
