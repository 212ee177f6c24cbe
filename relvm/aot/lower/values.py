"""Values during lowering: tensors (each a storage with dimensions), C scalars, tuples and closures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from relvm.aot.lower.ir import DimScalar, Scalar
from relvm.data_classes import dataclass
from relvm.ir.dtypes import I64
from relvm.ir.expr import Var
from relvm.ir.symbolic import AnyDim, as_var
from relvm.ir.types import PrimType, ShapeType, TupleType, Type


@dataclass(frozen=True)
class TensorValue:
    """A tensor, given by the index of its storage and its dimensions."""

    storage: int
    dims: tuple[AnyDim, ...]


@dataclass(frozen=True)
class TupleValue:
    """A tuple, given by its items, or a shape, given by its dimensions as `DimScalar`."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class ClosureValue:
    """A closure of function `function`.   captured: the values that a call passes after the other arguments."""

    function: str
    captured: tuple[Value, ...]


Value = TensorValue | TupleValue | ClosureValue | Scalar

_Kind = TypeVar("_Kind", TensorValue, TupleValue, ClosureValue)


def expect_kind(kind: type[_Kind], value: Value) -> _Kind:
    """Return `value`, which must be an instance of `kind`.  The types of the program ensure this."""
    assert isinstance(value, kind), f"expected a {kind.__name__}, got {value}"
    return value


def expect_scalar(value: Value) -> Scalar:
    """Return `value`, which must be a scalar.  The types of the program ensure this."""
    assert isinstance(value, Scalar), f"expected a scalar, got {value}"
    return value


def shape_of_dims(dims: Iterable[AnyDim]) -> TupleValue:
    return TupleValue(tuple(map(DimScalar, dims)))


def shapes_to_tuples(type_: Type) -> Type:
    """Return the type with each shape replaced by a tuple of i64, because C functions return shapes as numbers."""
    match type_:
        case ShapeType(rank=rank) if rank is not None:
            return TupleType((PrimType(I64),) * rank)
        case TupleType(fields):
            return TupleType(tuple(map(shapes_to_tuples, fields)))
    return type_


def tensors_of(value: Value) -> Iterator[TensorValue]:
    """Yield the tensors in a value, including those inside tuples, in order."""
    match value:
        case TensorValue():
            yield value
        case TupleValue(items):
            for item in items:
                yield from tensors_of(item)


def is_size(type_: PrimType) -> bool:
    """Return whether a scalar parameter of type `type_`, such as i64(n), only passes the size of a dimension."""
    return type_.value is not None and as_var(type_.value) is not None


def scalars_of(params: Iterable[Var], values: Iterable[Value]) -> Iterator[tuple[PrimType, Scalar]]:
    """Yield the type and the value of each scalar in `values`, in order, including those inside tuples.

    params: the parameters to which the values are passed.   A scalar that only passes a size is omitted (see
    `is_size`).
    """
    for param, value in zip(params, values, strict=True):
        yield from _scalars_in(param.type, value)


def _scalars_in(type_: Type, value: Value) -> Iterator[tuple[PrimType, Scalar]]:
    match type_, value:
        case PrimType(), _ if not is_size(type_):
            yield type_, expect_scalar(value)
        case TupleType(fields), TupleValue(items):
            for field, item in zip(fields, items, strict=True):
                yield from _scalars_in(field, item)
