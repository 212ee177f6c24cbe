"""Lists that nothing uses any more take their next item themselves."""

from __future__ import annotations

from dataclasses import replace

from relvm.ir.expr import Binding, Block, BuiltinCall, Expr, Function, If, Kill, Var
from relvm.ir.node import Node, walk
from relvm.ir.types import VOID
from relvm.ir.verifier import Stage
from relvm.passes.pass_manager import function_pass


@function_pass("list_append_in_place", at=Stage.PLANNED)
def list_append_in_place(function: Function) -> Function:
    """Have a list's last use, where that adds an item, add it in place:

    y = builtin.list_append(x, item)   ->   y = builtin.list_push(x, item)
                                            _ = kill x

    list_push changes the list only if nothing but the register of x holds it.  No two variables share a register:
    second names are gone (lower_shapes).  What the block itself binds is left for insert_kills to drop.
    """
    lists = {value.args[0] for value in walk(function) if _is_append(value)}
    if not lists:
        return function
    return replace(function, body=_block(function.block, set(), lists))


def _is_append(value: Node) -> bool:
    return isinstance(value, BuiltinCall) and value.name == "list_append" and isinstance(value.args[0], Var)


def _block(block: Block, needed: set[Var], lists: set[Var]) -> Block:
    """needed: those of `lists` that are used after the block."""
    needed = needed | _used(block.result, lists)
    own = {binding.var for binding in block.bindings}
    bindings: list[Binding] = []  # the last one first
    for binding in reversed(block.bindings):
        value = binding.value
        if _is_append(value) and value.args[0] not in needed and value.args[0] is not value.args[1]:
            if value.args[0] not in own:
                bindings.append(Binding(Var("_", type=VOID, origins=binding.var.origins), Kill(value.args[0])))
            value = replace(value, name="list_push")
        elif isinstance(value, If):
            then, orelse = (_block(branch, needed, lists) for branch in (value.then, value.orelse))
            value = replace(value, then=then, orelse=orelse)
        bindings.append(binding if value is binding.value else replace(binding, value=value))
        needed |= _used(value, lists)
    return replace(block, bindings=tuple(reversed(bindings)))


def _used(expr: Expr, lists: set[Var]) -> set[Var]:
    return {item for item in walk(expr) if isinstance(item, Var) and item in lists}
