"""Sequences as lists, and optional values as nullable values.

The importer remembers the items of a list that is built from known values.  Extracting an item, or concatenating the
list, then uses the items directly.  A model that only splits tensors and extracts parts thus creates no list at run
time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmIndexError, RelvmShapeError, RelvmTypeError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.dynamic_sizes import is_known
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.scalars import scalar_of
from relvm.frontend.onnx.types import declared_type
from relvm.frontend.onnx.values import HostValue
from relvm.ir.dtypes import BOOL, I64
from relvm.ir.expr import Expr, MatchCast, Null, Prim, PrimCall, constant
from relvm.ir.symbolic import AnyDim, known_sizes
from relvm.ir.types import ListType, OptionalType, PrimType, TensorType, Type

MAX_KNOWN_ITEMS = 64  # limit on the remembered items of a list


@converts("Identity")
def _identity(node: OnnxNode) -> Expr:
    x = node.tensor(0)
    return ops.identity(x) if isinstance(x.type, TensorType) else x


# ---- lists ----


def _list_input(node: OnnxNode, index: int = 0) -> Expr:
    """Return input `index`, which must be a sequence.

    If it is an optional sequence, check at run time that it has a value.
    """
    x = _unwrap_optional(node, node.tensor(index))
    if not isinstance(x.type, ListType):
        raise RelvmTypeError(f"input {index} is {x.type}, expected a sequence")
    return x


def _make_list(node: OnnxNode, items: tuple[Expr, ...]) -> Expr:
    """Return a new list of `items`.  If there are few items, record them, so that later nodes use them directly."""
    made = node.emit(ops.make_list(*items))
    if len(items) <= MAX_KNOWN_ITEMS:
        node.graph.items[made] = items
    return made


def _position_input(node: OnnxNode, index: int) -> Expr:
    """Return input `index`, which is a position in a list, as an i64 scalar."""
    scalar = scalar_of(node.graph, node.tensor(index), "the position")
    if not isinstance(scalar.type, PrimType) or scalar.type.dtype != I64:
        raise RelvmTypeError(f"input {index} is {node.tensor(index).type}, expected an integer")
    return scalar


def _known_position(index: Expr, items: tuple[Expr, ...] | None, past: int = 0) -> int | None:
    """Return a position in a list as a non-negative integer, or None if the position or the list is not known.

    Raise RelvmIndexError if the position is out of range.

    index: the position, which counts from the end if it is negative.
    items: the items of the list, or None.
    past: the number of positions after the last item that are also valid.
    """
    if items is None or not isinstance(index, Prim):
        return None
    value = int(index.value)
    position = value + len(items) if value < 0 else value
    if not 0 <= position < len(items) + past:
        raise RelvmIndexError(f"position {value} is out of range; the sequence has {counted(len(items), 'item')}")
    return position


def _item_type(list_: Expr) -> Type | None:
    assert isinstance(list_.type, ListType)
    return list_.type.item


def _expect_dtype(node: OnnxNode, list_: Expr, item: Expr) -> None:
    known = _item_type(list_)
    if not isinstance(item.type, TensorType):
        raise RelvmTypeError(f"expected a tensor as an item, got {item.type}")
    if isinstance(known, TensorType) and known.dtype != item.type.dtype:
        raise RelvmTypeError(f"cannot add an item of dtype {item.type.dtype} to a sequence of {known.dtype}")


@converts("SequenceEmpty")
def _sequence_empty(node: OnnxNode) -> Expr:
    node.graph.element_type(node.attribute("dtype", 1), "SequenceEmpty")
    return _make_list(node, ())


@converts("SequenceConstruct")
def _sequence_construct(node: OnnxNode) -> Expr:
    items = tuple(node.tensors())
    made = _make_list(node, items)
    for item in items:
        _expect_dtype(node, made, item)
    return made


@converts("SequenceLength")
def _sequence_length(node: OnnxNode) -> Expr | HostValue:
    list_ = _list_input(node)
    items = node.graph.items.get(list_)
    if items is not None:
        return HostValue(np.array(len(items), dtype=object), I64)
    return ops.to_tensor(node.emit(ops.list_length(list_)), dtype="i64")


@converts("SequenceAt")
def _sequence_at(node: OnnxNode) -> Expr:
    list_, index = _list_input(node), _position_input(node, 1)
    items = node.graph.items.get(list_)
    position = _known_position(index, items)
    return ops.list_item(list_, index) if items is None or position is None else items[position]


@converts("SequenceInsert")
def _sequence_insert(node: OnnxNode) -> Expr:
    list_, item = _list_input(node), node.tensor(1)
    _expect_dtype(node, list_, item)
    items = node.graph.items.get(list_)
    if not node.has(2):
        return ops.list_append(list_, item) if items is None else _make_list(node, (*items, item))
    index = _position_input(node, 2)
    position = _known_position(index, items, past=1)
    if items is None or position is None:
        return ops.list_insert(list_, index, item)
    return _make_list(node, (*items[:position], item, *items[position:]))


@converts("SequenceErase")
def _sequence_erase(node: OnnxNode) -> Expr:
    list_, index = _list_input(node), _position_input(node, 1) if node.has(1) else Prim(-1, I64)
    items = node.graph.items.get(list_)
    position = _known_position(index, items)
    if items is None or position is None:
        return ops.list_erase(list_, index)
    return _make_list(node, (*items[:position], *items[position + 1 :]))


@converts("ConcatFromSequence")
def _concat_from_sequence(node: OnnxNode) -> Expr:
    list_, axis, is_new = _list_input(node), node.attribute("axis"), bool(node.attribute("new_axis", 0))
    items = node.graph.items.get(list_)
    if items:
        parts = list(map(node.graph.known_shape, items))
        if _have_sizes_for_concat(parts, None if is_new else axis):
            if is_new:
                parts = [node.emit(ops.expand_dims(part, axes=(axis,))) for part in parts]
            return ops.concat(*parts, axis=axis)
    joined = node.emit((ops.list_stack if is_new else ops.list_concat)(list_, axis=axis))
    item, rank = _item_type(list_), joined.tensor_type.rank
    if not isinstance(item, TensorType) or item.shape is None or rank is None:
        return joined
    axis %= rank
    rest = item.shape[axis:] if is_new else item.shape[axis + 1 :]
    return node.graph.with_sizes(joined, (*item.shape[:axis], None, *rest))


def _have_sizes_for_concat(parts: list[Expr], axis: int | None) -> bool:
    """Return whether the shapes of `parts` are known, and equal except along `axis`.

    If this is not proven, the operators of lists check it at run time.
    """
    rests = []
    for part in parts:
        if not isinstance(part.type, TensorType) or part.type.shape is None:
            return False
        rest = list(part.type.shape)
        if axis is not None and rest:
            del rest[axis % len(rest)]
        rests.append(rest)
    return all(rest == rests[0] for rest in rests)


# ---- SplitToSequence ----


@converts("SplitToSequence")
def _split_to_sequence(node: OnnxNode) -> Expr:
    """Splits an axis into parts of given sizes, or of length 1.

    Without sizes, keepdims=0 removes the axis.  With sizes, keepdims has no effect.
    """
    x = node.tensor(0)
    if not isinstance(x.type, TensorType):
        raise RelvmTypeError(f"input 0 is {x.type}, expected a tensor")
    axis = node.attribute("axis", 0) if x.type.rank is None else node.axis(0, x.type.rank)
    is_dropped = not node.has(1) and not node.attribute("keepdims", 1)
    sizes = _constant_part_sizes(node, None if x.type.shape is None else x.type.shape[axis])
    if sizes is not None and len(sizes) <= MAX_KNOWN_ITEMS:
        return _make_list(node, tuple(_known_parts(node, x, axis, sizes, is_dropped)))
    if is_dropped:
        return ops.list_unstack(x, axis=axis)
    return ops.list_split(x, _part_sizes(node), axis=axis)


def _part_sizes(node: OnnxNode) -> Expr:
    """Return the sizes of the parts of a SplitToSequence, as an argument of the operator list_split.

    The result is a shape with the size of each part, or a scalar with the common size of all parts.  With a scalar, the
    last part can be shorter.
    """
    if not node.has(1):
        return Prim(1, I64)
    sizes = node.tensor(1)
    if not isinstance(sizes.type, TensorType) or sizes.type.rank not in (0, 1):
        raise RelvmUnsupportedError(f"split has type {sizes.type}, expected a known rank of 0 or 1")
    if sizes.type.rank == 0:
        return _position_input(node, 1)
    wide = sizes if sizes.type.dtype == I64 else node.emit(ops.cast(sizes, to="i64"))
    return node.emit(ops.tensor_to_shape(wide))


def _constant_part_sizes(node: OnnxNode, axis_size: AnyDim | None) -> list[int] | None:
    """Return the sizes of the parts of a SplitToSequence if they are constants and few, otherwise None.

    Raise RelvmShapeError if the sizes do not add up to the size of the axis.

    axis_size: the size of the axis, or None if it is not known.
    """
    if not isinstance(axis_size, int):
        return None
    if not node.has(1):
        return [1] * axis_size if axis_size <= MAX_KNOWN_ITEMS else None
    if not is_known(node, 1):
        return None
    known = known_sizes(node.dims(1, "split"))
    if known is None:
        return None
    sizes = list(known)
    if node.tensor(1).tensor_type.rank == 0:
        (each,) = sizes
        if each < 1:
            raise RelvmShapeError(f"split is {each}, expected at least 1")
        if -(-axis_size // each) > MAX_KNOWN_ITEMS:
            return None
        sizes = [min(each, axis_size - first) for first in range(0, axis_size, each)]
    if min(sizes, default=0) < 0 or sum(sizes) != axis_size:
        raise RelvmShapeError(f"the part sizes {sizes} must add up to the axis size {axis_size}")
    return sizes


def _known_parts(node: OnnxNode, x: Expr, axis: int, sizes: list[int], is_dropped: bool) -> list[Expr]:
    parts, first = [], 0
    for size in sizes:
        part = node.emit(ops.slice(x, begin=(first,), end=(first + size,), axes=(axis,)))
        parts.append(node.emit(ops.squeeze(part, axes=(axis,))) if is_dropped else part)
        first += size
    return parts


# ---- optional values ----


def _unwrap_optional(node: OnnxNode, x: Expr) -> Expr:
    """Return the value of `x`.  If the type of x is optional, check at run time that it is not null."""
    match x.type:
        case OptionalType(None):
            raise RelvmTypeError("the optional has no value")
        case OptionalType(Type() as type_):
            value = node.graph.var("value", type_)
            node.graph.bindings.append(MatchCast(value, x, node.here))
            return value
    return x


@converts("Optional")
def _optional(node: OnnxNode) -> Expr:
    if node.has(0):
        return node.tensor(0)
    stated: Any = node.attribute("type")
    if stated is None:
        raise RelvmTypeError("expected an input or the attribute type, got neither")
    declared_type(node.graph, stated, "the type of the value")
    return Null()


@converts("OptionalHasElement")
def _optional_has_element(node: OnnxNode) -> Expr:
    type_: Type = node.tensor(0).type if node.has(0) else OptionalType(None)
    if type_ == OptionalType(None) or not isinstance(type_, OptionalType):
        return constant(np.array(not isinstance(type_, OptionalType)))
    is_null = node.emit(ops.is_null(node.tensor(0)))
    return ops.to_tensor(node.emit(PrimCall("not", (is_null,), type=PrimType(BOOL))), dtype="bool")


@converts("OptionalGetElement")
def _optional_get_element(node: OnnxNode) -> Expr:
    return _unwrap_optional(node, node.tensor(0))
