"""Axes that only the machine knows.

A tensor of sizes (a, b, c) is seen as one of sizes (1 * a, b * 1, 1 * c): what is done along an axis that is chosen at
run time is done along axes that are known, whose sizes are 1 where they are not chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_sizes import assert_none, count_of, iota, numbers_of, run_time_sizes
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.ir.dtypes import I64


def counted(axes: TensorExpr, rank: int) -> TensorExpr:
    """Axes of a tensor of that rank, counted from the front; that they are axes of it is checked at run time."""
    axes = axes.cast(I64)
    assert_none((axes < -rank).apply(ops.logical_or, axes > rank - 1), f"axes outside [-{rank}, {rank})")
    return (axes < 0).where(axes + rank, axes)


def matches(axes: TensorExpr, rank: int) -> TensorExpr:
    """Whether each axis of a tensor of that rank is each of `axes`, of rank 1: bool[rank, count].  That all lie inside
    and none is given twice is checked at run time."""
    found = iota(axes.node, rank, 1).apply(ops.equal, counted(axes, rank))
    assert_none(found.cast(I64).apply(ops.sum, axes=(1,)) > 1, "axes given twice")
    return found


def chosen_axes(axes: TensorExpr, rank: int) -> TensorExpr:
    """Whether each axis is one of `axes`, of rank 1: bool[rank]."""
    return matches(axes, rank).cast(I64).apply(ops.sum, axes=(1,)) > 0


def placed(found: TensorExpr, numbers: TensorExpr, otherwise: int) -> TensorExpr:
    """The number of each axis: that of the entry which `matches` found for it, or another where there is none."""
    chosen = (found.cast(I64) * numbers).apply(ops.sum, axes=(1,))
    return (found.cast(I64).apply(ops.sum, axes=(1,)) > 0).where(chosen, otherwise)


def rest_of(numbers: TensorExpr, gone: TensorExpr, count: int) -> TensorExpr:
    """The `count` numbers that are left without those where `gone` holds."""
    shape = numbers.node.shape([count])
    return numbers.apply(ops.gather, gone.apply(ops.logical_not).apply(ops.nonzero, shape), axis=0)


@dataclass(frozen=True, eq=False)
class SplitAxes:
    """A tensor each of whose axes is two: one of the sizes that stay, then one of those along which something is done.

    kept: i64[rank], the sizes that stay.   gone: bool[rank], which axes were chosen.
    """

    x: TensorExpr
    kept: TensorExpr
    gone: TensorExpr

    @property
    def axes(self) -> tuple[int, ...]:
        """Those along which something is done."""
        return tuple(range(1, len(self.x.shape), 2))


def parted(x: TensorExpr, gone: TensorExpr) -> SplitAxes:
    """x, of known sizes, parted by the axes where `gone` holds: bool[rank]."""
    sizes = numbers_of(x.node, x.shape)
    kept = gone.where(1, sizes)
    pairs = zip(run_time_sizes(kept), run_time_sizes(gone.where(sizes, 1)), strict=True)
    return SplitAxes(x.reshape(*(dim for pair in pairs for dim in pair)), kept, gone)


def along(x: TensorExpr, axis: TensorExpr) -> TensorExpr:
    """x, of known sizes, with three axes: all before one axis, that axis, and all behind it.

    axis: of one element.   The order of the elements stays.
    """
    rank = len(x.shape)
    if count_of(axis, "an axis") != 1:
        raise RelvmUnsupportedError(f"an axis of type {axis.type}, expected one number")
    axis = counted(axis.reshape(1), rank)
    sizes, numbers = numbers_of(x.node, x.shape), iota(x.node, rank)
    sides = (numbers < axis, numbers.apply(ops.equal, axis), numbers > axis)
    parts = [side.where(sizes, 1).apply(ops.prod, keepdims=True) for side in sides]
    return x.reshape(*run_time_sizes(parts[0].apply(ops.concat, *parts[1:], axis=0)))
