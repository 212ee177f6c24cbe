"""Routines: the lowered form of functions.

Statements use the registers r, the constant table c and the function table f.

Code generation emits a canonical statement for each expression (docs/architecture/routines.md lists them).  LIR passes
then transform these statements.  Bytecode and C are both printed from routines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Any, NamedTuple

from relvm.data_classes import dataclass, value_record
from relvm.display import Displayed
from relvm.kernels.kernel import Kernel
from relvm.quoting import terminal
from relvm.tables import BUILTIN_PREFIX

PREFIX = "__vmtir__"  # prefix of the names of routines: function `foo` is the routine __vmtir__foo


class FunctionKey(NamedTuple):
    """The identity of an entry of the function table.  A packed function can have the name of another function.

    kind: "packed" for a builtin or a registered function of the host, "routine" or "kernel" for a function of the
    module.
    """

    kind: str
    name: str


def packed(name: str) -> FunctionKey:
    """Return the key of the builtin or registered function `name`."""
    return FunctionKey("packed", name)


def builtin(name: str) -> FunctionKey:
    """Return the key of the builtin `name`, a row of csrc/tables/builtins.def."""
    return packed(BUILTIN_PREFIX + name)


def routine(name: str) -> FunctionKey:
    """Return the key of the function `name` of the module."""
    return FunctionKey("routine", name)


COPY = builtin("copy")
_UPDATES = (builtin("unshare_tensor"), builtin("list_push"))
INVOKES = (builtin("invoke_closure"), builtin("invoke_pure_closure"))


@value_record
class Register:
    """The value of register `index`, printed as anylist_getitem(r, index)."""

    index: int


@value_record
class ConstantItem:
    """Entry `index` of the constant table, printed as anylist_getitem(c, index)."""

    index: int


@value_record
class FunctionItem:
    """Entry `index` of the function table, used as a value, printed as anylist_getitem(f, index)."""

    index: int


@value_record
class Immediate:
    """A constant number that is stored in the statement itself, and not in the constant table."""

    value: int | bool | float


@value_record
class ContextPointer:
    """The running virtual machine, printed as ctx_ptr."""


@value_record
class NullHandle:
    """The null value, nil in the virtual machine and None in Python."""


Operand = Register | ConstantItem | FunctionItem | Immediate | ContextPointer | NullHandle


@value_record
class CallStatement:
    """A call.

    function: the callee.  Calls of routines are created by LIR passes.
    args: the arguments.
    destination: the register for the result, or None.
    kernel: whether this is a direct call of a native kernel of this module, not through the function table.
    comment: the name of the IR value that the call computes, for readers.
    origins: the source locations of that value (Var.origins).
    """

    function: FunctionKey
    args: tuple[Operand, ...]
    destination: int | None
    kernel: bool = False
    comment: str = field(default="", compare=False)
    origins: tuple[str, ...] = field(default=(), compare=False, kw_only=True)


@value_record
class TailCallStatement:
    """A tail call of a routine or of vm.builtin.invoke_closure, which ends this routine.

    The registers of this routine are released before the call, so that recursion needs constant memory.  The pass
    relvm/lir/passes/tail_calls.py creates tail calls.
    """

    function: FunctionKey
    args: tuple[Operand, ...]
    origins: tuple[str, ...] = field(default=(), compare=False, kw_only=True)


@value_record
class PrimStatement:
    """Arithmetic on unboxed scalars, printed as anylist_setitem(r, destination, row(args...)).

    row: the name of the operation, which is a row in csrc/tables/scalar_operators.def.
    destination: the register for the result.
    """

    row: str
    args: tuple[Operand, ...]
    destination: int
    comment: str = field(default="", compare=False)
    origins: tuple[str, ...] = field(default=(), compare=False, kw_only=True)


@value_record
class ResetStatement:
    """The release of the value in a register, printed as anylist_resetitem(r, register)."""

    register: int
    origins: tuple[str, ...] = field(default=(), compare=False, kw_only=True)


@value_record
class IfStatement:
    """A conditional, printed as `if bool(call_packed("vm.builtin.read_if_cond", cond)): then; else: orelse`."""

    cond: Operand
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...]
    origins: tuple[str, ...] = field(default=(), compare=False, kw_only=True)


Statement = CallStatement | TailCallStatement | PrimStatement | ResetStatement | IfStatement


def operands_of(statement: Statement) -> tuple[Operand, ...]:
    """Return the operands that a statement reads, without those of the statements in its blocks.

    The release of a register is not a read.
    """
    match statement:
        case IfStatement(cond):
            return (cond,)
        case ResetStatement():
            return ()
    return statement.args


def written_registers(statement: Statement) -> frozenset[int]:
    """Return the registers that a statement writes, without those that the statements in its blocks write."""
    match statement:
        case CallStatement(destination=int(register)) | PrimStatement(destination=register):
            return frozenset((register,))
    return frozenset()


def blocks_of(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """Return the blocks of statements that a statement contains."""
    return (statement.then, statement.orelse) if isinstance(statement, IfStatement) else ()


def map_operands(function: Callable[[Operand], Operand], statement: Statement) -> Statement:
    """Return `statement` with `function` applied to the operands that it reads (`operands_of`)."""
    match statement:
        case IfStatement(cond):
            return replace(statement, cond=function(cond))
        case ResetStatement():
            return statement
    return replace(statement, args=tuple(map(function, statement.args)))


def map_blocks(function: Callable[[tuple[Statement, ...]], tuple[Statement, ...]], statement: Statement) -> Statement:
    """Return `statement` with `function` applied to the blocks that it contains."""
    if isinstance(statement, IfStatement):
        return replace(statement, then=function(statement.then), orelse=function(statement.orelse))
    return statement


def map_statements(function: Callable[[Statement], Statement], body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Return the statements of `body` with `function` applied to each.

    For a statement with blocks, `function` is applied to the statements of the blocks instead.
    """

    def mapped(block: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(map_blocks(mapped, item) if blocks_of(item) else function(item) for item in block)

    return mapped(body)


def merge_origins(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Return the source locations (origins) of a statement that replaces two statements, without duplicates.

    first, second: the origins of the two statements.
    """
    return tuple(dict.fromkeys((*first, *second)))


def statements_in(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield the statements of a block in printed order, including the statements in branches."""
    for statement in body:
        yield statement
        for block in blocks_of(statement):
            yield from statements_in(block)


def used_functions(routine: Routine, functions: tuple[FunctionKey, ...]) -> Iterator[FunctionKey]:
    """Yield the functions that a routine calls or uses as values.

    functions: the function table.
    """
    for statement in statements_in(routine.body):
        if isinstance(statement, CallStatement | TailCallStatement):
            yield statement.function
        for operand in operands_of(statement):
            if isinstance(operand, FunctionItem):
                yield functions[operand.index]


def updates_values(module: LirModule) -> bool:
    """Return whether the module updates tensors or lists in place, if nothing else refers to them."""
    return any(key in _UPDATES for key in module.functions)


def always_tail_calls(body: tuple[Statement, ...]) -> bool:
    """Return whether every path through `body` ends with a tail call, so that no statement after it is executed."""
    match body:
        case [*_, TailCallStatement()]:
            return True
        case [*_, IfStatement(_, then, orelse)]:
            return always_tail_calls(then) and always_tail_calls(orelse)
    return False


@dataclass(frozen=True, repr=False)
class Routine(Displayed):
    """A routine, the lowered form of a function.

    Its n parameters are in r[0..n-1], and its result is in r[n] at the end.

    name: the name of the function.
    params: the names of its parameters.
    registers: the number of registers, at least n + 1.
    private: whether hosts cannot find the function by its name.
    impure: whether it can have side effects.
    result_origins: the source locations of the expression that it returns.
    """

    name: str
    params: tuple[str, ...]
    registers: int
    body: tuple[Statement, ...]
    private: bool = False
    impure: bool = False
    result_origins: tuple[str, ...] = field(default=(), compare=False, kw_only=True)

    @property
    def key(self) -> FunctionKey:
        """The key of the routine in the function table."""
        return routine(self.name)

    def __str__(self) -> str:
        return terminal(f"<routine {self.name}({', '.join(self.params)}): {self.registers} registers>")


@dataclass(frozen=True, repr=False)
class LirModule(Displayed):
    """The lowered module, from which bytecode and C are printed.

    functions: the function table: the functions of the module, then others in order of first use.
    constants: the constant table.  Each entry is an np.ndarray, a tuple of int (a shape), a str, a DType of the IR, an
    int or a float.
    signature: the parameter and result types of each public function, as text.
    """

    routines: tuple[Routine, ...]
    kernels: tuple[Kernel, ...]
    functions: tuple[FunctionKey, ...]
    constants: tuple[Any, ...]
    signature: dict[str, Any]

    def __str__(self) -> str:
        head = f"<LirModule of {len(self.routines)} routines and {len(self.kernels)} kernels>"
        return "\n".join((head, *map(str, self.routines), *map(str, self.kernels)))

    def map_bodies(self, function: Callable[[Routine], tuple[Statement, ...]]) -> LirModule:
        """Return the module with `function(routine)` as the body of each routine."""
        return replace(self, routines=tuple(replace(each, body=function(each)) for each in self.routines))
