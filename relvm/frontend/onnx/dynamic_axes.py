"""Axes that only the machine knows.

A tensor of sizes (a, b, c) is seen as one of sizes (1 * a, b * 1, 1 * c): what is done along an axis that is chosen at
run time is done along axes that are known, whose sizes are 1 where they are not chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_sizes import count_of, none_of, numbers_of, places, run_time_sizes
from relvm.frontend.onnx.tensor_expr import Term
from relvm.ir.dtypes import I64


def counted(axes: Term, rank: int) -> Term:
    """Axes of a tensor of that rank, counted from the front; that they are axes of it is checked at run time."""
    axes = axes.cast(I64)
    none_of((axes < -rank).apply(ops.logical_or, axes > rank - 1), f"axes outside [-{rank}, {rank})")
    return (axes < 0).chosen(axes + rank, axes)


def matches(axes: Term, rank: int) -> Term:
    """Whether each axis of a tensor of that rank is each of `axes`, of rank 1: bool[rank, count].  That all lie inside
    and none is given twice is checked at run time."""
    found = places(axes.node, rank, 1).apply(ops.equal, counted(axes, rank))
    none_of(found.cast(I64).apply(ops.sum, axes=(1,)) > 1, "axes given twice")
    return found


def chosen_axes(axes: Term, rank: int) -> Term:
    """Whether each axis is one of `axes`, of rank 1: bool[rank]."""
    return matches(axes, rank).cast(I64).apply(ops.sum, axes=(1,)) > 0


def placed(found: Term, numbers: Term, otherwise: int) -> Term:
    """The number of each axis: that of the entry which `matches` found for it, or another where there is none."""
    chosen = (found.cast(I64) * numbers).apply(ops.sum, axes=(1,))
    return (found.cast(I64).apply(ops.sum, axes=(1,)) > 0).chosen(chosen, otherwise)


def rest_of(numbers: Term, gone: Term, count: int) -> Term:
    """The `count` numbers that are left without those where `gone` holds."""
    shape = numbers.node.shape([count])
    return numbers.apply(ops.gather, gone.apply(ops.logical_not).apply(ops.nonzero, shape), axis=0)


@dataclass(frozen=True, eq=False)
class Parted:
    """A tensor each of whose axes is two: one of the sizes that stay, then one of those along which something is done.

    kept: i64[rank], the sizes that stay.   gone: bool[rank], which axes were chosen.
    """

    x: Term
    kept: Term
    gone: Term

    @property
    def axes(self) -> tuple[int, ...]:
        """Those along which something is done."""
        return tuple(range(1, len(self.x.shape), 2))


def parted(x: Term, gone: Term) -> Parted:
    """x, of known sizes, parted by the axes where `gone` holds: bool[rank]."""
    sizes = numbers_of(x.node, x.shape)
    kept = gone.chosen(1, sizes)
    pairs = zip(run_time_sizes(kept), run_time_sizes(gone.chosen(sizes, 1)), strict=True)
    return Parted(x.reshape(*(dim for pair in pairs for dim in pair)), kept, gone)


def along(x: Term, axis: Term) -> Term:
    """x, of known sizes, with three axes: all before one axis, that axis, and all behind it.

    axis: of one element.   The order of the elements stays.
    """
    rank = len(x.shape)
    if count_of(axis, "an axis") != 1:
        raise RelvmUnsupportedError(f"an axis of type {axis.type}, expected one number")
    axis = counted(axis.reshape(1), rank)
    sizes, numbers = numbers_of(x.node, x.shape), places(x.node, rank)
    sides = (numbers < axis, numbers.apply(ops.equal, axis), numbers > axis)
    parts = [side.chosen(sizes, 1).apply(ops.prod, keepdims=True) for side in sides]
    return x.reshape(*run_time_sizes(parts[0].apply(ops.concat, *parts[1:], axis=0)))
