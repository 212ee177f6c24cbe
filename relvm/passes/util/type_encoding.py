"""Encoding of types as integers for the builtin match_type (csrc/tables/type_codes.def)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from relvm.ir.expr import Prim, prim
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import (
    FuncType,
    ListType,
    ObjectType,
    OptionalType,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
)
from relvm.tables import SHAPE_CODES, TYPE_CODES

_CODE = {row.name: prim(row.number) for row in TYPE_CODES}
_ANY = next(prim(row.number) for row in SHAPE_CODES if row.name == "ANY")


def encode_type(type_: Type | None, encode_dim: Callable[[AnyDim], tuple[Prim, Prim]]) -> Iterator[Prim]:
    """Yield the integers that encode `type_` for the builtin match_type.

    The item type of an empty list is None.  It is encoded as NEVER, which stands for a type without values.

    Parameters
    ----------
    encode_dim
        A function that returns the two integers (code, value) that encode a dimension.
    """
    match type_:
        case None:
            yield _CODE["NEVER"]
        case ObjectType():
            yield _CODE["ANY"]
        case TensorType(dtype, shape, rank):
            yield from (_CODE["TENSOR"], _or_any(rank), _or_any(dtype.index if dtype else None))
            yield from _encode_dims(shape, encode_dim)
        case ShapeType(dims, rank):
            yield from (_CODE["SHAPE"], _or_any(rank))
            yield from _encode_dims(dims, encode_dim)
        case PrimType(dtype, value):
            yield from (_CODE["SCALAR"], prim(dtype.index))
            yield from (_ANY, prim(0)) if value is None else encode_dim(value)
        case FuncType(pure=pure):
            yield _CODE["PURE_FUNCTION" if pure else "FUNCTION"]
        case TupleType(fields):
            yield from (_CODE["TUPLE"], prim(len(fields)))
            for field in fields:
                yield from encode_type(field, encode_dim)
        case ListType(inner) | OptionalType(inner):
            yield _CODE["LIST" if isinstance(type_, ListType) else "OPTIONAL"]
            yield from encode_type(inner, encode_dim)


def _or_any(number: int | None) -> Prim:
    return prim(-1 if number is None else number)


def _encode_dims(dims: tuple[AnyDim, ...] | None, encode_dim: Callable[[AnyDim], tuple[Prim, Prim]]) -> Iterator[Prim]:
    yield prim(len(dims or ()))
    for dim in dims or ():
        yield from encode_dim(dim)
