"""Analysis of unchecked results: results of calls that are not proven to be of their declared types."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from relvm.ir.expr import Binding, Block, BuiltinCall, Call, Expr, FunctionRef, If, MatchCast, Module, Var


def is_tail_binding(block: Block, binding: Binding | MatchCast) -> bool:
    """Return whether `binding` is the last one of the block, and its variable is the result of the block."""
    return binding is block.bindings[-1] and binding.var == block.result


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
    callees = {f.name: set(_tail_callees(f.block, find_closures(f.block))) for f in module.functions}
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


def _tail_callees(block: Block, closures: dict[Var, str]) -> Iterator[str | None]:
    """Yield the name of each function that `block` calls in tail position, or None for the call of a function value."""
    if not block.bindings or not is_tail_binding(block, block.bindings[-1]):
        return
    match block.bindings[-1].value:
        case Call(callee=callee):
            yield _callee_name(callee, closures)
        case If(_, Block() as then, Block() as orelse):
            yield from _tail_callees(then, closures)
            yield from _tail_callees(orelse, closures)
