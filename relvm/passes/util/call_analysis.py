"""Call analysis: finds functions that need not check their arguments."""

from __future__ import annotations

from relvm.ir.bind_dims import match_dims
from relvm.ir.expr import Call, FunctionRef, Module
from relvm.ir.node import Node, children
from relvm.ir.symbolic import AnyDim, DimVar
from relvm.ir.types import is_proven, substitute_dims


def find_proven_functions(module: Module) -> set[str]:
    """Return the names of the private functions whose arguments need no run-time checks.

    Such a function is only called by name, and never used as a value.  Every call is proven to pass arguments of the
    right types.

    The proofs rely on the types of the arguments, which are correct.  A call of a function value could return a value
    of another type, but its result is checked before it is used (relvm/passes/util/unchecked_results.py).
    """
    params = {f.name: tuple(param.type for param in f.params) for f in module.functions if f.private}
    proven = set(params)
    for function in module.functions:
        stack: list[Node] = [function.body]
        while stack:
            item = stack.pop()
            match item:
                case Call(callee=FunctionRef(name), args=args):
                    stack.extend(args)
                    if name in proven and not _are_proven(params[name], tuple(arg.type for arg in args)):
                        proven.discard(name)
                case FunctionRef(name):
                    proven.discard(name)
                case _:
                    stack.extend(children(item))
    return proven


def _are_proven(params: tuple, args: tuple) -> bool:
    values: dict[DimVar, AnyDim] = {}
    for param, arg in zip(params, args, strict=True):
        match_dims(param, arg, values)
    return all(is_proven(substitute_dims(param, values), arg) for param, arg in zip(params, args, strict=True))
