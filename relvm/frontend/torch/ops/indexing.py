"""Gathers, scatters and indexing by tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.torch.ops.shapes import (
    Layout,
    diagonal,
    in_storage_order,
    layout_of,
    sliced,
    strided_positions,
    transposed,
)
from relvm.frontend.torch.registry import Node, axis_of, converts, shape_of, tensor_names
from relvm.ir.dtypes import BOOL, I32, I64, U8
from relvm.ir.expr import Expr, Shape
from relvm.ir.symbolic import AnyDim, product
from relvm.ir.types import ShapeType


def _indices(node: Node, x: Expr) -> Expr:
    return x if x.known_element_type in (I32, I64) else node.cast(x, I64)


@converts("index_select", "index_select_copy")
def _index_select(node: Node, self: Expr, dim: int, index: Expr) -> Expr:
    if not shape_of(self):
        return self
    axis = axis_of(dim, len(shape_of(self)))
    index = _indices(node, index)
    if not shape_of(index):
        index = node.reshaped(index, (1,))
    return ops.gather(self, index, axis=axis, from_end=False)


@converts("gather")
def _gather(node: Node, self: Expr, dim: int, index: Expr, *, sparse_grad: bool = False) -> Expr:
    if not shape_of(self):
        return node.broadcast(self, shape_of(index))
    index = _indices(node, index)
    if not shape_of(index):
        index = node.reshaped(index, (1,))
        return node.reshaped(node.emit(_gathered(node, self, 0, index)), ())
    return _gathered(node, self, axis_of(dim, len(shape_of(self))), index)


def _cut_to(node: Node, x: Expr, shape: Sequence[AnyDim], axis: int) -> Expr:
    """Cut x to the sizes in `shape` along all axes except `axis`."""
    for other, (size, wanted) in enumerate(zip(shape_of(x), shape, strict=True)):
        if other != axis and size != wanted:
            x = node.emit(sliced(node, x, other, 0, wanted))
    return x


def _gathered(node: Node, x: Expr, axis: int, index: Expr) -> Expr:
    return ops.gather_elements(_cut_to(node, x, shape_of(index), axis), index, axis=axis, from_end=False)


@converts("take_along_dim")
def _take_along_dim(node: Node, self: Expr, indices: Expr, dim: int | None = None) -> Expr:
    if dim is None:
        flat = node.reshaped(self, (product(shape_of(self)),))
        return ops.gather(flat, node.reshaped(_indices(node, indices), (product(shape_of(indices)),)), axis=0)
    axis = axis_of(dim, len(shape_of(self)))
    x_shape, index_shape = list(shape_of(self)), list(shape_of(indices))
    for other in range(len(x_shape)):
        if other != axis:
            x_shape[other] = index_shape[other] = index_shape[other] if x_shape[other] == 1 else x_shape[other]
    x, index = node.broadcast(self, x_shape), node.broadcast(_indices(node, indices), index_shape)
    return ops.gather_elements(x, index, axis=axis)


@converts("take")
def _take(node: Node, self: Expr, index: Expr) -> Expr:
    return ops.gather(node.reshaped(self, (product(shape_of(self)),)), _indices(node, index), axis=0)


@converts("embedding")
def _embedding(
    node: Node,
    weight: Expr,
    indices: Expr,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Expr:
    return ops.gather(weight, _indices(node, indices), axis=0, from_end=False)


# ---- index: x[a, :, b] ----


def _as_positions(node: Node, x: Expr, indices: Sequence[Expr | None]) -> list[Expr | None]:
    """Return indices with masks replaced by the positions of their true elements."""
    found: list[Expr | None] = []
    for index in indices:
        if index is None or index.known_element_type not in (BOOL, U8):
            found.append(None if index is None else _indices(node, index))
            continue
        found += mask_positions(node, node.cast(index, BOOL))
    return found


def mask_positions(node: Node, mask: Expr) -> list[Expr]:
    """Return the positions of the true elements of a mask, one vector for each axis."""
    shape = shape_of(mask)
    flat = flat_positions(node, mask)
    found: list[Expr] = []
    for axis in reversed(range(len(shape))):
        size = node.number(shape[axis], I64)
        found.insert(0, flat if axis == 0 else node.emit(ops.modulo(flat, size)))
        if axis:
            flat = node.emit(ops.divide(flat, size))
    return found


def flat_positions(node: Node, mask: Expr) -> Expr:
    """Return the positions of the true elements in row-major order."""
    mask = node.emit(mask)
    if not shape_of(mask):
        mask = node.reshaped(mask, (1,))
    total = node.emit(ops.sum(node.cast(mask, I64)))
    return node.emit(ops.nonzero(mask, Shape((as_dim(node, total),))))


@converts("nonzero")
def _nonzero(node: Node, self: Expr) -> Expr:
    mask = node.cast(self, BOOL)
    columns = mask_positions(node, mask)
    if not columns:
        return node.full(0, (shape_of(flat_positions(node, mask))[0], 0), I64)
    wide = [node.reshaped(column, (shape_of(column)[0], 1)) for column in columns]
    return wide[0] if len(wide) == 1 else ops.concat(*wide, axis=1)


@converts("nonzero_numpy")
def _nonzero_numpy(node: Node, self: Expr) -> tuple[Expr, ...]:
    x = self if shape_of(self) else node.reshaped(self, (1,))
    return tuple(mask_positions(node, node.cast(x, BOOL)))


@converts("where")
def _where(node: Node, condition: Expr) -> tuple[Expr, ...]:
    return _nonzero_numpy(node, condition)


@converts("argwhere")
def _argwhere(node: Node, self: Expr) -> Expr:
    return _nonzero(node, self)


@converts("masked_select")
def _masked_select(node: Node, self: Expr, mask: Expr) -> Expr:
    from relvm.ir.type_rules import broadcast_dims

    shape = broadcast_dims("masked_select", (shape_of(self), shape_of(mask)))
    if not shape:
        shape = (1,)
    x, flags = node.broadcast(self, shape), node.broadcast(mask, shape)
    count = product(shape)
    (at,) = mask_positions(node, node.reshaped(flags, (count,)))
    return ops.gather(node.reshaped(x, (count,)), at, axis=0)


def _indexed_axes(indices: Sequence[Expr | None]) -> list[int]:
    return [axis for axis, index in enumerate(indices) if index is not None]


def _front(node: Node, x: Expr, axes: Sequence[int]) -> tuple[Expr, list[int]]:
    """Return x with the given axes in front, and the order of its axes."""
    order = [*axes, *(axis for axis in range(len(shape_of(x))) if axis not in axes)]
    return node.emit(transposed(x, order)), order


def _index_rows(
    node: Node, x: Expr, indices: Sequence[Expr | None], axes: Sequence[int]
) -> tuple[Expr, tuple[AnyDim, ...]]:
    """Broadcast the indices to a common shape, and stack them along a new last axis, as gather_nd expects them.

    Return the stacked indices, and the common shape.

    axes: the axes of x that have an index in `indices`.
    """
    from relvm.ir.type_rules import broadcast_dims

    chosen = [index for axis in axes if (index := indices[axis]) is not None]
    shape = broadcast_dims("index", [shape_of(index) for index in chosen])
    rank = len(shape)
    columns = [
        node.emit(ops.expand_dims(node.broadcast(node.cast(index, I64), shape), axes=(rank,))) for index in chosen
    ]
    return (columns[0] if len(columns) == 1 else node.emit(ops.concat(*columns, axis=rank))), shape


@converts("index.Tensor", "_unsafe_index.Tensor")
def _index(node: Node, self: Expr, indices: Sequence[Expr | None]) -> Expr:
    found = _as_positions(node, self, indices)
    axes = _indexed_axes(found)
    if not axes:
        return self
    x, _ = _front(node, self, axes)
    if len(axes) == 1:
        index = found[axes[0]]
        assert index is not None
        rank, result = len(shape_of(index)), ops.gather(x, index, axis=0)
    else:
        rows, shape = _index_rows(node, self, found, axes)
        rank, result = len(shape), ops.gather_nd(x, rows, depth=len(axes))
    return _with_index_axes(node, node.emit(result), axes, rank)


def _is_adjacent(axes: Sequence[int]) -> bool:
    return list(axes) == list(range(axes[0], axes[0] + len(axes)))


def _with_index_axes(node: Node, x: Expr, axes: Sequence[int], rank: int) -> Expr:
    """If the indexed axes are adjacent, move the first `rank` axes of x, those of the indices, to their position."""
    if not _is_adjacent(axes) or axes[0] == 0:
        return x
    total = len(shape_of(x))
    before = list(range(rank, rank + axes[0]))
    return transposed(x, [*before, *range(rank), *range(rank + axes[0], total)])


@converts("index_put", "_unsafe_index_put", "_index_put_impl")
def _index_put(
    node: Node, self: Expr, indices: Sequence[Expr | None], values: Expr, accumulate: bool = False, unsafe: bool = False
) -> Expr:
    values = node.cast(values, self.known_element_type)
    masks = [index for index in indices if index is not None]
    if len(masks) == 1 and masks[0].known_element_type == BOOL and not accumulate and product(shape_of(values)) == 1:
        axis = indices.index(masks[0])
        mask_shape = shape_of(masks[0])
        trailing = len(shape_of(self)) - axis - len(mask_shape)
        mask = node.reshaped(masks[0], (*mask_shape, *(1,) * trailing))
        return ops.where(mask, node.reshaped(values, ()), self)
    found = _as_positions(node, self, indices)
    axes = _indexed_axes(found)
    if not axes:
        shape = shape_of(self)
        updates = node.broadcast(values, shape)
        return ops.add(self, updates) if accumulate else updates
    index = found[axes[0]]
    if len(axes) == 1 and index is not None and len(shape_of(index)) == 1:  # in place, without moving the axis
        (axis,) = axes
        own = shape_of(self)
        source = node.emit(_as_updates(node, values, (*own[:axis], *shape_of(index), *own[axis + 1 :])))
        return _indexed_update(node, self, axis, index, source, "add" if accumulate else "none", from_end=True)
    x, order = _front(node, self, axes)
    rows, shape = _index_rows(node, self, found, axes)
    rest = shape_of(x)[len(axes) :]
    rank = len(shape)
    if _is_adjacent(axes) and axes[0] > 0:
        first = axes[0]
        placed = (*rest[:first], *shape, *rest[first:])
        updates = _as_updates(node, values, placed)
        updates = node.emit(
            transposed(updates, [*range(first, first + rank), *range(first), *range(first + rank, len(placed))])
        )
    else:
        updates = _as_updates(node, values, (*shape, *rest))
    result = node.emit(_scattered_rows(node, x, rows, updates, len(axes), accumulate))
    back = [order.index(axis) for axis in range(len(order))]
    return transposed(result, back)


def _as_updates(node: Node, values: Expr, shape: Sequence[AnyDim]) -> Expr:
    """Return values broadcast to a shape.

    Where a size is the number of true elements of a mask, it is checked at run time.
    """
    own = shape_of(values)
    wanted = shape[len(shape) - len(own) :]
    sizes = [size if size == 1 or isinstance(other, int) else other for size, other in zip(own, wanted, strict=True)]
    return node.broadcast(node.importer.with_shape(node.emit(values), sizes), shape)


def _scattered_rows(node: Node, x: Expr, rows: Expr, updates: Expr, depth: int, accumulate: bool) -> Expr:
    if accumulate and x.known_element_type.is_bool:
        wide = node.emit(ops.scatter_nd(node.cast(x, I64), rows, node.cast(updates, I64), depth=depth, reduction="add"))
        return node.cast(wide, BOOL)
    return ops.scatter_nd(x, rows, updates, depth=depth, reduction="add" if accumulate else "none")


# ---- scatter ----

_REDUCTIONS = {"add": "add", "multiply": "mul", "sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def scattered(
    node: Node, x: Expr, dim: int, index: Expr, updates: Expr, reduction: str, *, from_end: bool = False
) -> Expr:
    """Return x with elements replaced by, or combined with, updates.   The axes of `index` can be shorter.

    from_end: whether a negative index counts from the end.  Otherwise, it is an error at run time.
    """
    index = _indices(node, index)
    shape = shape_of(x)
    if not shape:
        x, index, updates = (node.reshaped(each, (1,)) for each in (x, index, updates))
        result = node.emit(scattered(node, x, 0, index, updates, reduction, from_end=from_end))
        return ops.reshape(result, Shape(()))
    if not shape_of(index):
        index, updates = node.reshaped(index, (1,)), node.reshaped(updates, (1,))
    axis = axis_of(dim, len(shape))
    for other, wanted in enumerate(shape_of(index)):
        if shape_of(updates)[other] != wanted:
            updates = node.emit(sliced(node, updates, other, 0, wanted))
    if x.known_element_type.is_bool and reduction != "none":
        wide = [node.cast(each, I64) for each in (x, updates)]
        return node.cast(node.emit(scattered(node, wide[0], dim, index, wide[1], reduction, from_end=from_end)), BOOL)
    return ops.scatter_elements(x, index, updates, axis=axis, reduction=reduction, from_end=from_end)


@converts("scatter.src", "scatter.reduce")
def _scatter(node: Node, self: Expr, dim: int, index: Expr, src: Expr, *, reduce: str | None = None) -> Expr:
    return scattered(node, self, dim, index, src, _REDUCTIONS[reduce] if reduce else "none")


@converts("scatter.value", "scatter.value_reduce")
def _scatter_value(node: Node, self: Expr, dim: int, index: Expr, value: Any, *, reduce: str | None = None) -> Expr:
    updates = node.full(value, shape_of(index), self.known_element_type)
    return scattered(node, self, dim, index, updates, _REDUCTIONS[reduce] if reduce else "none")


@converts("scatter_add")
def _scatter_add(node: Node, self: Expr, dim: int, index: Expr, src: Expr) -> Expr:
    return scattered(node, self, dim, index, src, "add")


def _counts(node: Node, x: Expr, dim: int, index: Expr) -> Expr:
    """Return, for each element of x, the number of updates that `index` directs to it."""
    ones, zeros = node.full(1, shape_of(index), I64), node.full(0, shape_of(x), I64)
    return node.emit(scattered(node, zeros, dim, index, ones, "add"))


_NEUTRAL = {"sum": 0, "mean": 0, "prod": 1}


@converts("scatter_reduce.two")
def _scatter_reduce(
    node: Node, self: Expr, dim: int, index: Expr, src: Expr, reduce: str, *, include_self: bool = True
) -> Expr:
    x, dtype = self, self.known_element_type
    counts = None
    if not include_self or reduce == "mean":
        counts = _counts(node, x, dim, index)
    if not include_self:
        assert counts is not None
        if reduce in _NEUTRAL:
            neutral = node.number(_NEUTRAL[reduce], dtype)
        elif dtype.is_bool:
            neutral = node.number(reduce == "amin", dtype)
        else:
            neutral = node.number(dtype.lowest if reduce == "amax" else dtype.highest, dtype)
        x = node.emit(ops.where(ops.greater(counts, 0), neutral, x))
    result = node.emit(scattered(node, x, dim, index, src, _REDUCTIONS.get(reduce, "add")))
    if reduce == "mean":
        assert counts is not None
        total = node.emit(ops.maximum(ops.add(counts, 1) if include_self else counts, 1))
        divisor = node.cast(total, dtype)
        if dtype.is_integer:
            from relvm.frontend.torch.ops.elementwise import floor_quotient

            return floor_quotient(node, result, divisor)
        return ops.divide(result, divisor)
    return result


def _along(node: Node, index: Expr, shape: Sequence[AnyDim], axis: int) -> Expr:
    """Return the vector `index` along an axis, broadcast to a shape."""
    ones: list[AnyDim] = [1] * len(shape)
    ones[axis] = product(shape_of(index))
    return node.broadcast(node.reshaped(_indices(node, index), ones), shape)


def _indexed_update(
    node: Node, x: Expr, dim: int, index: Expr, source: Expr, reduction: str, *, from_end: bool = False
) -> Expr:
    """Return x with the slices that a vector of indices selects along an axis replaced or combined.

    from_end: as for `scattered`.
    """
    if not shape_of(x):
        x1, source = node.reshaped(x, (1,)), node.reshaped(source, (product(shape_of(index)),))
        done = node.emit(_indexed_update(node, x1, 0, index, source, reduction, from_end=from_end))
        return node.reshaped(done, ())
    axis = axis_of(dim, len(shape_of(x)))
    if not shape_of(source) or len(shape_of(source)) < len(shape_of(x)):
        shape = [1 if at == axis else size for at, size in enumerate(shape_of(x))]
        source = node.reshaped(source, shape)
    return scattered(node, x, axis, _along(node, index, shape_of(source), axis), source, reduction, from_end=from_end)


@converts("index_add")
def _index_add(node: Node, self: Expr, dim: int, index: Expr, source: Expr, *, alpha: Any = 1) -> Expr:
    source = node.cast(source, self.known_element_type)
    if alpha != 1:
        factor = node.number(alpha, source.known_element_type)
        multiply = ops.logical_and if source.known_element_type.is_bool else ops.multiply
        source = node.emit(multiply(source, factor))
    return _indexed_update(node, self, dim, index, source, "add")


@converts("index_copy")
def _index_copy(node: Node, self: Expr, dim: int, index: Expr, source: Expr) -> Expr:
    return _indexed_update(node, self, dim, index, source, "none")


@converts("index_fill.int_Scalar", "index_fill.int_Tensor")
def _index_fill(node: Node, self: Expr, dim: int, index: Expr, value: Any) -> Expr:
    shape = list(shape_of(self))
    count = product(shape_of(index))
    if shape:
        shape[axis_of(dim, len(shape))] = count
    source = node.full(value, shape or (count,), self.known_element_type)
    return _indexed_update(node, self, dim, index, source, "none", from_end=True)


@converts("index_reduce")
def _index_reduce(
    node: Node, self: Expr, dim: int, index: Expr, source: Expr, reduce: str, *, include_self: bool = True
) -> Expr:
    if not shape_of(self):
        x, rows = node.reshaped(self, (1,)), node.reshaped(source, (product(shape_of(index)),))
        return node.reshaped(node.emit(_index_reduce(node, x, 0, index, rows, reduce, include_self=include_self)), ())
    axis = axis_of(dim, len(shape_of(self)))
    full = _along(node, index, shape_of(source), axis)
    return _scatter_reduce(node, self, axis, full, source, reduce, include_self=include_self)


@converts("select_scatter")
def _select_scatter(node: Node, self: Expr, src: Expr, dim: int, index: Any) -> Expr:
    axis = axis_of(dim, len(shape_of(self)))
    shape = shape_of(self)
    part = node.reshaped(src, (*shape[:axis], 1, *shape[axis + 1 :]))
    at = node.reshaped(node.number(index, I64), (1,))
    return _indexed_update(node, self, axis, at, part, "none", from_end=True)


@converts("slice_scatter")
def _slice_scatter(
    node: Node, self: Expr, src: Expr, dim: int = 0, start: Any = None, end: Any = None, step: AnyDim = 1
) -> Expr:
    axis = axis_of(dim, len(shape_of(self)))
    size = shape_of(self)[axis]
    count = shape_of(src)[axis]
    if count == size:
        return src
    first = 0 if start is None else start
    if isinstance(first, int) and first < 0:
        first = size + first
    at: Expr = node.emit(ops.iota(Shape((count,))))
    if step != 1:
        at = ops.multiply(at, node.number(step, I64))
    if first != 0:
        at = ops.add(at, node.number(first, I64))
    updates = node.cast(src, self.known_element_type)
    return _indexed_update(node, self, axis, node.emit(at), updates, "none", from_end=True)


def _written(node: Node, flat: Expr, positions: Expr, src: Expr) -> Expr:
    """Return a vector with elements replaced by those of src, which has the shape of the positions."""
    count = product(shape_of(positions))
    updates = node.reshaped(node.importer.with_shape(node.emit(src), shape_of(positions)), (count,))
    return node.emit(ops.scatter_elements(flat, node.reshaped(positions, (count,)), updates, axis=0))


@converts("diagonal_scatter")
def _diagonal_scatter(node: Node, self: Expr, src: Expr, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Expr:
    shape = shape_of(self)
    positions = node.emit(diagonal(node, node.emit(ops.iota(Shape(shape))), offset, dim1, dim2))
    return node.reshaped(_written(node, node.reshaped(self, (product(shape),)), positions, src), shape)


@converts("as_strided_scatter")
def _as_strided_scatter(
    node: Node, self: Expr, src: Expr, size: Sequence[AnyDim], stride: Sequence[AnyDim], storage_offset: Any = None
) -> Expr:
    (name,) = tensor_names(node.arguments()["self"])
    own = layout_of(node, name)
    flat, order = in_storage_order(node, self, own, name)
    start = 0 if storage_offset is None else storage_offset - own.offset
    positions = strided_positions(node, Layout(tuple(size), tuple(stride), start), product(own.shape))
    changed = _written(node, flat, positions, src)
    stored = node.reshaped(changed, [own.shape[axis] for axis in order])
    return transposed(stored, [order.index(axis) for axis in range(len(order))])


@converts("put")
def _put(node: Node, self: Expr, index: Expr, source: Expr, accumulate: bool = False) -> Expr:
    shape = shape_of(self)
    count = product(shape_of(index))
    flat = node.reshaped(self, (product(shape),))
    at, updates = node.reshaped(_indices(node, index), (count,)), node.reshaped(source, (count,))
    reduction = "add" if accumulate else "none"
    return ops.reshape(node.emit(scattered(node, flat, 0, at, updates, reduction, from_end=True)), Shape(shape))


@converts("masked_scatter")
def _masked_scatter(node: Node, self: Expr, mask: Expr, source: Expr) -> Expr:
    """Replaces the elements where the mask is true by the elements of the source, in order."""
    shape = shape_of(self)
    total = product(shape)
    flags = node.reshaped(node.broadcast(mask, shape), (total,))
    flat, elements = node.reshaped(self, (total,)), node.reshaped(source, (product(shape_of(source)),))
    number = node.emit(ops.subtract(ops.cumsum(node.cast(flags, I64), axis=0), 1))
    chosen = ops.gather(elements, node.emit(ops.where(flags, number, 0)), axis=0)
    return ops.reshape(node.emit(ops.where(flags, chosen, flat)), Shape(shape))


@converts("one_hot")
def _one_hot(node: Node, self: Expr, num_classes: AnyDim = -1) -> Expr:
    """Returns a row for each class, with a 1 at its index.  As in PyTorch, a class outside [0, num_classes) fails."""
    if num_classes == -1:
        raise RelvmUnsupportedError("one_hot without num_classes is not supported")
    if isinstance(num_classes, int) and num_classes < 0:
        raise RelvmFormatError(f"num_classes is {num_classes}, expected a number >= 0")
    numbers = node.emit(ops.iota(Shape((num_classes,))))
    checked = node.emit(ops.gather(numbers, node.cast(self, I64), axis=0, from_end=False))  # fails if out of range
    wide = node.emit(ops.expand_dims(checked, axes=(len(shape_of(self)),)))
    return node.cast(node.emit(ops.equal(wide, numbers)), I64)


@converts("repeat_interleave.Tensor")
def _repeat_interleave(node: Node, repeats: Expr, *, output_size: Any = None) -> Expr:
    """Returns the positions of repeated elements: position i, repeats[i] times."""
    ends = node.emit(ops.cumsum(node.cast(repeats, I64), axis=0))
    count = as_dim(node, node.emit(ops.sum(node.cast(repeats, I64))))
    numbers = node.reshaped(node.emit(ops.iota(Shape((count,)))), (count, 1))
    return ops.sum(node.cast(node.emit(ops.greater_equal(numbers, ends)), I64), axes=(1,))


@converts("repeat_interleave.self_Tensor")
def _repeat_elements(node: Node, self: Expr, repeats: Expr, dim: int | None = None, *, output_size: Any = None) -> Expr:
    x = node.reshaped(self, (product(shape_of(self)),)) if dim is None else self
    axis = axis_of(dim or 0, len(shape_of(x)))
    if shape_of(repeats) in ((), (1,)):
        repeats = node.broadcast(node.reshaped(repeats, ()), (shape_of(x)[axis],))
    return ops.gather(x, node.emit(_repeat_interleave(node, repeats)), axis=axis)


def as_dim(node: Node, x: Expr) -> AnyDim:
    """Return a new dimension variable whose value is the only element of x."""
    importer = node.importer
    count = importer.new_dim("count")
    vector = node.emit(ops.reshape(x, Shape((1,))))
    importer.builder.match_cast(node.emit(ops.tensor_to_shape(vector)), ShapeType((count,)), "count")
    return count


@converts("nonzero_static")
def _nonzero_static(node: Node, self: Expr, *, size: AnyDim, fill_value: int = -1) -> Expr:
    """Returns the positions of the first `size` elements that differ from 0, and `fill_value` for missing ones."""
    shape = shape_of(self)
    flags = node.reshaped(node.cast(self, BOOL), (product(shape),))
    number = node.emit(ops.subtract(ops.cumsum(node.cast(flags, I64), axis=0), 1))
    place = node.emit(
        ops.where(ops.logical_and(flags, ops.less(number, node.number(size, I64))), number, node.number(size, I64))
    )
    empty = node.full(-1, (size + 1,), I64)
    at = node.emit(ops.scatter_elements(empty, place, node.emit(ops.iota(Shape((product(shape),)))), axis=0))
    found = node.emit(sliced(node, at, 0, 0, size))
    columns: list[Expr] = []
    rest = found
    for axis in reversed(range(len(shape))):
        extent = node.number(shape[axis], I64)
        columns.insert(0, rest if axis == 0 else node.emit(ops.modulo(rest, extent)))
        rest = node.emit(ops.divide(rest, extent)) if axis else rest
    if not columns:
        return node.full(fill_value, (size, 0), I64)
    missing = ops.less(found, 0)
    filled = [ops.where(missing, node.number(fill_value, I64), column) for column in columns]
    wide = [node.reshaped(node.emit(column), (size, 1)) for column in filled]
    return wide[0] if len(wide) == 1 else ops.concat(*wide, axis=1)
