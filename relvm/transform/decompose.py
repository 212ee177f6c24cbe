"""Operators that are compositions of others."""

from __future__ import annotations

from dataclasses import replace

from relvm.ir.expr import Binding, Block, Expr, Function, If, OpCall, Var
from relvm.ir.stages import Stage
from relvm.ops.lowering import Composition
from relvm.transform.passes import function_pass


@function_pass("decompose", at=Stage.NORMAL)
def decompose(function: Function) -> Function:
    """Replace each operator that is declared as a composition by the operators that it is made of:

    y = softmax(x)   ->   y_max = max(x, axes=(-1,), keepdims=True)
                          y_subtract = subtract(x, y_max)
                          ...

    What they have in common with others, and how they are run, is then found as for any operator.
    """
    return replace(function, body=_block(function.body))


def _block(block: Block) -> Block:
    bindings = []
    for binding in block.bindings:
        match binding.value:
            case If(then=then, orelse=orelse) as value:
                bindings.append(replace(binding, value=replace(value, then=_block(then), orelse=_block(orelse))))
            case Function(body=body) as value:
                bindings.append(replace(binding, value=replace(value, body=_block(body))))
            case OpCall() as call if isinstance(call.op.lower, Composition):
                bindings += expanded(binding)
            case _:
                bindings.append(binding)
    if len(bindings) == len(block.bindings) and all(a is b for a, b in zip(bindings, block.bindings, strict=True)):
        return block
    return replace(block, bindings=tuple(bindings))


def expanded(binding: Binding) -> list[Binding]:
    """The bindings that take the place of one of a composition."""
    bindings: list[Binding] = []
    value = _flat(binding.value, binding.var.name, {}, bindings)
    return [*bindings, replace(binding, value=value)]


def _flat(expr: Expr, name: str, done: dict[Expr, Expr], bindings: list[Binding]) -> Expr:
    """The expression with variables as arguments; what they stand for is appended, shared parts once."""
    while isinstance(expr, OpCall) and isinstance(expr.op.lower, Composition):
        expr = expr.op.lower.function(*expr.args, **dict(expr.attributes))
    if not isinstance(expr, OpCall):
        return expr
    args = []
    for arg in expr.args:
        if isinstance(arg, OpCall) and arg not in done:
            value = _flat(arg, name, done, bindings)
            done[arg] = Var(f"{name}_{value.op.name}" if isinstance(value, OpCall) else name, type=value.type)
            bindings.append(Binding(done[arg], value))
        args.append(done.get(arg, arg))
    return replace(expr, args=tuple(args))
