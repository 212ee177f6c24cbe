"""Insertion of kills, which release each value after its last use."""

from __future__ import annotations

from relvm.ir.expr import Binding, Block, Function, Kill, MatchCast, Var
from relvm.ir.node import walk
from relvm.ir.types import VOID, PrimType
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_blocks, with_bindings, with_value
from relvm.passes.pass_manager import function_pass


@function_pass("insert_kills", at=Stage.PLANNED)
def insert_kills(function: Function) -> Function:
    """Release each value after its last use in the block that binds it:

    z = relu(y)   ->   z = relu(y); _ = kill(y)

    Three kinds of values are not released: parameters, which belong to the caller; scalars, which own no memory; and
    the result of the block.
    """
    return map_blocks(_block, function)


def _block(block: Block) -> Block:
    own = {b.var for b in block.bindings if not isinstance(b.var.type, PrimType) and b.var.type != VOID}
    last: dict[Var, int] = {}
    for i, binding in enumerate(block.bindings):
        if binding.var in own:
            last[binding.var] = i  # a value without uses is released at once
        for item in walk(binding.value):
            if isinstance(item, Var) and item in own:
                last[item] = i
    for item in walk(block.result):
        if isinstance(item, Var):
            last.pop(item, None)
    dead: dict[int, list[Var]] = {}
    for var, i in last.items():
        dead.setdefault(i, []).append(var)
    bindings: list[Binding | MatchCast] = []
    for i, binding in enumerate(block.bindings):
        bindings.append(with_value(binding, map_blocks(_block, binding.value)))
        bindings.extend(Binding(Var("_", type=VOID, origins=var.origins), Kill(var)) for var in dead.get(i, ()))
    return with_bindings(block, bindings)
