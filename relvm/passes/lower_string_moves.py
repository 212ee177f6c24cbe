"""Lowering of operators that move strings: they move the positions of the strings, which are integers, instead."""

from __future__ import annotations

from dataclasses import replace

import relvm.ops as ops
from relvm.ir.expr import Binding, Block, Expr, Function, MatchCast, OpCall, Var
from relvm.ir.types import TensorType
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_blocks, with_bindings, with_value
from relvm.kernels.lowering_rules import Alias, Builtin, Reinterpret
from relvm.passes.pass_manager import function_pass

# A string tensor in lowered form: a tensor of positions, and the string tensors into which the positions point.
Moved = tuple[Expr, tuple[Expr, ...]]


@function_pass("lower_string_moves", at=Stage.ANF)
def lower_string_moves(function: Function) -> Function:
    """Move the positions of strings instead of the strings themselves, and look up the strings afterwards:

    z: str[n] = where(c, x, y)   ->   x_places: i64[n] = string_positions(x)
                                      y_places: i64[n] = string_positions(y, x)
                                      z_places: i64[n] = where(c, x_places, y_places)
                                      z: str[n] = string_take(z_places, x, y)

    Kernels can process integers, but not strings.  string_positions(y, x) numbers the elements of y
    after those of x, so z_places contains positions in the concatenation of x and y.
    A later operator uses z_places directly if all strings that it moves come from z.  Comparisons of strings become
    calls of a builtin.  Views of string tensors are not changed.
    """
    return map_blocks(lambda block: _block(block, {}), function)


def _block(block: Block, known: dict[Expr, Moved]) -> Block:
    """Return `block` with its operators on strings replaced by operators on the positions of the strings.

    known: a string tensor of an enclosing block -> its positions, and the tensors into which they point (Moved).
    """
    known = dict(known)
    bindings: list[Binding | MatchCast] = []
    for binding in block.bindings:
        value = binding.value
        if not isinstance(binding, Binding) or not isinstance(value, OpCall) or not any(map(_is_string, value.args)):
            bindings.append(with_value(binding, map_blocks(lambda inner: _block(inner, known), value)))
        elif value.op in (ops.equal, ops.not_equal):
            bindings += _lower_comparison(binding, value)
        elif isinstance(value.op.lower, Alias | Builtin | Reinterpret):
            bindings.append(binding)
        else:
            bindings += _lower_move(binding, value, known)
    return with_bindings(block, bindings)


def _lower_comparison(binding: Binding, call: OpCall) -> list[Binding]:
    same = ops.string_equal(*call.args)
    if call.op is ops.equal:
        return [replace(binding, value=same)]
    var = binding.var.intermediate("equal", same.type)
    return [Binding(var, same), replace(binding, value=ops.logical_not(var))]


def _lower_move(binding: Binding, call: OpCall, known: dict[Expr, Moved]) -> list[Binding]:
    bindings: list[Binding] = []
    places: dict[Expr, Expr] = {}
    origins = binding.var.origins
    strings = tuple(dict.fromkeys(arg for arg in call.args if _is_string(arg)))
    if len(strings) == 1 and strings[0] in known:
        place, sources = known[strings[0]]
        places[strings[0]] = place
    else:
        sources = strings
        for i, source in enumerate(sources):
            name = source.name if isinstance(source, Var) else "constant"
            places[source] = _bind(f"{name}_places", ops.string_positions(source, *sources[:i]), origins, bindings)
    attributes = dict(call.attributes)
    if call.op is ops.pad and attributes["mode"] == "constant":
        attributes["value"] = -1  # position -1 is the empty string
    moved = call.op(*(places.get(arg, arg) for arg in call.args), **attributes)
    positions = _bind(f"{binding.var.name}_places", moved, origins, bindings)
    known[binding.var] = positions, sources
    return [*bindings, replace(binding, value=ops.string_take(positions, *sources))]


def _bind(name: str, value: OpCall, origins: tuple[str, ...], bindings: list[Binding]) -> Var:
    var = Var(name, type=value.type, origins=origins)
    bindings.append(Binding(var, value))
    return var


def _is_string(expr: Expr) -> bool:
    type_ = expr.type
    return isinstance(type_, TensorType) and type_.dtype is not None and type_.dtype.is_string
