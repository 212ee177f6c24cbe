"""A program as Python objects: the common form of an executable's bytes (container.py) and listing (asm_printer.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from relvm.bytecode.kernel_program import KernelProgram
from relvm.errors import RelvmFormatError
from relvm.tables import ABI_VERSION, OPCODES

_LETTERS = {row.name: row.operands for row in OPCODES}


class Shape(tuple):
    """The dimensions of a tensor as a value: a tuple of int that machines treat as a SHAPE, not a TUPLE.

    Construct it from an iterable, like a tuple: `Shape((2, 3))`.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Shape({', '.join(map(str, self))})"


class Argument(NamedTuple):
    """One argument of a call instruction.  kind: the name of a row in csrc/tables/arguments.def.   payload: as the
    row says."""

    kind: str
    payload: int


def register(index: int) -> Argument:
    """Return an argument: register `index` of the function."""
    return Argument("REGISTER", index)


def immediate(value: int) -> Argument:
    """Return an argument: the integer `value` in [-2^28, 2^28).  Larger integers are constants."""
    return Argument("IMMEDIATE", value)


def constant(index: int) -> Argument:
    """Return an argument: the constant at `index` of the constant table."""
    return Argument("CONSTANT", index)


def function(index: int) -> Argument:
    """Return an argument: the function at `index` of the function table, as a value."""
    return Argument("FUNCTION", index)


def boolean(value: bool) -> Argument:
    """Return `value`, True or False, as an argument."""
    return Argument("BOOL", int(value))


CONTEXT = Argument("CONTEXT", 0)
NIL = Argument("NIL", 0)


class Instruction(NamedTuple):
    """One instruction.

    op: the name of a row in csrc/tables/opcodes.def.
    operands: one for each letter in the operands of that row.  An int for `d`, `r`, `u`, `f` and `p` (-1: no
    destination).  For `j` the index of the target in the code of the function, which the encoding converts to a
    distance in words.  For `A` a tuple of Argument.
    """

    op: str
    operands: tuple[Any, ...]


def call(destination: int, callee: int, *arguments: Argument) -> Instruction:
    """Return a call, R[destination] = F[callee](arguments...).  Destination -1 drops the result."""
    return Instruction("call", (destination, callee, arguments))


def callees(instruction: Instruction) -> Iterator[int]:
    """Yield the functions that `instruction` calls, by their index in the function table."""
    for letter, operand in zip(_LETTERS[instruction.op], instruction.operands, strict=True):
        if letter == "f":
            yield operand


def tail_call(callee: int, *arguments: Argument) -> Instruction:
    """Return a tail call of F[callee](arguments...), which releases the registers of this function first."""
    return Instruction("tail_call", (callee, arguments))


def prim(destination: int, row: int, *arguments: Argument) -> Instruction:
    """Return scalar arithmetic: R[destination] = the row `row` of csrc/tables/scalar_operators.def applied to the
    arguments."""
    return Instruction("prim", (destination, row, arguments))


def ret(source: int) -> Instruction:
    """Return a `ret` instruction, which returns R[source]."""
    return Instruction("ret", (source,))


def goto(target: int) -> Instruction:
    """Return a jump to the instruction of index `target`."""
    return Instruction("goto", (target,))


def unless(condition: int, target: int) -> Instruction:
    """Return an `if` instruction.  It continues at `target` if R[condition] is false, and otherwise at the next
    instruction."""
    return Instruction("if", (condition, target))


def reset(target: int) -> Instruction:
    """Return a reset: R[target] = nil, which releases the old value."""
    return Instruction("reset", (target,))


@dataclass(frozen=True)
class FunctionEntry:
    """One entry of the function table.

    Attributes
    ----------
    name
        Unique in the program.
    kind
        The name of a row in csrc/tables/kinds.def.
    parameters
        Their names, or None for packed functions, which take any number.
    registers
        Their number, including parameters, which come first.  0 for packed functions and kernels.
    code
        The instructions of a bytecode function.
    symbol
        The name of a native function or kernel in the native section.
    private
        Whether hosts cannot find the function by its name.  For bytecode and native functions.
    impure
        Whether calling it may have side effects, so that it cannot be used as a value of a pure function type.  For
        bytecode and native functions.
    """

    name: str
    kind: str
    parameters: tuple[str, ...] | None = None
    registers: int = 0
    code: tuple[Instruction, ...] = ()
    symbol: str | None = None
    private: bool = False
    impure: bool = False


@dataclass(frozen=True)
class NativeCode:
    """A shared library.

    triple: its target, such as "x86_64-linux-gnu".  cpu: the required processor features, words of
    csrc/tables/cpu_features.def or x86-64 levels, such as "x86-64-v3 avxvnni"; empty if the base architecture suffices.
    abi_version: RVM_ABI_VERSION of the runtime that it needs.
    """

    library: bytes
    triple: str
    cpu: str = ""
    abi_version: int = ABI_VERSION


Constant = np.ndarray | Shape | str | np.dtype | int | float


@dataclass(frozen=True, eq=False)
class Program:
    """The contents of an executable.

    Attributes
    ----------
    functions, constants
        The two tables, to whose rows instructions refer by index.
    native
        The native section, required if a function is native or a kernel.
    source
        The C source of the native section.
    signature
        The parameter and result types of each function by name, as JSON.
    debug
        As JSON.  For a bytecode function, by name, {"instructions": [text, ...]}: the value that each instruction
        computes.  For a kernel, {"operations": sum, "reads": [sum, ...]}: the number of operations of a call, and the
        most elements of each input that it reads (null: all).  A sum is a list of terms, or null if it is unknown.  A
        term [coefficient, [argument, axis], ...] is the product of a number and sizes of arguments.
        relvm/codegen/debug_info.py lists the additional entries of programs built for debugging.
    portable
        The same program without native code, for machines that cannot run this one, or None.
    kernels
        The kernels that are bytecode, by name.
    """

    functions: tuple[FunctionEntry, ...]
    constants: tuple[Constant, ...] = ()
    native: NativeCode | None = None
    source: str = ""
    signature: dict[str, Any] = field(default_factory=dict)
    debug: dict[str, Any] = field(default_factory=dict)
    portable: Program | None = None
    kernels: Mapping[str, KernelProgram] = field(default_factory=dict)

    def comment(self, function: str, instruction: int) -> str:
        """Return the comment of an instruction, given by function name and index.  Empty if the debug section has
        none."""
        match self.debug.get(function):
            case {"instructions": list(lines)} if instruction < len(lines) and isinstance(lines[instruction], str):
                return lines[instruction]
        return ""

    def origin(self, function: str, instruction: int) -> str:
        """Return the first source location of an instruction, given by function name and index.  Empty if it is
        unknown."""
        match self.debug.get(function):
            case {"origins": list(places)} if instruction < len(places):
                match places[instruction]:
                    case [str(place), *_]:
                        return place
        return ""


def stated_signature(signature: Mapping[str, Any], function: str) -> dict[str, Any] | None:
    """Return the entry of a function in the `signature` of a program, or None if there is none.

    Builds write: ``params``, each with a ``name`` and a ``type``; ``result``, a type; and ``attributes``, which for
    models include ``input_names``, one for each parameter, and ``output_names``.

    Raises
    ------
    RelvmFormatError
        The entry has another form.  A file from elsewhere may contain anything here, because execution does not depend
        on it.
    """
    stated = signature.get(function)
    match stated:
        case None:
            return None
        case {"params": [*params], "result": str(), "attributes": dict() as attributes} if all(map(_is_param, params)):
            inputs = attributes.get("input_names", [each["name"] for each in params])
            if _are_texts(inputs) and len(inputs) == len(params) and _are_texts(attributes.get("output_names", ())):
                return stated
    raise RelvmFormatError(f"{function}: the executable has a malformed signature for this function: {stated!r:.200}")


def _is_param(stated: Any) -> bool:
    return isinstance(stated, dict) and _are_texts([stated.get("name"), stated.get("type")])


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


def scalar_kind(type_text: str) -> str:
    """Return the kind of a scalar parameter, "bool", "i64" or "f64", or "" if it is not a scalar.

    type_text: the parameter's type in a signature, such as "i64(n)".
    """
    kind = type_text.partition("(")[0]
    return kind if kind in ("bool", "i64", "f64") else ""
