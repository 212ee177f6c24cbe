"""Binding of dimension variables: a value of type `f32[n, 4]` determines the variable n."""

from __future__ import annotations

from collections.abc import Iterable

from relvm.ir.symbolic import AnyDim, DimVar, as_var
from relvm.ir.types import PrimType, ShapeType, TensorType, TupleType, Type


def plain_dim_vars(type_: Type) -> Iterable[DimVar]:
    """Yield the plain dimension variables of `type_`: the variables that a value of this type binds.

    A variable is plain if it is a whole dimension of a tensor or shape, or the whole value of a scalar.  In
    `f32[n, m + 1]`, n is plain and m is not.
    """
    match type_:
        case TensorType(shape=dims) | ShapeType(dims=dims):
            yield from (var for var in map(as_var, dims or ()) if var)
        case PrimType(value=value):
            if value is not None and (var := as_var(value)):
                yield var
        case TupleType(fields):
            for part in fields:
                yield from plain_dim_vars(part)


def match_dims(param: Type, arg: Type, values: dict[DimVar, AnyDim]) -> None:
    """Match the parameter type `param` with the argument type `arg`, to determine the dimension variables of `param`.

    For each plain variable of `param` that is not yet in `values`, add the corresponding dimension of `arg` to
    `values`.
    """
    match param, arg:
        case (TensorType(shape=ours), TensorType(shape=theirs)) | (ShapeType(dims=ours), ShapeType(dims=theirs)):
            for ours_dim, theirs_dim in zip(ours or (), theirs or (), strict=False):
                if var := as_var(ours_dim):
                    values.setdefault(var, theirs_dim)
        case PrimType(value=ours), PrimType(value=theirs):
            if ours is not None and theirs is not None and (var := as_var(ours)):
                values.setdefault(var, theirs)
        case TupleType(ours), TupleType(theirs):
            for ours_field, theirs_field in zip(ours, theirs, strict=False):
                match_dims(ours_field, theirs_field, values)
