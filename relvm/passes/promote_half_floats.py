"""Promotion of arithmetic on floats of at most 16 bits to f32."""

from __future__ import annotations

from dataclasses import replace

import relvm.ops as ops
from relvm.data_classes import value_record
from relvm.ir.dtypes import F32, DType
from relvm.ir.expr import Binding, Block, Constant, Expr, Function, MatchCast, OpCall, Tuple, TupleItem, Var
from relvm.ir.types import TensorType, TupleType, Type
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_blocks, with_bindings, with_value
from relvm.passes.pass_manager import function_pass


@function_pass("promote_half_floats", at=Stage.ANF)
def promote_half_floats(function: Function) -> Function:
    """Convert floats narrower than f32 to f32 for arithmetic:

    z: f16[n] = add(x, y)   ->   x_wide: f32[n] = cast(x, to="f32")
                                 y_wide: f32[n] = cast(y, to="f32")
                                 z_wide: f32[n] = add(x_wide, y_wide)
                                 z: f16[n] = cast(z_wide, to="f16")

    Later operators that compute with z, or move its elements, use z_wide.  Results are therefore not rounded between
    operators, but only where they are stored or returned.  Operators that only move elements of a narrow input are not
    changed, and neither are existing casts and bit casts.
    """
    return map_blocks(lambda block: _block(block, _WideValues({}, {})), function)


@value_record
class _WideValues:
    """The f32 versions of narrow values, in this and enclosing blocks.

    computed: the result of an operator -> the variable of its value before rounding.
    converted: any other narrow value -> the variable of its cast to f32.
    """

    computed: dict[Expr, Var]
    converted: dict[Expr, Var]

    def copy(self) -> _WideValues:
        return _WideValues(dict(self.computed), dict(self.converted))

    def get(self, expr: Expr) -> Expr:
        return self.computed.get(expr) or self.converted.get(expr) or expr


def _block(block: Block, outside: _WideValues) -> Block:
    known = outside.copy()
    bindings: list[Binding | MatchCast] = []
    for binding in block.bindings:
        value = binding.value
        if isinstance(binding, Binding) and isinstance(value, OpCall) and _is_promoted(value, known):
            bindings += _promote(binding, value, known)
        else:
            bindings.append(with_value(binding, map_blocks(lambda inner: _block(inner, known), value)))
    return with_bindings(block, bindings)


def _is_promoted(call: OpCall, known: _WideValues) -> bool:
    narrow = [arg for arg in call.args if _narrow_float_dtype(arg.type)]
    if not call.op.moves:
        return bool(narrow)
    if (
        call.op in (ops.cast, ops.bit_cast)
        or not _narrow_float_dtype(call.type)
        or not any(arg in known.computed for arg in narrow)
    ):
        return False
    return all(known.get(arg) is not arg or isinstance(arg, Constant) for arg in narrow)


def _promote(binding: Binding, call: OpCall, known: _WideValues) -> list[Binding]:
    bindings: list[Binding] = []
    for arg in call.args:
        if _narrow_float_dtype(arg.type) and known.get(arg) is arg:
            cast = ops.cast(arg, to=F32.name)
            name = f"{arg.name if isinstance(arg, Var) else 'constant'}_wide"
            known.converted[arg] = Var(name, type=cast.type, origins=binding.var.origins)
            bindings.append(Binding(known.converted[arg], cast))
    result = call.op(*map(known.get, call.args), **dict(call.attributes))
    match call.type:
        case TupleType(fields) if any(map(_narrow_float_dtype, fields)) and isinstance(result.type, TupleType):
            return [*bindings, *_round_tuple_items(binding, result, fields, result.type.fields)]
        case type_ if narrow := _narrow_float_dtype(type_):
            wide = binding.var.intermediate("wide", result.type)
            known.computed[binding.var] = wide
            rounded = ops.cast(wide, to=narrow.name)
            return [*bindings, Binding(wide, result), replace(binding, value=rounded)]
    return [*bindings, replace(binding, value=result)]


def _round_tuple_items(
    binding: Binding, result: OpCall, fields: tuple[Type, ...], wider: tuple[Type, ...]
) -> list[Binding]:
    """Replace `binding`, whose value is a call that returns a tuple with narrow floats.

    The new bindings compute the tuple in f32, and round the narrow items to their original dtypes.

    result: the call with f32 arguments.
    fields, wider: the item types of the original tuple and of `result`.
    """
    var = binding.var
    whole = var.intermediate("wide", result.type)
    bindings, items = [Binding(whole, result)], []
    for i, (field, wide) in enumerate(zip(fields, wider, strict=True)):
        items.append(var.intermediate(f"{i}_wide" if _narrow_float_dtype(field) else str(i), wide))
        bindings.append(Binding(items[-1], TupleItem(whole, i, type=wide)))
        if narrow := _narrow_float_dtype(field):
            rounded = ops.cast(items[-1], to=narrow.name)
            items[-1] = var.intermediate(str(i), rounded.type)
            bindings.append(Binding(items[-1], rounded))
    return [*bindings, replace(binding, value=Tuple(tuple(items), type=TupleType(tuple(i.type for i in items))))]


def _narrow_float_dtype(type_: Type | None) -> DType | None:
    """Return the dtype of `type_` if it is a type of tensors of floats narrower than f32, otherwise None."""
    dtype = type_.dtype if isinstance(type_, TensorType) else None
    return dtype if dtype is not None and dtype.is_narrow_float else None
