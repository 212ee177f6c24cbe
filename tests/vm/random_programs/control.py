"""Random tuples, ifs and match_casts."""

from __future__ import annotations

from collections.abc import Callable

from random_programs.scalars import condition
from random_programs.state import DIM_LIMIT, State, has_function, is_known
from random_programs.types import value_type
from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr, If, Tuple, TupleItem
from relvm.ir.symbolic import AnyDim, as_var, dim_var
from relvm.ir.types import ObjectType, PrimType, ShapeType, TensorType, TupleType, Type, mismatch_reason

Statements = Callable[[State, int], None]  # adds up to the given number of statements to the current block


def tuple_of_scope(state: State) -> Expr:
    """Return a tuple of variables in scope, which can include function values and tuples."""
    usable = [var for var in reversed(state.frame.scope) if state.is_plain(var)]
    fields = []
    while usable and len(fields) < 4 and state.source.more(3):
        fields.append(state.source.choice(usable))
    return Tuple(tuple(fields))


def item(state: State) -> Expr | None:
    t = state.find(lambda type_: isinstance(type_, TupleType) and bool(type_.fields))
    return TupleItem(t, state.source.integer(0, len(t.type.fields) - 1)) if t is not None else None


def conditional(state: State, statements: Statements) -> Expr | None:
    """Return an if, or None if it would be nested too deeply.

    The branches contain statements.  Their results have the same type, or two types whose join is the type of the if.
    """
    if state.frame.depth > 3:
        return None
    wanted = value_type(state)
    other = _like(state, wanted) if state.source.one_in(4) else wanted
    cond = condition(state)
    branches = []
    for type_ in (wanted, other):
        with state.inside():
            branches.append(state.builder.block(lambda type_=type_: _branch(state, statements, type_)))
    return If(cond, *branches)


def _branch(state: State, statements: Statements, type_: Type) -> Expr:
    statements(state, 3)
    return state.value(type_)


def _like(state: State, type_: Type) -> Type:
    """Return a variant of `type_` with other dimensions.  Its join with `type_` can be less specific than both."""
    match type_:
        case TensorType(dtype, shape) if shape is not None:
            return TensorType(dtype, tuple(_other_dim(state, dim) for dim in shape))
        case ShapeType(dims) if dims is not None:
            return ShapeType(tuple(_other_dim(state, dim) for dim in dims))
        case TupleType(fields):
            return TupleType(tuple(_like(state, field) for field in fields))
        case PrimType(dtype) if dtype == I64:
            return PrimType(I64)
    return type_


def _other_dim(state: State, dim: AnyDim) -> AnyDim:
    return state.source.choice([dim, 1, *state.frame.dims])


def checked(state: State) -> None:
    """Add a match_cast.

    Usually the type has new dimension variables, which are bound to the sizes at run time.  If failures are allowed,
    the value may not have the type.
    """
    var = state.find(lambda type_: not has_function(type_))
    if var is None:
        return
    if state.frame.may_fail and state.source.one_in(8) and not isinstance(var.type, ObjectType):
        wanted, limit = _like(state, var.type), DIM_LIMIT
        if mismatch_reason(wanted, var.type):
            return
        state.account.fails = True
    else:
        wanted, limit = renamed(state, var.type), largest(state, var.type)
    if not is_known(wanted, state.frame.dims) and not _all_plain(wanted):
        return
    cast = state.builder.match_cast(var, wanted)
    state.know(wanted, limit)
    state.see(cast)


def renamed(state: State, type_: Type) -> Type:
    """Return `type_` with new variables for unknown dimensions and for some of the known dimensions."""
    match type_:
        case TensorType(dtype, shape, rank):
            if rank is None:
                return TensorType(dtype)
            return TensorType(dtype, tuple(_renamed_dim(state, dim) for dim in shape or (None,) * rank))
        case ShapeType(dims, rank):
            if rank is None:
                return ShapeType()
            return ShapeType(tuple(_renamed_dim(state, dim) for dim in dims or (None,) * rank))
        case TupleType(fields):
            return TupleType(tuple(renamed(state, field) for field in fields))
    return type_


def _renamed_dim(state: State, dim: AnyDim | None) -> AnyDim:
    return dim if dim is not None and state.source.one_in(2) else dim_var("d")


def _all_plain(type_: Type) -> bool:
    match type_:
        case TensorType(shape=dims) | ShapeType(dims=dims):
            return all(isinstance(dim, int) or as_var(dim) is not None for dim in dims or ())
        case TupleType(fields):
            return all(map(_all_plain, fields))
    return True


def largest(state: State, type_: Type) -> int:
    """Return an upper bound of the dimensions of all values of a type."""
    match type_:
        case TensorType(shape=dims) | ShapeType(dims=dims) if dims is not None:
            return max(map(state.limit, dims), default=1)
        case TupleType(fields):
            return max((largest(state, field) for field in fields), default=1)
    return DIM_LIMIT
