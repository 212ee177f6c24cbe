"""Constant matrices are stored as products read them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from relvm.ir.expr import Binding, Block, Constant, Expr, Function, If, OpCall, constant
from relvm.ir.stages import Stage
from relvm.ops import matmul, matmul_integer, matmul_integer_packed, matmul_packed
from relvm.ops.integer import pack_bytes
from relvm.ops.linear import pack_columns
from relvm.transform.passes import module_pass


@module_pass("pack_weights", at=Stage.NORMAL)
def pack_weights(module):
    """Rearrange the constant right sides of matrix products, once and for all:

    y = matmul(x, const(f32[768, 64], ...))   ->   y = matmul_packed(x, const(f32[1, 768, 64], ...), columns=64)

    Matrices of bytes become panels of words, with the sums of their columns: matmul_integer_packed.
    """
    packed: dict[tuple, tuple[Constant, ...]] = {}
    functions = tuple(_function(function, packed) for function in module.functions)
    unchanged = all(a is b for a, b in zip(functions, module.functions, strict=True))
    return module if unchanged else module.with_functions(functions)


def _function(function: Function, packed: dict) -> Function:
    body = _block(function.body, packed)
    return function if body is function.body else replace(function, body=body)


def _block(block: Block, packed: dict) -> Block:
    bindings = []
    for binding in block.bindings:
        match binding.value:
            case If(then=then, orelse=orelse) as value:
                new = _block(then, packed), _block(orelse, packed)
                if new[0] is not then or new[1] is not orelse:
                    binding = replace(binding, value=replace(value, then=new[0], orelse=new[1]))
            case Function() as value:
                new_function = _function(value, packed)
                binding = binding if new_function is value else replace(binding, value=new_function)
            case OpCall() as call if isinstance(binding, Binding) and _is_packable(call):
                binding = replace(binding, value=_packed(call, packed))
        bindings.append(binding)
    same = all(a is b for a, b in zip(bindings, block.bindings, strict=True))
    return block if same else replace(block, bindings=tuple(bindings))


def _is_packable(call: OpCall) -> bool:
    if call.op not in (matmul, matmul_integer) or not isinstance(call.args[1], Constant):
        return False
    a, b = call.args[0].type, call.args[1].value
    if b.ndim != 2 or b.size == 0 or a.shape is None:
        return False
    if call.op is matmul_integer:
        a_zero, b_zero = call.args[2:]
        return a_zero.type.rank == 0 and isinstance(b_zero, Constant) and b_zero.value.ndim in (0, 2)
    return not dict(call.attributes)["transpose_a"]


def _packed(call: OpCall, packed: dict[tuple, tuple[Constant, ...]]) -> Expr:
    if call.op is matmul_integer:
        return _packed_bytes(call, packed)
    weights, transposed = call.args[1], dict(call.attributes)["transpose_b"]
    matrix = weights.value.T if transposed else weights.value
    key = (id(weights.value), transposed)
    if key not in packed:
        packed[key] = (constant(pack_columns(np.asarray(matrix))),)
    return replace(matmul_packed(call.args[0], *packed[key], columns=matrix.shape[1]), type=call.type)


def _packed_bytes(call: OpCall, packed: dict[tuple, tuple[Constant, ...]]) -> Expr:
    a, weights, a_zero, b_zero = call.args
    key = (id(weights.value), id(b_zero.value))
    if key not in packed:
        packed[key] = tuple(map(constant, pack_bytes(weights.value, b_zero.value)))
    panels, sums, zeros = packed[key]
    return replace(
        matmul_integer_packed(a, panels, sums, a_zero, zeros, columns=weights.value.shape[1]), type=call.type
    )
