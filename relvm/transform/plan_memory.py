"""Explicit memory."""

from __future__ import annotations

from dataclasses import replace

from relvm.errors import RelvmUnsupportedError
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    DTypeValue,
    Expr,
    Function,
    If,
    KernelCall,
    KernelRun,
    Shape,
    Tuple,
    Var,
    prim,
)
from relvm.ir.stages import Stage
from relvm.ir.types import OBJECT, VOID, TensorType, TupleType
from relvm.transform.passes import function_pass


@function_pass("plan_memory", at=Stage.LEGAL, to=Stage.PLANNED)
def plan_memory(function: Function) -> Function:
    """Give every kernel the tensors it writes:

    y = kernel add_f32(x, b)   ->   y_storage = builtin.alloc_storage(shape(n, 64), 0, dtype(f32))
                                    y = builtin.alloc_tensor(y_storage, 0, shape(n, 64), dtype(f32))
                                    _ = run add_f32(x, b, y)

    Every tensor has a storage of its own; kill_dead returns it after the tensor's last use.
    """
    return replace(function, body=_block(function.body))


def _block(block: Block) -> Block:
    bindings: list = []
    for binding in block.bindings:
        match binding.value:
            case KernelCall(kernel, args) as call:
                outputs = _allocate(binding, call, bindings)
                bindings.append(Binding(Var("_", type=VOID), KernelRun(kernel, (*args, *outputs))))
                if isinstance(call.type, TupleType):
                    bindings.append(replace(binding, value=Tuple(tuple(outputs), type=call.type)))
            case If(then=then, orelse=orelse) as value:
                bindings.append(replace(binding, value=replace(value, then=_block(then), orelse=_block(orelse))))
            case _:
                bindings.append(binding)
    return replace(block, bindings=tuple(bindings))


def _allocate(binding: Binding, call: KernelCall, bindings: list) -> list[Expr]:
    """Appends the allocation of the call's results; gives the variables that hold them."""
    if isinstance(call.type, TensorType):
        return [_allocate_tensor(binding.var, call.type, bindings)]
    if not isinstance(call.type, TupleType):
        raise RelvmUnsupportedError(f"kernel {call.kernel}: a result of type {call.type}")
    fields = [Var(f"{binding.var.name}_{i}", type=field) for i, field in enumerate(call.type.fields)]
    return [_allocate_tensor(var, var.type, bindings) for var in fields]


def _allocate_tensor(var: Var, type_: TensorType, bindings: list) -> Var:
    assert isinstance(type_, TensorType) and type_.shape is not None and type_.dtype, f"{var.name}: {type_}"
    shape, dtype, device = Shape(type_.shape), DTypeValue(type_.dtype), prim(0)
    storage = Var(f"{var.name}_storage", type=OBJECT)
    bindings.append(Binding(storage, BuiltinCall("alloc_storage", (shape, device, dtype))))
    bindings.append(Binding(var, BuiltinCall("alloc_tensor", (storage, prim(0), shape, dtype), type=type_)))
    return var
