"""Names for the sizes that only the machine knows: what an operator's arguments are checked to be at run time."""

from __future__ import annotations

import inspect
from dataclasses import replace

from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.ir.dims import AnyDim, DimVar, as_var, dim_var, dim_vars
from relvm.ir.expr import Expr, MatchCast, OpCall, Var
from relvm.ir.types import ShapeType, TensorType, TupleType, Type, substitute_dims
from relvm.transform.casts import in_binding_order


def with_known_shapes(call: OpCall, function: str, unnamed: set[DimVar]) -> tuple[OpCall, list[MatchCast]]:
    """The call over arguments whose every dimension has a name, and the match_casts before it that give the names.

    A tensor or shape of known rank only gets a new variable for each dimension.  Where the operator's type rule needs
    two dimensions to be equal and one of them is such a variable, the other takes its place, so that the match_cast is
    the check that they are.

    Parameters
    ----------
    function
        The name of the function around the call, for messages.
    unnamed
        The variables that calls before this one got in the same function; those of this call are added.

    Raises
    ------
    RelvmShapeError
        Dimensions that have names already are not proven equal.
    RelvmUnsupportedError
        An argument of unknown rank or dtype.
    """
    types = {arg: _named(call, arg.type) for arg in call.args}
    new = {var for arg, type_ in types.items() if type_ is not arg.type for var in _variables(type_)}
    if not new and _is_known(call.type):
        return call, []
    unnamed |= new
    types, result = _related(call, types, unnamed, function)
    casts: dict[Expr, MatchCast] = {}
    for i, arg in enumerate(call.args):
        if types[arg] != arg.type:
            where = f"{function}: {call.op}: argument {_parameter(call, i)}"
            var = replace(arg, type=types[arg]) if isinstance(arg, Var) else Var("value", type=types[arg])
            casts.setdefault(arg, MatchCast(var, arg, where))
    ordered = in_binding_order(casts.values(), new)
    if ordered is None:
        raise RelvmShapeError(f"{function}: {call.op}: sizes that depend on each other; match_cast one argument")
    args = tuple(casts[arg].var if arg in casts else arg for arg in call.args)
    return replace(call, args=args, type=result), ordered


def _named(call: OpCall, type_: Type) -> Type:
    """`type_` with a new variable for each dimension where only the rank is known."""
    match type_:
        case TensorType(dtype, None, rank) if rank is not None and dtype is not None:
            return TensorType(dtype, tuple(dim_var(f"d{i}") for i in range(rank)))
        case ShapeType(None, rank) if rank is not None:
            return ShapeType(tuple(dim_var(f"d{i}") for i in range(rank)))
        case TensorType(shape=None) | ShapeType(dims=None) | TensorType(dtype=None):
            hint = "match_cast it to a known rank and dtype"
        case TensorType() | ShapeType():
            return type_
        case _:
            hint = "match_cast it to a tensor first"
    raise RelvmUnsupportedError(f"{call.op}: an argument of type {type_}: {hint}")


def _is_known(type_: Type) -> bool:
    match type_:
        case TensorType(shape=None) | ShapeType(dims=None):
            return False
        case TupleType(fields):
            return all(map(_is_known, fields))
    return True


def _variables(type_: TensorType | ShapeType) -> list[DimVar]:
    dims = type_.shape if isinstance(type_, TensorType) else type_.dims
    return [var for dim in dims for var in dim_vars(dim)]


def _related(
    call: OpCall, types: dict[Expr, Type], unnamed: set[DimVar], function: str
) -> tuple[dict[Expr, Type], Type]:
    """The arguments' types with equal variables made one, and the result's type."""
    while True:  # each time round there is one variable less
        try:
            return types, call.op.infer(tuple(types[arg] for arg in call.args), call.attributes)
        except RelvmShapeError as error:
            found = error.unproven and _replacement(*error.unproven, unnamed)
            if not found:
                raise RelvmShapeError(f"{function}: {error}") from error
        types = {arg: substitute_dims(type_, dict([found])) for arg, type_ in types.items()}


def _replacement(first: AnyDim, second: AnyDim, unnamed: set[DimVar]) -> tuple[DimVar, AnyDim] | None:
    """The unnamed variable that one of the dimensions is, and the other dimension."""
    for dim, other in ((second, first), (first, second)):
        var = as_var(dim)
        if var in unnamed and var not in dim_vars(other):
            return var, other
    return None


def _parameter(call: OpCall, index: int) -> str:
    """The name of the operator's parameter that takes argument `index`."""
    parameters = call.op.parameters
    last = parameters[-1]
    if last.kind is inspect.Parameter.VAR_POSITIONAL and index >= len(parameters) - 1:
        return f"{last.name}[{index - len(parameters) + 1}]"
    return parameters[index].name
