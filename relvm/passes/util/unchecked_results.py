"""Analysis of unchecked results: results of calls that are not proven to be of their declared types."""

from __future__ import annotations

from collections.abc import Collection

from relvm.ir.expr import Binding, Block, BuiltinCall, Expr, FunctionRef, If, Module, Var
from relvm.ir.visitor import tail_calls


def find_closures(block: Block) -> dict[Var, str]:
    """Map each variable that is bound to a new closure in `block` to the name of the closure's function."""
    found: dict[Var, str] = {}
    for binding in block.bindings:
        match binding:
            case Binding(var, BuiltinCall("make_closure", (FunctionRef(name), *_))):
                found[var] = name
            case Binding(_, If(_, Block() as then, Block() as orelse)):
                found |= find_closures(then) | find_closures(orelse)
    return found


def find_unchecked_functions(module: Module) -> set[str]:
    """Return the names of the functions that can return the unchecked result of a tail call.

    A function value that comes from the host or from an object can return anything, whatever its type says.  The caller
    normally checks the result before using it.  In a tail call, this is impossible, because a check after the call
    would mean that it is no longer a tail call.  Instead, the result is checked by the caller of the function that
    makes the tail call.
    """
    callees = {}
    for function in module.functions:
        closures = find_closures(function.block)
        callees[function.name] = {_callee_name(call.callee, closures) for call in tail_calls(function.block)}
    found: set[str] = set()
    while new := {name for name, tails in callees.items() if not tails.isdisjoint({None, *found})} - found:
        found |= new
    return found


def is_unchecked(callee: Expr, closures: dict[Var, str], unchecked: Collection[str]) -> bool:
    """Return whether the result of a call of `callee` is unchecked, and therefore not proven to be of its declared
    type.

    closures: a variable that is bound to a closure -> the name of the closure's function.
    unchecked: the names of the functions that can return the unchecked result of a tail call.
    """
    name = _callee_name(callee, closures)
    return name is None or name in unchecked


def _callee_name(callee: Expr, closures: dict[Var, str]) -> str | None:
    if isinstance(callee, FunctionRef):
        return callee.name
    return closures.get(callee) if isinstance(callee, Var) else None
