"""Decomposition of composite operators, such as softmax, into simpler ones."""

from __future__ import annotations

from dataclasses import replace

from relvm.ir.expr import Binding, Block, Expr, Function, MatchCast, OpCall, Var
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_blocks, with_bindings, with_value
from relvm.kernels.lowering_rules import Composition
from relvm.passes.pass_manager import function_pass


@function_pass("decompose", at=Stage.ANF, optional=True)
def decompose(function: Function) -> Function:
    """Replace each composite operator by the operators of which it is composed:

    y = softmax(x)   ->   y_max = max(x, axes=(-1,), keepdims=True)
                          y_subtract = subtract(x, y_max)
                          ...

    Later passes optimize these operators like any others.
    """
    return map_blocks(_block, function)


def _block(block: Block) -> Block:
    bindings: list[Binding | MatchCast] = []
    for binding in block.bindings:
        value = binding.value
        if isinstance(binding, Binding) and isinstance(value, OpCall) and isinstance(value.op.lower, Composition):
            bindings += expand_composite(binding)
        else:
            bindings.append(with_value(binding, map_blocks(_block, value)))
    return with_bindings(block, bindings)


def expand_composite(binding: Binding) -> list[Binding]:
    """Return the bindings that replace `binding`, whose value is a composite operator.

    The last one binds the variable of `binding`.
    """
    bindings: list[Binding] = []
    value = _flatten(binding.value, binding.var, {}, bindings)
    return [*bindings, replace(binding, value=value)]


def _flatten(expr: Expr, result_var: Var, variables: dict[Expr, Expr], bindings: list[Binding]) -> Expr:
    """Decompose `expr`, and return it with atoms (variables or constants) as arguments.

    An argument that is a call is bound to a new variable, and its binding is appended to `bindings`.

    result_var: the variable of the composite operator.  The names and source locations of new variables are derived
    from it.
    variables: a subexpression -> its variable, so that each shared subexpression is bound once.
    """
    while isinstance(expr, OpCall) and isinstance(expr.op.lower, Composition):
        expr = expr.op.lower.function(*expr.args, **dict(expr.attributes))
    if not isinstance(expr, OpCall):
        return expr
    args = []
    for arg in expr.args:
        if isinstance(arg, OpCall) and arg not in variables:
            value = _flatten(arg, result_var, variables, bindings)
            part = result_var.intermediate(value.op.name, value.type) if isinstance(value, OpCall) else None
            var = part or replace(result_var, type=value.type)
            bindings.append(Binding(var, value))
            variables[arg] = var
        args.append(variables.get(arg, arg))
    return replace(expr, args=tuple(args))
