"""What values are while a function is lowered: tensors by their storages, all else by what it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from relvm.aot.lower.ir import Scalar
from relvm.ir.dtypes import I64
from relvm.ir.expr import Var
from relvm.ir.symbolic import AnyDim, as_var
from relvm.ir.types import PrimType, ShapeType, TupleType, Type


@dataclass(frozen=True)
class TensorValue:
    """A tensor's storage, and its sizes."""

    storage: int
    dims: tuple[AnyDim, ...]


@dataclass(frozen=True)
class ShapeValue:
    """A shape."""

    dims: tuple[AnyDim, ...]


@dataclass(frozen=True)
class TupleValue:
    """A tuple."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class ClosureValue:
    """A function whose last arguments are given."""

    function: str
    captured: tuple[Value, ...]


Value = TensorValue | ShapeValue | TupleValue | ClosureValue | Scalar

_Kind = TypeVar("_Kind", TensorValue, ShapeValue, TupleValue, ClosureValue)


def expect_kind(kind: type[_Kind], value: Value) -> _Kind:
    """Return the value, which has this kind by its type in the program."""
    assert isinstance(value, kind), f"expected a {kind.__name__}, got {value}"
    return value


def expect_scalar(value: Value) -> Scalar:
    """Return the value, which is a scalar by its type in the program."""
    assert isinstance(value, Scalar), f"expected a scalar, got {value}"
    return value


def with_sizes(type_: Type) -> Type:
    """A type with a tuple of i64 for each shape."""
    match type_:
        case ShapeType(rank=rank) if rank is not None:
            return TupleType((PrimType(I64),) * rank)
        case TupleType(fields):
            return TupleType(tuple(map(with_sizes, fields)))
    return type_


def tensors_of(value: Value) -> Iterator[TensorValue]:
    """The tensors in a value, from left to right."""
    match value:
        case TensorValue():
            yield value
        case TupleValue(items):
            for item in items:
                yield from tensors_of(item)


def is_size(type_: PrimType) -> bool:
    """Whether a parameter of a type is nothing but one of the function's sizes."""
    return type_.value is not None and as_var(type_.value) is not None


def scalars_of(params: Iterable[Var], values: Iterable[Value]) -> Iterator[tuple[PrimType, Scalar]]:
    """The scalars that parameters take of values, from left to right, each behind its type: those that are no sizes."""
    for param, value in zip(params, values, strict=True):
        yield from _scalars_in(param.type, value)


def _scalars_in(type_: Type, value: Value) -> Iterator[tuple[PrimType, Scalar]]:
    match type_, value:
        case PrimType(), _ if not is_size(type_):
            yield type_, expect_scalar(value)
        case TupleType(fields), TupleValue(items):
            for field, item in zip(fields, items, strict=True):
                yield from _scalars_in(field, item)
