"""Lowering of a planned module to routines, from which bytecode and C are printed.

docs/architecture/routines.md describes the numbering of registers, and the canonical statement for each kind of
expression.  Golden tests check both.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from relvm.errors import RelvmVerifyError
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Call,
    Constant,
    DTypeValue,
    Expr,
    Function,
    FunctionRef,
    If,
    KernelRun,
    Kill,
    MatchCast,
    Module,
    Null,
    PackedCall,
    PackedRef,
    Prim,
    PrimCall,
    Shape,
    String,
    Tuple,
    TupleItem,
    Var,
    constant_key,
    prim,
)
from relvm.ir.scalar_ops import find_row
from relvm.ir.types import VOID, format_type
from relvm.kernels.kernel import Kernel, ReferenceKernel
from relvm.lir.routine import (
    COPY,
    CallStatement,
    ConstantItem,
    ContextPointer,
    FunctionItem,
    FunctionKey,
    IfStatement,
    Immediate,
    LirModule,
    NullHandle,
    Operand,
    PrimStatement,
    Register,
    ResetStatement,
    Routine,
    Statement,
    builtin,
    packed,
    routine,
)
from relvm.tables import BUILTINS, REFERENCE_PREFIX

_TAKES_CONTEXT = frozenset(builtin(row.name) for row in BUILTINS if row.signature.startswith("ctx"))
_VOID_BUILTINS = frozenset(
    row.name for row in BUILTINS if row.signature.endswith("-> nil") and row.name != "null_value"
)


def lower_to_routines(module: Module) -> LirModule:
    """Return the routines, constants and function table of a module.

    Parameters
    ----------
    module
        A module at stage PLANNED.

    Raises
    ------
    RelvmVerifyError
        The module contains an expression that an earlier pass should have lowered.  The message names that pass.
    """
    tables = _Tables(module)
    routines = tuple(_Generator(tables, function).routine() for function in module.functions)
    kernels = tuple(kernel for _, kernel in module.kernels if isinstance(kernel, Kernel))
    signature = {f.name: _signature(f) for f in module.functions if not f.private}
    return LirModule(routines, kernels, tuple(tables.functions), tuple(tables.constants), signature)


def _signature(function: Function) -> dict[str, Any]:
    named = zip(function.input_names, function.params, strict=True)
    params = [{"name": name, "type": format_type(param.type)} for name, param in named]
    attributes = dict(function.attributes)
    return {"params": params, "result": format_type(function.func_type.result), "attributes": attributes}


class _Tables:
    """The constant table and the function table under construction.

    Entries are in order of first use.  The module's own functions come first.
    """

    def __init__(self, module: Module) -> None:
        self.kernels = dict(module.kernels)
        self.constants: list[Any] = []
        self.constant_index: dict[Any, int] = {}
        self.functions: dict[FunctionKey, int] = {}
        for function in module.functions:
            self.function(routine(function.name))

    def function(self, key: FunctionKey) -> int:
        return self.functions.setdefault(key, len(self.functions))

    def constant(self, value: Any) -> ConstantItem:
        """Return the operand for the constant `value`, which is added to the constant table if it is not there.

        value: an np.ndarray, a tuple of int, a str or a DType.  Equal constants share an entry.
        """
        key: Hashable = (type(value), value)
        if isinstance(value, np.ndarray):
            key = constant_key(value)
        if key not in self.constant_index:
            self.constant_index[key] = len(self.constants)
            self.constants.append(value)
        return ConstantItem(self.constant_index[key])


class _Generator:
    """Generator of the routine of one function."""

    def __init__(self, tables: _Tables, function: Function) -> None:
        self.tables = tables
        self.function = function
        self.registers: dict[Var, Operand] = {param: Register(i) for i, param in enumerate(function.params)}
        self.next_register = len(function.params) + 1

    def routine(self) -> Routine:
        params = self.function.input_names
        body = self.block(self.function.body, Register(len(params)), "")
        return Routine(
            self.function.name,
            params,
            self.next_register,
            body,
            self.function.private,
            not self.function.pure,
            result_origins=_origins(self.function.body),
        )

    def new_register(self) -> Register:
        self.next_register += 1
        return Register(self.next_register - 1)

    def block(self, block: Expr, result: Register, name: str) -> tuple[Statement, ...]:
        """Return the statements of a block.  The last one copies the result of the block to register `result`.

        name: the name of the variable that the result is bound to, for the comment of the copy.
        """
        if not isinstance(block, Block):
            raise RelvmVerifyError(f"{self.function.name}: the body must be a block; run the pass to_anf first")
        statements: list[Statement] = []
        for binding in block.bindings:
            self.binding(binding, statements)
        source = self.operand(block.result)
        copy = CallStatement(COPY, (source,), result.index, comment=name, origins=_origins(block))
        self.tables.function(copy.function)
        return (*statements, copy)

    def binding(self, binding: Binding | MatchCast, statements: list[Statement]) -> None:
        var, value = binding.var, binding.value
        if isinstance(binding, MatchCast):
            raise RelvmVerifyError(
                f"{self.function.name}: match_cast {var.name} is not lowered; run the pass lower_shapes first"
            )
        match value:
            case Var() | Constant():
                self.registers[var] = self.operand(value)
            case If(cond, then, orelse):
                merged = self.new_register()
                condition = self.operand(cond)
                self.registers[var] = merged
                branches = (self.block(branch, merged, var.name) for branch in (then, orelse))
                statements.append(IfStatement(condition, *branches, origins=var.origins))
            case Kill(killed):
                register = self.operand(killed)
                if isinstance(register, Register):
                    statements.append(ResetStatement(register.index, origins=var.origins))
            case PrimCall(function, args):
                row = find_row(function, tuple(arg.known_element_type for arg in args))
                operands = tuple(map(self.operand, args))
                self.registers[var] = register = self.new_register()
                statements.append(PrimStatement(row.name, operands, register.index, var.name, origins=var.origins))
            case _:
                callee, args, void = self.call(value)
                operands = tuple(map(self.operand, args))
                if callee in _TAKES_CONTEXT:
                    operands = (ContextPointer(), *operands)
                destination = None
                void = void and var.type == VOID  # the program can use a variable of another type, whose value is null
                if not void:
                    self.registers[var] = register = self.new_register()
                    destination = register.index
                self.tables.function(callee)
                comment = ", ".join(value.names) if isinstance(value, KernelRun) else ""
                comment = comment or ("" if void else var.name)
                is_kernel = callee.kind == "kernel"
                statements.append(CallStatement(callee, operands, destination, is_kernel, comment, origins=var.origins))

    def call(self, value: Expr) -> tuple[FunctionKey, tuple[Expr, ...], bool]:
        """Return the call that computes `value`: the called function, its arguments, and whether it has no result."""
        match value:
            case PackedCall(name, args):
                return packed(name), args, value.type == VOID
            case KernelRun(kernel, args):
                implementation = self.tables.kernels[kernel]
                if isinstance(implementation, ReferenceKernel):
                    return (
                        packed(REFERENCE_PREFIX + implementation.op),
                        (String(implementation.attributes), *args),
                        value.type == VOID,
                    )
                return FunctionKey("kernel", kernel), args, value.type == VOID
            case BuiltinCall(name, args):
                return builtin(name), args, name in _VOID_BUILTINS
            case Call(callee, args):
                return builtin("invoke_closure"), (callee, *args), False
            case Tuple(fields):
                return builtin("make_tuple"), fields, False
            case TupleItem(tuple_, index):
                return builtin("tuple_getitem"), (tuple_, prim(index)), False
            case Null():
                return builtin("null_value"), (), False
            case Function():
                raise RelvmVerifyError(
                    f"{self._where(value)}: a local function is not lowered; run the pass lambda_lifting first"
                )
        if isinstance(value, Constant | Prim | String | DTypeValue | FunctionRef | PackedRef | Shape):
            return builtin("copy"), (value,), False
        raise RelvmVerifyError(
            f"{self._where(value)}: {type(value).__name__} is not lowered; run lower_to_kernels and plan_memory first"
        )

    def operand(self, expr: Expr) -> Operand:
        match expr:
            case Var():
                if expr not in self.registers:
                    raise RelvmVerifyError(f"{self.function.name}: variable {expr.name} is not bound")
                return self.registers[expr]
            case Constant(value=array):
                return self.tables.constant(array)
            case Prim(value=value):
                return Immediate(value)
            case String(value=text):
                return self.tables.constant(text)
            case DTypeValue(value=dtype):
                return self.tables.constant(dtype)
            case Shape(dims=dims):
                if not all(isinstance(dim, int) for dim in dims):
                    raise RelvmVerifyError(
                        f"{self._where(expr)}: a symbolic shape is not lowered; run the pass lower_shapes first"
                    )
                return self.tables.constant(dims)
            case FunctionRef(name):
                return FunctionItem(self.tables.function(routine(name)))
            case PackedRef(name):
                return FunctionItem(self.tables.function(packed(name)))
            case Null():
                return NullHandle()
        raise RelvmVerifyError(f"{self._where(expr)}: {type(expr).__name__} is not an atom; run the pass to_anf first")

    def _where(self, expr: Expr) -> str:
        return f"{self.function.name}: {getattr(expr, 'name', type(expr).__name__)}"


def _origins(block: Expr) -> tuple[str, ...]:
    """Return the source locations of the result of a block."""
    return (block.origin,) if isinstance(block, Block) and block.origin else ()
