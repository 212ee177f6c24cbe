"""Conversion to A-normal form."""

from __future__ import annotations

from dataclasses import replace

from relvm.ir.expr import Binding, Block, Expr, Function, If, MatchCast, OpCall, Var, is_atom
from relvm.ir.node import map_children
from relvm.ir.types import FuncType
from relvm.ir.verifier import Stage
from relvm.passes.pass_manager import function_pass

Origins = tuple[str, ...]  # the type of Var.origins


@function_pass("to_anf", at=Stage.TYPED, to=Stage.ANF)
def to_anf(function: Function) -> Function:
    """Bind every computation to a variable, so that all arguments are variables or constants:

    add(relu(x), y)   ->   a = relu(x); b = add(a, y)

    Nested blocks are flattened.  A branch or function body that is not a block becomes a block.  A binding of a
    variable x to another variable y is removed, and y replaces x.
    """
    return _function(function, {}, ())


def _function(function: Function, renamed: dict[Var, Expr], origins: Origins) -> Function:
    origins = (function.origin,) if function.origin else origins
    return replace(function, body=_block(function.body, renamed, origins))


def _block(expr: Expr, renamed: dict[Var, Expr], origins: Origins) -> Block:
    bindings: list[Binding | MatchCast] = []
    origin = expr.origin if isinstance(expr, Block) else ""
    result = _to_atom(expr, bindings, renamed, "result", (origin,) if origin else origins)
    return Block(tuple(bindings), result, type=result.type, origin=origin)


def _to_atom(expr: Expr, bindings: list, renamed: dict[Var, Expr], name: str, origins: Origins) -> Expr:
    """Return an atom (a variable or constant) with the value of `expr`.  Append the bindings that compute it to
    `bindings`.

    renamed: a removed variable -> the atom that replaces it.
    name: the name of a new variable for the value.
    origins: the source locations of the enclosing expression.
    """
    value = _with_atoms(expr, bindings, renamed, origins)
    if is_atom(value):
        return value
    own = value.origins if isinstance(value, OpCall) else ()
    var = Var(name, type=value.type, origins=own or origins)
    bindings.append(Binding(var, value))
    return var


def _with_atoms(expr: Expr, bindings: list, renamed: dict[Var, Expr], origins: Origins) -> Expr:
    """Return `expr` with atoms (variables or constants) as arguments.

    Append the bindings that compute these atoms to `bindings`.

    renamed: a removed variable -> the atom that replaces it.
    origins: the source locations of the enclosing expression.
    """
    match expr:
        case Var():
            return renamed.get(expr, expr)
        case Block():
            for binding in expr.bindings:
                _bind(binding, bindings, renamed)
            return _with_atoms(expr.result, bindings, renamed, origins)
        case Function():
            return _function(expr, renamed, origins)
        case If(cond, then, orelse):
            cond = _to_atom(cond, bindings, renamed, "cond", origins)
            return replace(
                expr, cond=cond, then=_block(then, renamed, origins), orelse=_block(orelse, renamed, origins)
            )
    if is_atom(expr):
        return expr
    return map_children(lambda part: _to_atom(part, bindings, renamed, "value", origins), expr)


def _bind(binding: Binding | MatchCast, bindings: list, renamed: dict[Var, Expr]) -> None:
    if isinstance(binding, MatchCast):
        var = binding.var
        bindings.append(replace(binding, value=_to_atom(binding.value, bindings, renamed, var.name, var.origins)))
        return
    value = _with_atoms(binding.value, bindings, renamed, binding.var.origins)
    # A function's variable keeps its own type, because recursive uses inside the function have this type, too.
    if is_atom(value) and (value.type == binding.var.type or isinstance(value.type, FuncType)):
        renamed[binding.var] = value
    else:
        bindings.append(replace(binding, value=value))
