"""Insertion of kills, which release each value after its last use."""

from __future__ import annotations

from dataclasses import replace

from relvm.ir.expr import Binding, Block, BuiltinCall, Function, Kill, MatchCast, Module, Var
from relvm.ir.node import walk
from relvm.ir.types import VOID, PrimType
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_blocks, with_bindings, with_value
from relvm.passes.pass_manager import module_pass

_UPDATES = frozenset(("unshare_tensor", "list_push"))


@module_pass("insert_kills", at=Stage.PLANNED)
def insert_kills(module: Module) -> Module:
    """Release each value after its last use in the block that binds it:

    z = relu(y)   ->   z = relu(y); _ = kill(y)

    Three kinds of values are not released: parameters, which belong to the caller; scalars, which own no memory; and
    the result of the block.

    If the module updates tensors or lists in place, a value must not be referred to by variables that are not used any
    more.  Then parameters, and values of outer blocks, are released after their last use, too.
    """
    kills_outer = any(
        isinstance(item, BuiltinCall) and item.name in _UPDATES
        for function in module.functions
        for item in walk(function)
    )
    return module.with_functions(tuple(_function(function, kills_outer) for function in module.functions))


def _function(function: Function, kills_outer: bool) -> Function:
    params = frozenset(filter(_owns_memory, function.params)) if kills_outer else frozenset()
    return replace(function, body=_block(function.block, params, kills_outer))


def _owns_memory(var: Var) -> bool:
    return not isinstance(var.type, PrimType) and var.type != VOID


def _block(block: Block, outer: frozenset[Var], kills_outer: bool) -> Block:
    """Return `block` with kills.

    outer: the parameters, and the variables of outer blocks, that are not used after the block.
    kills_outer: whether to release them, too.
    """
    own = {binding.var for binding in block.bindings if _owns_memory(binding.var)}
    last: dict[Var, int] = {}
    for i, binding in enumerate(block.bindings):
        if binding.var in own:
            last[binding.var] = i  # a value without uses is released at once
        for item in walk(binding.value):
            if isinstance(item, Var) and (item in own or item in outer):
                last[item] = i
    for item in walk(block.result):
        if isinstance(item, Var):
            last.pop(item, None)
    dead: dict[int, list[Var]] = {}
    for var, i in last.items():
        dead.setdefault(i, []).append(var)
    bindings: list[Binding | MatchCast] = []
    for i, binding in enumerate(block.bindings):
        dead_here = dead.get(i, ())
        unused = frozenset(dead_here) - {binding.var} if kills_outer else frozenset()

        def inner(branch: Block, unused: frozenset[Var] = unused) -> Block:
            return _block(branch, unused, kills_outer)

        bindings.append(with_value(binding, map_blocks(inner, binding.value)))
        bindings.extend(Binding(Var("_", type=VOID, origins=var.origins), Kill(var)) for var in dead_here)
    return with_bindings(block, bindings)
