"""In-place list append: append to a list without copying it if the list is not used afterwards."""

from __future__ import annotations

from dataclasses import replace

from relvm.ir.expr import Binding, Block, BuiltinCall, Expr, Function, If, MatchCast, Var
from relvm.ir.node import walk
from relvm.ir.verifier import Stage
from relvm.passes.pass_manager import function_pass


@function_pass("list_append_in_place", at=Stage.PLANNED, optional=True)
def list_append_in_place(function: Function) -> Function:
    """Append to a list in place if the append is the last use of the list:

    y = builtin.list_append(x, item)   ->   y = builtin.list_push(x, item)

    At run time, list_push changes the list only if the register of x is the only reference to the list.  Otherwise it
    copies the list.  No two variables share a register, because lower_shapes has removed aliases.  insert_kills adds
    the kill.
    """
    calls = [call for call in walk(function) if isinstance(call, BuiltinCall) and call.name == "list_append"]
    lists = {list_ for list_, _ in (call.args for call in calls) if isinstance(list_, Var)}
    if not lists:
        return function
    return replace(function, body=_block(function.block, set(), lists))


def _block(block: Block, needed: set[Var], lists: set[Var]) -> Block:
    """Return `block`, in which appends to lists are done in place where possible.

    lists: the variables of all lists to which the function appends.
    needed: the lists that are used after the block.
    """
    needed = needed | _used_lists(block.result, lists)
    bindings: list[Binding | MatchCast] = []  # in reverse order
    for binding in reversed(block.bindings):
        value = binding.value
        match value:
            case BuiltinCall("list_append", (Var() as list_, item)) if list_ not in needed and list_ is not item:
                value = replace(value, name="list_push")
            case If(then=Block() as then, orelse=Block() as orelse):
                value = replace(value, then=_block(then, needed, lists), orelse=_block(orelse, needed, lists))
        bindings.append(binding if value is binding.value else replace(binding, value=value))
        needed |= _used_lists(value, lists)
    return replace(block, bindings=tuple(reversed(bindings)))


def _used_lists(expr: Expr, lists: set[Var]) -> set[Var]:
    return {item for item in walk(expr) if isinstance(item, Var) and item in lists}
