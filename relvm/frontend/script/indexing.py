"""Indexing of tensors in scripts, such as `x[0, 1:n, None]`, with the meaning of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm.data_classes import value_record
from relvm.errors import RelvmArgumentError, RelvmTypeError
from relvm.frontend.script.array_functions import as_size, integer_scalar, integer_tensor, runtime_size
from relvm.frontend.script.values import Value
from relvm.ir.builder import Builder
from relvm.ir.dtypes import BOOL, I64
from relvm.ir.expr import DimValue, Expr, Shape, constant, prim
from relvm.ir.symbolic import AnyDim, dim_op, is_never_negative, product
from relvm.ir.types import TensorType, is_proven, mismatch_reason
from relvm.ops.slice import FAR, clamp_bound

_Step = tuple[str, tuple[Expr, ...], dict[str, Any]]  # an operator, its arguments after x, and its attributes


@value_record
class SliceIndex:
    """An index `start:stop:step`.  Parts that are not written are None."""

    start: Value
    stop: Value
    step: Value

    @property
    def is_known(self) -> bool:
        """Whether all parts are known during the translation."""
        return all(part is None or type(part) is int for part in (self.start, self.stop, self.step))


def is_known_index(item: Value) -> bool:
    """Return whether an index is known during the translation."""
    if isinstance(item, tuple):
        return all(map(is_known_index, item))
    return item.is_known if isinstance(item, SliceIndex) else not isinstance(item, Expr)


def python_index(item: Value) -> Any:
    """Convert an index that is known during the translation to an index of Python, such as a slice object."""
    if isinstance(item, tuple):
        return tuple(map(python_index, item))
    return slice(item.start, item.stop, item.step) if isinstance(item, SliceIndex) else item


def index_tensor(builder: Builder, x: Expr, items: tuple[Value, ...]) -> Expr:
    """Translate `x[items]`.

    items: integers, scalars of the program, SliceIndex, None for a new axis, an Ellipsis, and at most one tensor, array
    or list of integers; or a tensor of bool as the only item.

    Raises
    ------
    RelvmTypeError
        The rank of x is unknown, there are too many indices, or an index has another type.
    RelvmArgumentError
        The step of a slice is 0, or not positive although a bound is computed by the program.
    """
    if any(map(_is_mask, items)):
        return _select(builder, x, items)
    rank = x.tensor_type.rank
    if rank is None:
        raise RelvmTypeError(f'the rank of {x.type} is unknown; state it before indexing: match_cast(x, "f32[m]")')
    ranges: list[tuple[int, int, int, int]] = []  # axis, begin, end and step of the slices with known bounds
    selections: list[_Step] = []  # steps that do not change the number of axes
    changes: list[_Step] = []  # steps that do, from the first axis to the last
    axis = 0
    for item in _without_ellipsis(items, rank):
        match item:
            case None:
                changes.append(("expand_dims", (), {"axes": (axis,)}))
                continue
            case SliceIndex(None, None, None):
                pass
            case SliceIndex(start, stop, step) if all(
                type(part) is int or part is None for part in (start, stop, step)
            ):
                first, last = (0, FAR) if step is None or step > 0 else (FAR, -FAR)
                bounds = first if start is None else start, last if stop is None else stop
                ranges.append((axis, *bounds, 1 if step is None else step))
            case SliceIndex():
                selections.append(("gather", (_positions(builder, x.tensor_type, axis, item),), {"axis": axis}))
            case _:
                changes.append(("gather", (integer_tensor(builder, item),), {"axis": axis}))
        axis += 1
    if ranges:
        axes, begin, end, steps = zip(*ranges, strict=True)
        selections.append(("slice", (), {"begin": begin, "end": end, "axes": axes, "steps": steps}))
    # From the last axis to the first, because a change moves the axes after it.
    for operator, arguments, attributes in (*selections, *reversed(changes)):
        x = builder.op(operator, x, *arguments, **attributes)
    return x


def _select(builder: Builder, x: Expr, items: tuple[Value, ...]) -> Expr:
    """Translate `x[mask]`: the items of x along its first axes, where the bool tensor `mask` is true."""
    if len(items) > 1:
        raise RelvmTypeError("expected a tensor of bool as the only index; index twice")
    mask = items[0] if isinstance(items[0], Expr) else constant(items[0])
    shape, axes = x.tensor_type.shape, mask.tensor_type.known_rank
    if shape is None or len(shape) < axes:
        raise RelvmTypeError(
            f"a tensor of bool of rank {axes} cannot index {x.type}; expected a known shape and its axes"
        )
    if reason := mismatch_reason(TensorType(BOOL, shape[:axes]), mask.type):
        raise RelvmTypeError(f"the index: {reason}")
    if not is_proven(TensorType(BOOL, shape[:axes]), mask.type):
        mask = builder.match_cast(mask, TensorType(BOOL, shape[:axes]))
    total = builder.op("to_scalar", builder.op("sum", builder.op("cast", mask, to=I64)))
    count = runtime_size(builder, total)
    rows = builder.op("reshape", x, Shape((product(shape[:axes]), *shape[axes:])))
    return builder.op("gather", rows, builder.op("nonzero", mask, Shape((count,))), axis=0)


def assignment_advice(name: str, x: TensorType, indices: list[tuple[Value, str]], value: str, is_number: bool) -> str:
    """Return the statement that a script can contain in place of `name[indices] = value`.

    indices: each index and its source.
    value: the source of the assigned value.
    is_number: whether the value is a number, or has one element for each element of x.
    """
    first, source = indices[0]
    if len(indices) == 1 and _is_mask(first) and is_number:
        return f"write {name} = np.where({source}, {value}, {name})"
    rank = x.rank
    conditions = []
    for axis, (item, text) in enumerate(indices):
        if rank is None or axis >= rank:
            break
        size = f"{name}.shape[{axis}]"
        at = f"np.arange({size}){_new_axes(rank - 1 - axis)}"
        match item:
            case SliceIndex(None, None, None):
                continue
            case SliceIndex(start, stop, step) if is_number and step in (None, 1):
                parts = text.split(":")
                bounds = [part.strip() for part in parts[:2]]
                for bound, part, sign in zip((start, stop), bounds, (">=", "<"), strict=True):
                    if bound is not None:
                        conditions.append(f"({at} {sign} {_from_start(bound, part, size)})")
            case _ if _is_scalar_index(item):
                conditions.append(f"({at} == {_from_start(item, text, size)})")
            case _:
                break
    else:
        return f"write {name} = np.where({' & '.join(conditions) or True}, {value}, {name})"
    return f"compute the new tensor with np.where or np.concatenate, and assign it to {name}"


def _from_start(bound: Value, text: str, size: str) -> str:
    """Return the source of a bound that counts from the start of an axis.  text: the source of the bound."""
    return f"{size} - {-bound}" if isinstance(bound, int) and bound < 0 else text


def _new_axes(count: int) -> str:
    return f"[:{', None' * count}]" if count else ""


def _is_mask(item: Value) -> bool:
    """Return whether an index is a tensor or an array of bool."""
    if isinstance(item, Expr):
        return isinstance(item.type, TensorType) and item.type.dtype == BOOL and item.type.rank != 0
    return isinstance(item, np.ndarray) and item.dtype == bool


def _without_ellipsis(items: tuple[Value, ...], rank: int) -> list[Value]:
    """Replace an Ellipsis by slices, and check the number of indices.  rank: the rank of the indexed tensor."""
    arrays = [at for at, item in enumerate(items) if not (item is None or item is ... or isinstance(item, SliceIndex))]
    several = [at for at in arrays if not _is_scalar_index(items[at])]
    if len(several) > 1:
        raise RelvmTypeError("expected at most one tensor or list of indices; use gather_nd for several")
    if several and arrays[-1] - arrays[0] >= len(arrays):
        raise RelvmTypeError("expected no slice, None or ... between a tensor of indices and an integer; index twice")
    given = sum(item is not None and item is not ... for item in items)
    if given > rank:
        raise RelvmTypeError(f"expected at most {rank} indices, one for each axis, got {given}")
    ellipses = [at for at, item in enumerate(items) if item is ...]
    if len(ellipses) > 1:
        raise RelvmTypeError("expected at most one ... among the indices")
    (at,) = ellipses or (len(items),)
    return [*items[:at], *[SliceIndex(None, None, None)] * (rank - given), *items[at + 1 :]]


def _is_scalar_index(item: Value) -> bool:
    return isinstance(item, int) or (
        isinstance(item, Expr) and (not isinstance(item.type, TensorType) or item.type.rank == 0)
    )


def _positions(builder: Builder, x: TensorType, axis: int, item: SliceIndex) -> Expr:
    """Return the positions that a slice with computed bounds selects along an axis of x, as a tensor of i64."""
    step = 1 if item.step is None else item.step
    if type(step) is not int or step <= 0:
        raise RelvmArgumentError("the step of a slice with computed bounds must be a positive integer")
    if x.shape is None:
        raise RelvmTypeError(f'the shape of {x} is unknown; state it before indexing: match_cast(x, "f32[m]")')
    size = x.shape[axis]
    start, stop = (0 if item.start is None else item.start), (size if item.stop is None else item.stop)
    bounds = [bound.dim if isinstance(bound, DimValue) else bound for bound in (start, stop)]
    if all(not isinstance(bound, Expr) and (isinstance(bound, int) or is_never_negative(bound)) for bound in bounds):
        first, end = (clamp_bound(size, bound, 0, size) for bound in bounds)
        count = dim_op("max", dim_op("floordiv", dim_op("add", dim_op("sub", end, first), step - 1), step), 0)
        begin = as_size(first)
    else:
        begin, end_value = (_clamped_scalar(builder, bound, size) for bound in bounds)
        apart = builder.prim("add", builder.prim("sub", end_value, begin), step - 1)
        length = builder.prim("max", builder.prim("floordiv", apart, step), 0)
        count = runtime_size(builder, length)
    positions = builder.op("iota", Shape((count,)))
    if step != 1:
        positions = builder.op("multiply", positions, step)
    if begin != prim(0):
        positions = builder.op("add", positions, builder.op("to_tensor", begin, dtype=I64))
    return positions


def _clamped_scalar(builder: Builder, bound: Value, size: AnyDim) -> Expr:
    """Return a bound of a slice as a position in [0, size].  A negative bound counts from the end."""
    value = as_size(bound) if not isinstance(bound, Expr) else integer_scalar(builder, bound)
    is_negative = builder.prim("i64", builder.prim("lt", value, 0))
    position = builder.prim("add", value, builder.prim("mul", is_negative, as_size(size)))
    return builder.prim("min", builder.prim("max", position, 0), as_size(size))
