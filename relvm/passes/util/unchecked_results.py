"""Calls whose results may be of another type than the one they are stated to have."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from relvm.ir.expr import Binding, Block, BuiltinCall, Call, Expr, FunctionRef, If, MatchCast, Module, Var


def in_tail_position(block: Block, binding: Binding | MatchCast) -> bool:
    """Return whether a block in tail position ends with this binding and gives its value."""
    return binding is block.bindings[-1] and binding.var == block.result


def own_closures(block: Block) -> dict[Var, str]:
    """Return the closures that a function's block makes itself, with the names of their functions."""
    found: dict[Var, str] = {}
    for binding in block.bindings:
        match binding:
            case Binding(var, BuiltinCall("make_closure", (FunctionRef(name), *_))):
                found[var] = name
            case Binding(_, If(_, Block() as then, Block() as orelse)):
                found |= own_closures(then) | own_closures(orelse)
    return found


def unchecked_functions(module: Module) -> set[str]:
    """Return the functions that end with a call whose result nothing checks.

    A function type says how many arguments a function takes, and a value that comes from the host or from an object may
    return anything.  The result of such a call is checked where the caller goes on with it.  A call in tail position is
    not, so that it stays a tail call, and then the caller's caller checks.
    """
    callees = {f.name: set(_tail_callees(f.block, own_closures(f.block))) for f in module.functions}
    found: set[str] = set()
    while new := {name for name, tails in callees.items() if not tails.isdisjoint({None, *found})} - found:
        found |= new
    return found


def is_unchecked(callee: Expr, closures: dict[Var, str], unchecked: Collection[str]) -> bool:
    """Return whether the result of a call may be of another type than the one it is stated to have."""
    name = _name_of(callee, closures)
    return name is None or name in unchecked


def _name_of(callee: Expr, closures: dict[Var, str]) -> str | None:
    if isinstance(callee, FunctionRef):
        return callee.name
    return closures.get(callee) if isinstance(callee, Var) else None


def _tail_callees(block: Block, closures: dict[Var, str]) -> Iterator[str | None]:
    """The functions that calls in tail position call; None: one that is a value."""
    if not block.bindings or not in_tail_position(block, block.bindings[-1]):
        return
    match block.bindings[-1].value:
        case Call(callee=callee):
            yield _name_of(callee, closures)
        case If(_, Block() as then, Block() as orelse):
            yield from _tail_callees(then, closures)
            yield from _tail_callees(orelse, closures)
