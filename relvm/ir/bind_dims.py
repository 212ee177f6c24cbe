"""Dimension variables that values bind: a tensor of type `f32[n, 4]` gives n its value."""

from __future__ import annotations

from collections.abc import Iterable

from relvm.ir.symbolic import AnyDim, DimVar, as_var
from relvm.ir.types import PrimType, ShapeType, TensorType, TupleType, Type


def plain_dim_vars(type_: Type) -> Iterable[DimVar]:
    """Yield the plain variables of `type_`: those that are a dimension of a tensor or shape, or the value of a scalar,
    on their own.  A value binds them."""
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
    """Record in `values` the value of each plain variable of `param`, given a value of type `arg`."""
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
