"""Indexing of tensors in scripts, such as `x[0, 1:n, None]`, with the meaning of NumPy."""

from __future__ import annotations

from typing import Any

from relvm.data_classes import value_record
from relvm.errors import RelvmArgumentError, RelvmTypeError
from relvm.frontend.script.array_functions import as_size, integer_scalar, integer_tensor
from relvm.frontend.script.values import Value
from relvm.ir.builder import Builder
from relvm.ir.dtypes import I64
from relvm.ir.expr import DimValue, Expr, Shape, prim
from relvm.ir.symbolic import AnyDim, dim_op, dim_var, is_never_negative
from relvm.ir.types import ShapeType, TensorType

_END = 1 << 31  # stands for the last possible position in the operator `slice`
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


def index_tensor(builder: Builder, x: Expr, items: tuple[Value, ...]) -> Expr:
    """Translate `x[items]`.

    items: integers, scalars of the program, SliceIndex, None for a new axis, an Ellipsis, and at most one tensor, array
    or list of integers.

    Raises
    ------
    RelvmTypeError
        The rank of x is unknown, there are too many indices, or an index has another type.
    RelvmArgumentError
        The step of a slice is 0, or not positive although a bound is computed by the program.
    """
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
                first, last = (0, _END) if step is None or step > 0 else (_END, -_END)
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
        first, end = (_clamped_dim(bound, size) for bound in bounds)
        count = dim_op("max", dim_op("floordiv", dim_op("add", dim_op("sub", end, first), step - 1), step), 0)
        begin = as_size(first)
    else:
        begin, end_value = (_clamped_scalar(builder, bound, size) for bound in bounds)
        apart = builder.prim("add", builder.prim("sub", end_value, begin), step - 1)
        length = builder.prim("max", builder.prim("floordiv", apart, step), 0)
        sizes = builder.op("reshape", builder.op("to_tensor", length, dtype=I64), Shape((1,)))
        count = dim_var("size")
        builder.match_cast(builder.op("tensor_to_shape", sizes), ShapeType((count,)))
    positions = builder.op("iota", Shape((count,)))
    if step != 1:
        positions = builder.op("multiply", positions, step)
    if begin != prim(0):
        positions = builder.op("add", positions, builder.op("to_tensor", begin, dtype=I64))
    return positions


def _clamped_dim(bound: AnyDim, size: AnyDim) -> AnyDim:
    if isinstance(bound, int) and bound < 0:
        return dim_op("max", dim_op("add", size, bound), 0)
    return bound if bound in (0, size) else dim_op("min", bound, size)


def _clamped_scalar(builder: Builder, bound: Value, size: AnyDim) -> Expr:
    """Return a bound of a slice as a position in [0, size].  A negative bound counts from the end."""
    value = as_size(bound) if not isinstance(bound, Expr) else integer_scalar(builder, bound)
    is_negative = builder.prim("i64", builder.prim("lt", value, 0))
    position = builder.prim("add", value, builder.prim("mul", is_negative, as_size(size)))
    return builder.prim("min", builder.prim("max", position, 0), as_size(size))
