"""Routines: the one lowered form of a function, over the registers r, the constants c and the functions f.

Code generation emits the canonical form (docs/architecture/routines.md has the table), and LIR passes may change it.
Bytecode and C are both printed from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from relvm.kernels.loop_ir import Kernel

INVOKES = ("vm.builtin.invoke_closure", "vm.builtin.invoke_pure_closure")
PREFIX = "__vmtir__"  # of a routine's name: the function `foo` is the routine __vmtir__foo


@dataclass(frozen=True)
class Register:
    """anylist_getitem(r, index)"""

    index: int


@dataclass(frozen=True)
class ConstantItem:
    """anylist_getitem(c, index)"""

    index: int


@dataclass(frozen=True)
class FunctionItem:
    """anylist_getitem(f, index)"""

    index: int


@dataclass(frozen=True)
class Immediate:
    """A number in the code itself."""

    value: int | bool | float


@dataclass(frozen=True)
class ContextPointer:
    """ctx_ptr: the running machine."""


@dataclass(frozen=True)
class NullHandle:
    """The null value."""


Operand = Register | ConstantItem | FunctionItem | Immediate | ContextPointer | NullHandle


@dataclass(frozen=True)
class CallStatement:
    """A call; which of the four printed forms it takes follows from `kernel` and `destination`.

    kernel False: of a packed function or, after LIR optimisation, another routine, by name through the function table.
    kernel True: of a kernel of this module, directly.   destination: the register that takes the result, or None.
    comment: the IR value it computes, for people.   origins: where in the source that is (Var.origins).
    """

    function: str
    args: tuple[Operand, ...]
    destination: int | None
    kernel: bool = False
    comment: str = field(default="", compare=False)
    origins: tuple[str, ...] = field(default=(), compare=False, kw_only=True)


@dataclass(frozen=True)
class TailCallStatement:
    """`return` of a call of another routine or of vm.builtin.invoke_closure: this routine's registers are released
    first, so that it takes no room.  Made by relvm/lir/passes/tail_calls.py; nothing follows it."""

    function: str
    args: tuple[Operand, ...]
    origins: tuple[str, ...] = field(default=(), compare=False, kw_only=True)


@dataclass(frozen=True)
class PrimStatement:
    """anylist_setitem(r, destination, row(args...)): arithmetic on unboxed scalars.  row: of
    csrc/tables/scalar_operators.def."""

    row: str
    args: tuple[Operand, ...]
    destination: int
    comment: str = field(default="", compare=False)
    origins: tuple[str, ...] = field(default=(), compare=False, kw_only=True)


@dataclass(frozen=True)
class ResetStatement:
    """anylist_resetitem(r, register): releases what the register holds."""

    register: int
    origins: tuple[str, ...] = field(default=(), compare=False, kw_only=True)


@dataclass(frozen=True)
class IfStatement:
    """if bool(call_packed("vm.builtin.read_if_cond", cond)): then; else: orelse"""

    cond: Operand
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...]
    origins: tuple[str, ...] = field(default=(), compare=False, kw_only=True)


Statement = CallStatement | TailCallStatement | PrimStatement | ResetStatement | IfStatement


def joined(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """The origins of a statement that does what two did."""
    return tuple(dict.fromkeys((*first, *second)))


def used_functions(routine: Routine, functions: tuple[str, ...]) -> Iterator[str]:
    """The functions that a routine calls or has as values; functions: the function table."""
    stack = list(routine.body)
    while stack:
        statement = stack.pop()
        if isinstance(statement, IfStatement):
            stack += [*statement.then, *statement.orelse]
            continue
        if isinstance(statement, CallStatement | TailCallStatement):
            yield statement.function
        for operand in getattr(statement, "args", ()):
            if isinstance(operand, FunctionItem):
                yield functions[operand.index]


def ends_in_calls(body: tuple[Statement, ...]) -> bool:
    """Whether every way through `body` ends in a tail call, so that nothing comes after it."""
    match body:
        case [*_, TailCallStatement()]:
            return True
        case [*_, IfStatement(_, then, orelse)]:
            return ends_in_calls(then) and ends_in_calls(orelse)
    return False


@dataclass(frozen=True)
class Routine:
    """name: the function's.  params: r[0..n-1]; the result is left in r[n].  registers: how many there are, at least
    n+1.  private: whether hosts do not find it by its name.  impure: whether it may
    have effects."""

    name: str
    params: tuple[str, ...]
    registers: int
    body: tuple[Statement, ...]
    private: bool = False
    impure: bool = False


@dataclass(frozen=True)
class LirModule:
    """Everything a module lowers to, before it is printed as bytecode or C.

    functions: the function table's names in order of first use, c the constants' values: np.ndarray, tuple of int (a
    shape), str, ir DType, int or float.  signature: public function -> its parameter and result types as text.
    """

    routines: tuple[Routine, ...]
    kernels: tuple[Kernel, ...]
    functions: tuple[str, ...]
    constants: tuple[Any, ...]
    signature: dict[str, Any]
