"""Operators on immutable lists of values of one type, and on values that can be null.

An operator that returns a list of n items takes O(n) steps.  The exception is list_append, which extends the list in
place if nothing else refers to the list (relvm/passes/list_append_in_place.py).  A loop can therefore append n items in
O(n).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmIndexError, RelvmShapeError, RelvmTypeError, counted
from relvm.ir.dtypes import BOOL, I64
from relvm.ir.operator import expect, op
from relvm.ir.type_rules import expect_axis, expect_tensor
from relvm.ir.types import ListType, PrimType, ShapeType, TensorType, Type, join
from relvm.kernels.lowering_rules import Builtin


def _expect_list(name: str, x: Type) -> ListType:
    if not isinstance(x, ListType):
        raise RelvmTypeError(f"{name}: x is {x}, expected a list")
    return x


def _expect_item_type(name: str, x: Type) -> Type:
    """Return the type of the items of x, which must be a list with items.

    name: the operator, for messages.
    """
    item = _expect_list(name, x).item
    if item is None:
        raise RelvmTypeError(f"{name}: x is {x}, expected a list with items")
    return item


def _expect_index(name: str, index: Type) -> None:
    is_i64 = isinstance(index, PrimType) and index.dtype == I64
    expect(is_i64, "{}: index is {}, expected an i64 scalar", name, index)


def _expect_axis_of(name: str, axis: object, rank: int | None) -> None:
    is_integer = isinstance(axis, int) and not isinstance(axis, bool)
    expect(is_integer, "{}: axis is {!r}, expected an integer", name, axis, error=RelvmArgumentError)
    if rank is not None:
        expect_axis(name, axis, rank)


def _type_with_item(name: str, x: ListType, item: Type) -> ListType:
    """Return the type of the list x with an added item of type `item`.

    name: the operator, for messages.
    """
    both = item if x.item is None else join(x.item, item)
    expect(both is not None, "{}: cannot add an item of type {} to a list of {}", name, item, x.item)
    return ListType(both)


def _index_from_front(name: str, items: list, index: int, beyond: int = 0) -> int:
    """Convert `index`, which counts from the end of `items` if it is negative, to an index from the front.

    Raise RelvmIndexError if it is out of range.

    beyond: how far beyond the last item the index is allowed to be: 1 for an insertion, otherwise 0.
    """
    place = index + len(items) if index < 0 else index
    if not 0 <= place < len(items) + beyond:
        raise RelvmIndexError(f"{name}: index {index} is out of range; the list has {counted(len(items), 'item')}")
    return place


# ---- lists of anything ----


@op("make_list", numpy=lambda *items: list(items), lower=Builtin("make_list"), moves=True)
def make_list(*items: Type) -> ListType:
    """A list of the arguments.

    items: values of the same kind.  Without items, the list is empty.
    Result: a list.  Its item type is the most specific type that covers all items.
    Raises RelvmTypeError if items have different kinds, such as a tensor and a scalar.
    Source: ONNX SequenceConstruct-11, SequenceEmpty-11.

    Examples:

        >>> run("make_list(x, y)", x=[1, 2], y=[3])
        [1 2]
        [3]
    """
    made = ListType(None)
    for item in items:
        made = _type_with_item("make_list", made, item)
    return made


@op("list_length", numpy=len, lower=Builtin("list_length"))
def list_length(x: ListType) -> PrimType:
    """The number of items.

    x: a list.
    Result: an i64 scalar.
    Raises RelvmTypeError if x is not a list.
    Source: ONNX SequenceLength-11.

    Examples:

        >>> run("list_length(make_list(x, x, x))", x=[1, 2])
        3
    """
    _expect_list("list_length", x)
    return PrimType(I64)


@op("list_item", numpy=lambda x, index: x[_index_from_front("list_item", x, index)], lower=Builtin("list_item"))
def list_item(x: ListType, index: PrimType) -> Type:
    """One item of a list.

    x: a list.
    index: an i64 scalar.  A negative index counts from the end.
    Result: the item, whose type is the item type of the list.
    Raises RelvmTypeError if x is not a list or has no items, or index is not i64.  At run time, it raises
    RelvmIndexError if the index is out of range.
    Source: ONNX SequenceAt-11.

    Examples:

        >>> run("list_item(make_list(x, y), 1)", x=[1, 2], y=[3, 4])
        [3 4]
    """
    item = _expect_item_type("list_item", x)
    _expect_index("list_item", index)
    return item


@op("list_append", numpy=lambda x, item: [*x, item], lower=Builtin("list_append"), moves=True)
def list_append(x: ListType, item: Type) -> ListType:
    """The list with an item appended.

    x: a list.
    item: a value of the same kind as the items of x, such as a tensor for a list of tensors.
    Result: a list.  Its item type is the most specific type that includes both the items of x and the new item.
    Raises RelvmTypeError if x is not a list, or the item is of another kind.
    Source: ONNX SequenceInsert-11.

    Examples:

        >>> run("list_append(make_list(x), y)", x=[1, 2], y=[3, 4])
        [1 2]
        [3 4]
    """
    _expect_list("list_append", x)
    return _type_with_item("list_append", x, item)


def _insert(x: list, index: int, item: Any) -> list:
    place = _index_from_front("list_insert", x, index, beyond=1)
    return [*x[:place], item, *x[place:]]


@op("list_insert", numpy=_insert, lower=Builtin("list_insert"), moves=True)
def list_insert(x: ListType, index: PrimType, item: Type) -> ListType:
    """The list x with `item` inserted before the item at `index`.

    x: a list of n items.
    index: the i64 index, in [-n, n], of the item before which to insert.  A negative index counts from the end, and n
    appends.
    item: a value of the same kind as the items of x, such as a tensor for a list of tensors.
    Result: a list.  Its item type is the most specific type that includes both the items of x and the new item.
    Raises RelvmTypeError if x is not a list, index is not i64, or the item is of another kind.  At run time, it raises
    RelvmIndexError if the index is out of range.
    Source: ONNX SequenceInsert-11.

    Examples:

        >>> run("list_insert(make_list(x), 0, y)", x=[1, 2], y=[3, 4])
        [3 4]
        [1 2]
    """
    _expect_list("list_insert", x)
    _expect_index("list_insert", index)
    return _type_with_item("list_insert", x, item)


def _erase(x: list, index: int) -> list:
    place = _index_from_front("list_erase", x, index)
    return [*x[:place], *x[place + 1 :]]


@op("list_erase", numpy=_erase, lower=Builtin("list_erase"))
def list_erase(x: ListType, index: PrimType) -> ListType:
    """The list with one item removed.

    x: a list.
    index: an i64 scalar.  A negative index counts from the end.
    Result: a list of the same type as x.
    Raises RelvmTypeError if x is not a list, or index is not i64.  At run time, it raises RelvmIndexError if the index
    is out of range.
    Source: ONNX SequenceErase-11.

    Examples:

        >>> run("list_erase(make_list(x, y), 0)", x=[1, 2], y=[3, 4])
        [3 4]
    """
    _expect_list("list_erase", x)
    _expect_index("list_erase", index)
    return x


# ---- lists of tensors ----


def _expect_tensors(name: str, x: Type) -> TensorType:
    """Return the type of the items of x, which must be a list of tensors of known dtype.

    name: the operator, for messages.
    """
    item = _expect_item_type(name, x)
    if not isinstance(item, TensorType):
        raise RelvmTypeError(f"{name}: x is {x}, expected a list of tensors")
    expect(item.dtype is not None, "{}: the dtype of the items of x is unknown; use match_cast to state it", name)
    return item


def _join_items(name: str, items: list, axis: int, join_arrays: Any) -> np.ndarray:
    if not items:
        raise RelvmIndexError(f"{name}: the list has no items")
    first = items[0]
    rank = first.ndim + (join_arrays is np.stack)
    if not -rank <= axis < rank:
        raise RelvmTypeError(f"{name}: axis {axis} is outside [-{rank}, {rank})")
    if any((item.dtype, item.ndim) != (first.dtype, first.ndim) for item in items):
        raise RelvmTypeError(f"{name}: the items must have the same dtype and rank")
    try:
        return join_arrays(items, axis=axis)
    except ValueError as error:
        raise RelvmShapeError(f"{name}: {error}") from None


def _concat(x: list, *, axis: int) -> np.ndarray:
    return _join_items("list_concat", x, axis, np.concatenate)


@op("list_concat", numpy=_concat, lower=Builtin("list_concat", ("axis",)))
def list_concat(x: ListType, *, axis: int) -> TensorType:
    """The tensors of a list concatenated along an axis.

    x: a list of tensors of the same dtype and of the same rank, at least 1.
    axis: the axis, in [-rank, rank).
    Result: a tensor of the same dtype and rank.
    Raises RelvmTypeError if x is not a list of tensors of the same dtype and rank, or the axis is out of range.  An
    empty list raises RelvmTypeError at compile time if the type of x shows that x is empty, otherwise RelvmIndexError
    at run time.  Raises RelvmShapeError if sizes along another axis differ.
    Source: ONNX ConcatFromSequence-11.

    Examples:

        >>> run("list_concat(make_list(x, y), axis=0)", x=[1, 2], y=[3])
        [1 2 3]
    """
    item = _expect_tensors("list_concat", x)
    _expect_axis_of("list_concat", axis, item.rank)
    return TensorType(item.dtype, None, item.rank)


def _stack(x: list, *, axis: int) -> np.ndarray:
    return _join_items("list_stack", x, axis, np.stack)


@op("list_stack", numpy=_stack, lower=Builtin("list_stack", ("axis",)))
def list_stack(x: ListType, *, axis: int) -> TensorType:
    """The tensors of a list stacked along a new axis.

    x: a list of tensors of the same dtype and shape.
    axis: the position of the new axis in the result, in [-rank - 1, rank], where rank is that of the tensors in x.
    Result: a tensor of the same dtype, with one more axis.
    Raises RelvmTypeError if x is not a list of tensors of the same dtype and rank, or the axis is out of range.  An
    empty list raises RelvmTypeError at compile time if the type of x shows that x is empty, otherwise RelvmIndexError
    at run time.  Raises RelvmShapeError if sizes differ.
    Source: ONNX ConcatFromSequence-11 with new_axis.

    Examples:

        >>> run("list_stack(make_list(x, y), axis=0)", x=[1, 2], y=[3, 4])
        [[1 2]
         [3 4]]
    """
    item = _expect_tensors("list_stack", x)
    rank = None if item.rank is None else item.rank + 1
    _expect_axis_of("list_stack", axis, rank)
    return TensorType(item.dtype, None, rank)


def _split(x: np.ndarray, sizes: int | tuple[int, ...], *, axis: int) -> list:
    if not -x.ndim <= axis < x.ndim:
        raise RelvmTypeError(f"list_split: axis {axis} is outside [-{x.ndim}, {x.ndim})")
    extent = x.shape[axis]
    if isinstance(sizes, int):
        if sizes <= 0:
            raise RelvmShapeError(f"list_split: expected a part size of at least 1, got {sizes}")
        sizes = tuple(min(sizes, extent - first) for first in range(0, extent, sizes))
    elif min(sizes, default=0) < 0 or sum(sizes) != extent:
        raise RelvmShapeError(f"list_split: the part sizes {sizes} must add up to the axis size {extent}")
    ends = np.cumsum([0, *sizes])
    return [np.take(x, range(first, end), axis) for first, end in pairwise(ends)]


@op("list_split", numpy=_split, lower=Builtin("list_split", ("axis",)), moves=True)
def list_split(x: TensorType, sizes: PrimType | ShapeType, *, axis: int) -> ListType:
    """A tensor split along an axis.

    x: a tensor of rank >= 1.
    sizes: a shape or an i64 scalar.  A shape lists the sizes of the parts, which must add up to the size of the axis.
    A scalar is the size of every part, except that the last part can be smaller.
    axis: the axis, in [-rank, rank).
    Result: a list of tensors with the dtype and rank of x.
    Raises RelvmTypeError if x is not a tensor, the axis is out of range, or sizes has another type.  At run time, it
    raises RelvmShapeError if the sizes do not add up to the size of the axis, or a scalar is less than 1.
    Source: ONNX SplitToSequence-11.

    Examples:

        >>> run("list_split(x, 2, axis=0)", x=[1, 2, 3, 4, 5])
        [1 2]
        [3 4]
        [5]
    """
    expect_tensor("list_split", x=x)
    expected = isinstance(sizes, ShapeType) or sizes.dtype == I64
    expect(expected, "list_split: sizes is {}, expected a shape or an i64 scalar", sizes)
    _expect_axis_of("list_split", axis, x.rank)
    parts = set(sizes.dims or ()) if isinstance(sizes, ShapeType) else set()
    if x.shape is None or len(parts) != 1:
        return ListType(TensorType(x.dtype, None, x.rank))
    axis %= len(x.shape)
    return ListType(TensorType(x.dtype, (*x.shape[:axis], *parts, *x.shape[axis + 1 :])))


def _unstack(x: np.ndarray, *, axis: int) -> list:
    if not -x.ndim <= axis < x.ndim:
        raise RelvmTypeError(f"list_unstack: axis {axis} is outside [-{x.ndim}, {x.ndim})")
    return [np.take(x, i, axis) for i in range(x.shape[axis])]


@op("list_unstack", numpy=_unstack, lower=Builtin("list_unstack", ("axis",)), moves=True)
def list_unstack(x: TensorType, *, axis: int) -> ListType:
    """The slices of x at each position along an axis.  A slice does not have that axis.

    x: a tensor of rank >= 1.
    axis: the axis, in [-rank, rank).
    Result: a list of tensors with the dtype of x and one axis fewer.
    Raises RelvmTypeError if x is not a tensor, or the axis is out of range.
    Source: ONNX SplitToSequence-11 with keepdims 0.

    Examples:

        >>> run("list_unstack(x, axis=1)", x=[[1, 2], [3, 4]])
        [1 3]
        [2 4]
    """
    expect_tensor("list_unstack", x=x)
    _expect_axis_of("list_unstack", axis, x.rank)
    if x.shape is None:
        return ListType(TensorType(x.dtype, None, None if x.rank is None else x.rank - 1))
    axis %= len(x.shape)
    return ListType(TensorType(x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :])))


# ---- null ----


@op("is_null", numpy=lambda x: x is None, lower=Builtin("is_null"), moves=True)
def is_null(x: Type) -> PrimType:
    """Whether a value is null.

    x: any value.  Only a value of an optional type can be null.
    Result: a bool scalar.
    Raises nothing.
    Source: ONNX OptionalHasElement-15.

    Examples:

        >>> run("is_null(null)")
        True
    """
    return PrimType(BOOL)
