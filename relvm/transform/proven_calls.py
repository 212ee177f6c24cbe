"""Which functions need not look at their arguments."""

from __future__ import annotations

from relvm.ir.dims import AnyDim, DimVar
from relvm.ir.expr import Call, Expr, FunctionRef, Module, Var
from relvm.ir.infer import match_dims
from relvm.ir.node import children
from relvm.ir.types import FuncType, ObjectType, PrimType, TupleType, Type, is_proven, substitute_dims


def proven_functions(module: Module) -> set[str]:
    """The private functions that are only called, never values, and always with arguments of the parameters' types.

    What a call of a function value gives is of the type that its function type states only if nobody passed another
    function: two function types agree where their numbers of parameters do (relvm/ir/types.py, `mismatch`), and a
    call at a function's end is not checked, so such a value may come from any call.  A module with one proves nothing.
    """
    params = {f.name: tuple(param.type for param in f.params) for f in module.functions if f.private}
    proven = set(params)
    for function in module.functions:
        stack: list[Expr] = [function.body]
        while stack:
            item = stack.pop()
            match item:
                case Call(callee=FunctionRef(name), args=args):
                    stack.extend(args)
                    if name in proven and not _fit(params[name], tuple(arg.type for arg in args)):
                        proven.discard(name)
                case Call(callee=Var(), type=type_) if not _is_always_checked(type_):
                    return set()
                case FunctionRef(name):
                    proven.discard(name)
                case _:
                    stack.extend(children(item))
    return proven


def _is_always_checked(type_: Type) -> bool:
    """Whether nothing is taken on trust of a value of the type: scalars are checked on entry of every function, and
    what an object or a function is, where it is used."""
    match type_:
        case PrimType(value=value):
            return value is None
        case TupleType(fields):
            return not fields
    return isinstance(type_, ObjectType | FuncType)


def _fit(params: tuple, args: tuple) -> bool:
    values: dict[DimVar, AnyDim] = {}
    for param, arg in zip(params, args, strict=True):
        match_dims(param, arg, values)
    return all(is_proven(substitute_dims(param, values), arg) for param, arg in zip(params, args, strict=True))
