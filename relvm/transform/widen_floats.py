"""Arithmetic on floats of 16 bits and less as arithmetic on f32."""

from __future__ import annotations

from dataclasses import replace

import relvm.ops as ops
from relvm.ir.dtypes import F32, DType
from relvm.ir.expr import Binding, Block, Expr, Function, OpCall, Var
from relvm.ir.stages import Stage
from relvm.ir.structure import map_blocks, with_bindings, with_value
from relvm.ir.types import TensorType
from relvm.transform.passes import function_pass


@function_pass("widen_floats", at=Stage.NORMAL)
def widen_floats(function: Function) -> Function:
    """Compute with floats narrower than f32 as f32:

    z: f16[n] = add(x, y)   ->   x_wide: f32[n] = cast(x, to="f32")
                                 y_wide: f32[n] = cast(y, to="f32")
                                 z_wide: f32[n] = add(x_wide, y_wide)
                                 z: f16[n] = cast(z_wide, to="f16")

    What computes with z goes on with z_wide: a result is rounded where it is kept, moved or handed on, not between one
    operator and the next.  Operators that only move elements keep them as they are, and casts that were there stay.
    """
    return map_blocks(lambda block: _block(block, {}), function)


def _block(block: Block, known: dict[Expr, Var]) -> Block:
    """known: values as f32, here and in the blocks around this one."""
    known, bindings = dict(known), []
    for binding in block.bindings:
        value = binding.value
        if isinstance(value, OpCall) and not value.op.moves and any(map(_narrow, value.args)):
            bindings += _widened(binding, known)
        else:
            bindings.append(with_value(binding, map_blocks(lambda inner: _block(inner, known), value)))
    return with_bindings(block, bindings)


def _widened(binding: Binding, known: dict[Expr, Var]) -> list[Binding]:
    call, bindings = binding.value, []
    for arg in filter(_narrow, call.args):
        if arg not in known:
            wide = ops.cast(arg, to=F32.name)
            known[arg] = Var(f"{arg.name if isinstance(arg, Var) else 'constant'}_wide", type=wide.type)
            bindings.append(Binding(known[arg], wide))
    narrow = next(filter(None, map(_narrow, call.args)))
    result = call.op(*(known.get(arg, arg) for arg in call.args), **dict(call.attributes))
    if not (isinstance(result.type, TensorType) and result.type.dtype == F32):
        return [*bindings, replace(binding, value=result)]
    wide = Var(f"{binding.var.name}_wide", type=result.type)
    known[binding.var] = wide
    return [*bindings, Binding(wide, result), replace(binding, value=ops.cast(wide, to=narrow.name))]


def _narrow(expr: Expr) -> DType | None:
    """The dtype of a tensor of narrow floats."""
    dtype = expr.type.dtype if isinstance(expr.type, TensorType) else None
    return dtype if dtype is not None and dtype.is_narrow_float else None
