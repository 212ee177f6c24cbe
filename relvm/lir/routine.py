"""Routines: the lowered form of functions, over the registers r, the constants c and the function table f.

Code generation emits the canonical form (docs/architecture/routines.md has the table), and LIR passes may change it.
Bytecode and C are both printed from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from relvm.kernels.loop_ir import Kernel

INVOKES = ("vm.builtin.invoke_closure", "vm.builtin.invoke_pure_closure")
PREFIX = "__vmtir__"  # prefix of the names of routines: function `foo` is the routine __vmtir__foo


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
    """ctx_ptr: the running virtual machine."""


@dataclass(frozen=True)
class NullHandle:
    """The null value."""


Operand = Register | ConstantItem | FunctionItem | Immediate | ContextPointer | NullHandle


@dataclass(frozen=True)
class CallStatement:
    """A call.  `kernel` and `destination` determine which of the four printed forms it takes.

    kernel: False for a call through the function table, of a packed function or (after LIR passes) of another routine;
    True for a direct call of a kernel of this module.   destination: the register for the result, or None.   comment:
    the IR value that it computes, for readers.   origins: the source locations of that value (Var.origins).
    """

    function: str
    args: tuple[Operand, ...]
    destination: int | None
    kernel: bool = False
    comment: str = field(default="", compare=False)
    origins: tuple[str, ...] = field(default=(), compare=False, kw_only=True)


@dataclass(frozen=True)
class TailCallStatement:
    """A tail call of another routine or of vm.builtin.invoke_closure.  The registers of this routine are released
    first, so that recursion takes no memory.  It ends the routine.  Source: relvm/lir/passes/tail_calls.py."""

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
    """Return the origins of a statement that replaces two."""
    return tuple(dict.fromkeys((*first, *second)))


def used_functions(routine: Routine, functions: tuple[str, ...]) -> Iterator[str]:
    """Yield the functions that a routine calls or uses as values.  functions: the function table."""
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
    """Return whether every path through `body` ends with a tail call, so that nothing follows it."""
    match body:
        case [*_, TailCallStatement()]:
            return True
        case [*_, IfStatement(_, then, orelse)]:
            return ends_in_calls(then) and ends_in_calls(orelse)
    return False


@dataclass(frozen=True)
class Routine:
    """A routine.  Parameters are in r[0..n-1], and the result is left in r[n].

    name: of the function.  registers: their number, at least n + 1.  private: whether hosts cannot find it by its name.
    impure: whether it may have side effects.
    """

    name: str
    params: tuple[str, ...]
    registers: int
    body: tuple[Statement, ...]
    private: bool = False
    impure: bool = False


@dataclass(frozen=True)
class LirModule:
    """The lowered module, from which bytecode and C are printed.

    functions: the names in the function table, in order of first use.  constants: np.ndarray, tuple of int (a shape),
    str, ir DType, int or float.  signature: the parameter and result types of each public function, as text.
    """

    routines: tuple[Routine, ...]
    kernels: tuple[Kernel, ...]
    functions: tuple[str, ...]
    constants: tuple[Any, ...]
    signature: dict[str, Any]
