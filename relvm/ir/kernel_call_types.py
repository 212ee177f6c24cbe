"""Type inference for calls of kernels that are defined in the same IR module."""

from __future__ import annotations

from dataclasses import replace

from relvm.errors import RelvmArgumentError, RelvmShapeError, RelvmTypeError, counted
from relvm.ir.bind_dims import match_dims
from relvm.ir.expr import Binding, Block, Expr, KernelCall, MatchCast, OpCall, Var
from relvm.ir.kernel_def import KernelDef
from relvm.ir.operator import find_operator
from relvm.ir.symbolic import AnyDim, DimVar
from relvm.ir.types import PrimType, TensorType, Type, dims_of, is_proven, mismatch_reason, substitute_dims


def typed_kernel_call(call: KernelCall, kernel: KernelDef, caller: str) -> KernelCall:
    """Return the call with its inferred type.

    The types of the arguments determine the values of the kernel's dimension variables.  The remaining variables get
    their values from the result type, if the call states one.  The type of each argument must match the type of its
    parameter.  If a match is possible but not certain at compile time, the argument is checked at run time.  A scalar
    argument for a parameter of rank 0 becomes a tensor.

    Parameters
    ----------
    caller
        The name of the function that contains the call, for the messages of checks at run time.

    Raises
    ------
    RelvmArgumentError
        The number of arguments is wrong.
    RelvmTypeError
        An argument cannot have the type of its parameter, the stated result type is not proven to be right, or a
        dimension variable has no value.
    RelvmShapeError
        A size of the result is negative, or its computation divides by 0.
    """
    where = f"kernel {kernel.name}"
    if len(call.args) != len(kernel.inputs):
        raise RelvmArgumentError(f"{where} takes {counted(len(kernel.inputs), 'argument')}, got {len(call.args)}")
    values: dict[DimVar, AnyDim] = {}
    for buffer, arg in zip(kernel.inputs, call.args, strict=True):
        match_dims(buffer.type, arg.type, values)
    if call.type is not None:
        match_dims(kernel.result_type, call.type, values)
    args = []
    for buffer, arg in zip(kernel.inputs, call.args, strict=True):
        expected = substitute_dims(buffer.type, values)
        if isinstance(arg.type, PrimType) and expected.shape == ():
            arg = _to_tensor(arg, expected)
        if reason := mismatch_reason(expected, arg.type):
            raise RelvmTypeError(f"{where}: argument {buffer.name}: {reason}")
        if not is_proven(expected, arg.type):
            arg = _with_check(arg, expected, f"{caller}: {where}: argument {buffer.name}")
        args.append(arg)
    for var in kernel.dim_vars:
        if var not in values:
            hint = f"use match_cast on the argument, or state the result: kernel {kernel.name}(...) : f32[n]"
            raise RelvmTypeError(f"{where}: the size {var.name} is not known here; {hint}")
    result = substitute_dims(kernel.result_type, values)
    if any(isinstance(dim, int) and dim < 0 for dim in dims_of(result)):
        raise RelvmShapeError(f"{where}: the result would be {result}; a size must be at least 0")
    if call.type is not None and (reason := mismatch_reason(call.type, result)):
        raise RelvmTypeError(f"{where}: the stated result: {reason}")
    if call.type is not None and not is_proven(call.type, result):
        raise RelvmTypeError(f"{where}: the result is {result}, but the call states {call.type}; use match_cast")
    return replace(call, args=tuple(args), type=result)


def _to_tensor(arg: Expr, expected: TensorType) -> Expr:
    operator = find_operator("to_tensor")
    attributes = operator.bind((arg,), {"dtype": expected.known_dtype})
    return OpCall(operator, (arg,), attributes, type=operator.infer((arg.type,), attributes))


def _with_check(arg: Expr, type_: Type, where: str) -> Block:
    """Return a block whose result is `arg`, after a run-time check that `arg` has type `type_`.

    where: the beginning of the error message.
    """
    unchecked, checked = Var("value", type=arg.type), Var("value", type=type_)
    return Block((Binding(unchecked, arg), MatchCast(checked, unchecked, where)), checked, type=type_)
