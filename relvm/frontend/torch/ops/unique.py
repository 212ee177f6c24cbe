"""Distinct elements, and distinct slices along an axis."""

from __future__ import annotations

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.common.runs import begins_of_runs
from relvm.frontend.torch.ops.indexing import flat_positions
from relvm.frontend.torch.ops.shapes import transposed
from relvm.frontend.torch.registry import Node, axis_of, converts, shape_of
from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr, Shape
from relvm.ir.symbolic import AnyDim, product


@converts("_unique2", "_unique")
def _unique2(
    node: Node, self: Expr, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Expr, ...]:
    """Returns sorted elements in any case.  Each NaN is distinct."""
    flat = node.reshaped(self, (product(shape_of(self)),))
    return _distinct(node, flat, 0, shape_of(self), sorts=True, inverse=return_inverse, counts=return_counts)


@converts("unique_dim")
def _unique_dim(
    node: Node,
    self: Expr,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Expr, ...]:
    """Returns slices in lexicographic order in any case.  Each NaN is distinct."""
    axis = axis_of(dim, len(shape_of(self)))
    return _distinct(node, self, axis, (shape_of(self)[axis],), sorts=True, inverse=True, counts=True)


@converts("unique_consecutive")
def _unique_consecutive(
    node: Node, self: Expr, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Expr, ...]:
    """Returns the first element, or slice, of each run of equal ones.  Each NaN is distinct."""
    if dim is None:
        flat = node.reshaped(self, (product(shape_of(self)),))
        return _distinct(node, flat, 0, shape_of(self), sorts=False, inverse=return_inverse, counts=return_counts)
    rank = len(shape_of(self))
    if dim == -1 and rank > 1:
        raise RelvmUnsupportedError(
            "PyTorch exports wrong shapes of the results for the axis -1, so it is not supported;"
            f" pass {rank - 1}, which is the same axis"
        )
    return _consecutive_slices(node, self, dim)


@converts("unique_dim_consecutive")
def _unique_dim_consecutive(
    node: Node, self: Expr, dim: int, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Expr, ...]:
    """Returns the first slice of each run of equal ones.  Each NaN is distinct."""
    return _consecutive_slices(node, self, dim)


def _consecutive_slices(node: Node, x: Expr, dim: int) -> tuple[Expr, ...]:
    axis = axis_of(dim, len(shape_of(x)))
    return _distinct(node, x, axis, (shape_of(x)[axis],), sorts=False, inverse=True, counts=True)


def _distinct(
    node: Node, x: Expr, axis: int, numbered: tuple[AnyDim, ...], *, sorts: bool, inverse: bool, counts: bool
) -> tuple[Expr, ...]:
    """Return the distinct slices of x along an axis, the number of the slice that equals each one, and their counts.

    numbered: the shape of the second result.
    sorts: whether to sort the slices first.  Otherwise, slices are compared with their neighbors only.
    inverse, counts: whether to compute the second and the third result.  Otherwise, they are empty.
    """
    shape = shape_of(x)
    size = shape[axis]
    order = [axis, *(other for other in range(len(shape)) if other != axis)]
    rows = node.emit(node.wide(x))
    rows = node.cast(rows, I64) if rows.known_element_type.is_bool else rows
    rows = node.reshaped(node.emit(transposed(rows, order)), (size, product(shape[:axis] + shape[axis + 1 :])))
    positions: Expr | None = None
    if sorts:
        positions = node.emit(ops.lexsort_rows(rows))
        rows = node.emit(ops.gather(rows, positions, axis=0))
    begins = begins_of_runs(node.emit, rows, nan_equals_nan=False)
    starts = flat_positions(node, begins)
    firsts = starts if positions is None else node.emit(ops.gather(positions, starts, axis=0))
    empty = node.full(0, (0,), I64)
    number, lengths = empty, empty
    if inverse:
        number = node.emit(ops.subtract(ops.cumsum(node.cast(begins, I64), axis=0), 1))
        if positions is not None:
            number = node.emit(ops.scatter_elements(positions, positions, number, axis=0))
        number = node.reshaped(number, numbered)
    if counts:
        ends = node.emit(ops.concat(starts, node.vector([size]), axis=0))
        following = node.emit(ops.add(ops.iota(Shape(shape_of(starts))), 1))
        lengths = node.emit(ops.subtract(ops.gather(ends, following, axis=0), starts))
    return ops.gather(x, firsts, axis=axis), number, lengths
