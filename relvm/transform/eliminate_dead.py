"""Removal of what nothing uses."""

from __future__ import annotations

from dataclasses import replace

from relvm.ir.expr import Binding, Block, Expr, Function, If, MatchCast, Module, Var
from relvm.ir.infer import is_impure_call, may_fail
from relvm.ir.node import children, walk
from relvm.ir.stages import Stage
from relvm.transform.passes import module_pass


@module_pass("eliminate_dead", at=Stage.NORMAL)
def eliminate_dead(module: Module) -> Module:
    """Remove bindings whose value is never used and has no effect.  A `match_cast` is a check, and stays."""
    return module.with_functions(tuple(replace(f, body=_block(f.body, set())) for f in module.functions))


def _block(block: Block, used: set[Var]) -> Block:
    """`block` without what neither it nor anything after it (`used`, which grows) needs."""
    _use(block.result, used)
    kept: list[Binding | MatchCast] = []
    for binding in reversed(block.bindings):
        if isinstance(binding, Binding) and binding.var not in used and not _has_effect(binding.value):
            continue
        value = _value(binding.value, used)
        kept.append(binding if value is binding.value else replace(binding, value=value))
    kept.reverse()
    if len(kept) == len(block.bindings) and all(a is b for a, b in zip(kept, block.bindings, strict=True)):
        return block
    return replace(block, bindings=tuple(kept))


def _value(value: Expr, used: set[Var]) -> Expr:
    match value:
        case If(cond, then, orelse):
            value = replace(value, then=_block(then, used), orelse=_block(orelse, used))
            _use(cond, used)
        case Function(body=body):
            value = replace(value, body=_block(body, used))
        case _:
            _use(value, used)
    return value


def _use(expr: Expr, used: set[Var]) -> None:
    if isinstance(expr, Var):
        used.add(expr)
    for child in children(expr):
        _use(child, used)


def _has_effect(value: Expr) -> bool:
    match value:
        case Function():
            return False  # making a closure has none
        case If(then=then, orelse=orelse):
            return any(
                is_impure_call(part) or isinstance(part, MatchCast) or may_fail(part)
                for side in (then, orelse)
                for part in walk(side)
            )
    return is_impure_call(value) or may_fail(value)
