"""What values are while a function is lowered: tensors by their storages, all else by what it is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from relvm.aot.lowered import Scalar
from relvm.ir.dims import AnyDim, as_var
from relvm.ir.dtypes import I64
from relvm.ir.types import PrimType, ShapeType, TupleType, Type


@dataclass(frozen=True)
class Tensor:
    """A tensor's storage, and its sizes."""

    storage: int
    dims: tuple[AnyDim, ...]


@dataclass(frozen=True)
class Sizes:
    """A shape."""

    dims: tuple[AnyDim, ...]


@dataclass(frozen=True)
class Fields:
    """A tuple."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class Closure:
    """A function whose last arguments are given."""

    function: str
    captured: tuple[Value, ...]


Value = Tensor | Sizes | Fields | Closure | Scalar


def with_sizes(type_: Type) -> Type:
    """A type with a tuple of i64 for each shape."""
    match type_:
        case ShapeType(rank=rank) if rank is not None:
            return TupleType((PrimType(I64),) * rank)
        case TupleType(fields):
            return TupleType(tuple(map(with_sizes, fields)))
    return type_


def tensors_of(value: Value) -> Iterator[Tensor]:
    """The tensors in a value, from left to right."""
    match value:
        case Tensor():
            yield value
        case Fields(items):
            for item in items:
                yield from tensors_of(item)


def scalars_of(type_: Type, value: Value) -> Iterator[Scalar]:
    """The scalars that a parameter of a type takes of a value: those that are no sizes."""
    match type_, value:
        case PrimType(value=known), _:
            if known is None or as_var(known) is None:
                yield value
        case TupleType(fields), Fields(items):
            for field, item in zip(fields, items, strict=True):
                yield from scalars_of(field, item)
