"""Dead code elimination: remove unused values and functions."""

from __future__ import annotations

from relvm.ir.expr import Binding, Block, Expr, Function, If, MatchCast, Module, Var
from relvm.ir.node import Node, children, walk
from relvm.ir.type_inference import is_impure_call, may_fail
from relvm.ir.verifier import Stage
from relvm.ir.visitor import function_references, group_functions, map_blocks, with_bindings, with_value
from relvm.passes.pass_manager import module_pass


@module_pass("dce", at=Stage.ANF, optional=True)
def dce(module: Module) -> Module:
    """Remove bindings whose value is never used and has no effect.

    A `match_cast` is a check, so it is never removed.  After removing bindings, the pass removes the private functions
    that no public function refers to, directly or indirectly.
    """
    return _used_functions(module.with_functions(tuple(map(_function, module.functions))))


def _function(function: Function) -> Function:
    used: set[Var] = set()
    return map_blocks(lambda block: _block(block, used), function)


def _used_functions(module: Module) -> Module:
    if not any(f.private for f in module.functions):
        return module
    functions = {f.name: f for f in module.functions}
    used = {f.name for f in module.functions if not f.private}
    waiting = list(used)
    while waiting:
        found = set(function_references(functions[waiting.pop()].body)) - used
        used |= found
        waiting += found
    return module.with_functions(tuple(f for f in module.functions if f.name in used))


def _block(block: Block, used: set[Var]) -> Block:
    """Return `block` without the bindings that are not needed.

    used: the variables that code after the block uses.  The variables that the returned block uses are added.
    """
    _add_uses(block.result, used)
    kept: list[Binding | MatchCast] = []
    for run in reversed(list(group_functions(block.bindings))):
        kept.extend(reversed(_needed_bindings(run, used)))
    kept.reverse()
    return with_bindings(block, kept)


def _needed_bindings(run: tuple[Binding | MatchCast, ...], used: set[Var]) -> list[Binding | MatchCast]:
    """Return the bindings of `run` that are needed.

    run: a single binding, or adjacent local functions that can call each other.
    used: the variables that later code uses.  The variables that the returned bindings use are added.
    """
    values: dict[Var, Expr] = {}
    count = -1
    while count < len(values):
        count = len(values)
        for binding in reversed(run):
            needed = isinstance(binding, MatchCast) or binding.var in used or _has_effect(binding.value)
            if needed and binding.var not in values:
                values[binding.var] = _value(binding.value, used)
    return [with_value(binding, values[binding.var]) for binding in run if binding.var in values]


def _value(value: Expr, used: set[Var]) -> Expr:
    if not isinstance(value, If | Function):
        _add_uses(value, used)
    elif isinstance(value, If):
        _add_uses(value.cond, used)
    return map_blocks(lambda block: _block(block, used), value)


def _add_uses(expr: Node, used: set[Var]) -> None:
    if isinstance(expr, Var):
        used.add(expr)
    for child in children(expr):
        _add_uses(child, used)


def _has_effect(value: Expr) -> bool:
    match value:
        case Function():
            return False  # creating a closure has no effect
        case If(then=then, orelse=orelse):
            return any(
                is_impure_call(part) or isinstance(part, MatchCast) or may_fail(part)
                for side in (then, orelse)
                for part in walk(side)
            )
    return is_impure_call(value) or may_fail(value)
