"""A program as Python objects: the common form of an executable's bytes (container.py) and listing (asm_printer.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from relvm.errors import RelvmFormatError
from relvm.tables import ABI_VERSION, OPCODES

_LETTERS = {row.name: row.operands for row in OPCODES}


class Shape(tuple):
    """The dimensions of a tensor as a value of their own: a tuple of int that machines take as a SHAPE, not a TUPLE.

    Made of any iterable, as a tuple is: `Shape((2, 3))`.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Shape({', '.join(map(str, self))})"


class Argument(NamedTuple):
    """One argument of a call instruction.  kind: a row name of csrc/tables/arguments.def.   payload: what its row
    says."""

    kind: str
    payload: int


def register(index: int) -> Argument:
    """Register `index` of the function."""
    return Argument("REGISTER", index)


def immediate(value: int) -> Argument:
    """`value` in [-2^28, 2^28); a larger one is a constant."""
    return Argument("IMMEDIATE", value)


def constant(index: int) -> Argument:
    """The constant at `index` of the constant table."""
    return Argument("CONSTANT", index)


def function(index: int) -> Argument:
    """The function at `index` of the function table, as a value."""
    return Argument("FUNCTION", index)


def boolean(value: bool) -> Argument:
    """`value`, True or False."""
    return Argument("BOOL", int(value))


CONTEXT = Argument("CONTEXT", 0)
NIL = Argument("NIL", 0)


class Instruction(NamedTuple):
    """One instruction.

    op: a row name of csrc/tables/opcodes.def.
    operands: one for each letter of the row's operands.  An int for `d`, `r`, `u`, `f` and `p` (-1: no destination);
    for `j` the index of the target in the function's code, which the encoding turns into a distance in words; for `A`
    a tuple of Argument.
    """

    op: str
    operands: tuple[Any, ...]


def call(destination: int, callee: int, *arguments: Argument) -> Instruction:
    """R[destination] = F[callee](arguments...); destination -1 drops the result."""
    return Instruction("call", (destination, callee, arguments))


def callees(instruction: Instruction) -> Iterator[int]:
    """The functions that `instruction` calls, by their place in the function table."""
    for letter, operand in zip(_LETTERS[instruction.op], instruction.operands, strict=True):
        if letter == "f":
            yield operand


def tail_call(callee: int, *arguments: Argument) -> Instruction:
    """Return F[callee](arguments...), this function's registers being released before the call."""
    return Instruction("tail_call", (callee, arguments))


def prim(destination: int, row: int, *arguments: Argument) -> Instruction:
    """R[destination] = the value of row `row` of csrc/tables/scalar_operators.def for the arguments."""
    return Instruction("prim", (destination, row, arguments))


def ret(source: int) -> Instruction:
    """Return R[source]."""
    return Instruction("ret", (source,))


def goto(target: int) -> Instruction:
    """Continue at the instruction of index `target`."""
    return Instruction("goto", (target,))


def unless(condition: int, target: int) -> Instruction:
    """The `if` instruction: continue at `target` when R[condition] is false, at the next instruction otherwise."""
    return Instruction("if", (condition, target))


def reset(target: int) -> Instruction:
    """R[target] = nil, releasing what it held."""
    return Instruction("reset", (target,))


@dataclass(frozen=True)
class FunctionEntry:
    """One entry of the function table.

    Attributes
    ----------
    name
        Unique in the program.
    kind
        A row name of csrc/tables/kinds.def.
    parameters
        Their names; None: any number, for packed functions only.
    registers
        How many the routine has, parameters first.  0 for packed functions and kernels.
    code
        The instructions of a bytecode function.
    symbol
        Of a native function or kernel: its name in the native section.
    private
        Whether only the program itself calls it: hosts do not find it by its name.  For bytecode and native functions.
    impure
        Whether calling it may have effects, so that it is no value for a function type without effects.  For bytecode
        and native functions.
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

    triple: its target, "x86_64-linux-gnu".  cpu: the features that the processor must have, words of
    csrc/tables/cpu_features.def or x86-64 levels: "x86-64-v3 avxvnni"; empty: none beyond the architecture's base.
    abi_version: RVM_ABI_VERSION of the runtime that it is for.
    """

    library: bytes
    triple: str
    cpu: str = ""
    abi_version: int = ABI_VERSION


Constant = np.ndarray | Shape | str | np.dtype | int | float


@dataclass(frozen=True, eq=False)
class Program:
    """All that an executable holds.

    Attributes
    ----------
    functions, constants
        The two tables; instructions refer to their rows by index.
    native
        The native section, needed when a function is native or a kernel.
    source
        The C source of the native section.
    signature
        Function name -> its parameter and result types, as JSON.
    debug
        As JSON.  Name of a bytecode function -> {"instructions": [text, ...]}, what each instruction computes.  Name of
        a kernel -> {"operations": sum, "reads": [sum, ...]}: how many operations a call takes, and how many elements it
        reads of each input at most (null: all); a sum is a list of terms, [coefficient, [argument, axis], ...] being
        the product of a number and some sizes of arguments, or null where it is not known.
        What there is more of programs built for debugging is said in relvm/codegen/debug_info.py.
    portable
        The bytes of an executable without native code: the same program for machines that cannot run this one's.
        Empty: none.
    """

    functions: tuple[FunctionEntry, ...]
    constants: tuple[Constant, ...] = ()
    native: NativeCode | None = None
    source: str = ""
    signature: dict[str, Any] = field(default_factory=dict)
    debug: dict[str, Any] = field(default_factory=dict)
    portable: bytes | memoryview | np.ndarray = b""

    def comment(self, function: str, instruction: int) -> str:
        """What the debug section says of an instruction, a function's name and an index; empty when it says nothing."""
        match self.debug.get(function):
            case {"instructions": list(lines)} if instruction < len(lines) and isinstance(lines[instruction], str):
                return lines[instruction]
        return ""

    def origin(self, function: str, instruction: int) -> str:
        """Where in the source an instruction, a function's name and an index, is first; empty where unknown."""
        match self.debug.get(function):
            case {"origins": list(places)} if instruction < len(places):
                match places[instruction]:
                    case [str(place), *_]:
                        return place
        return ""


def stated_signature(signature: Mapping[str, Any], function: str) -> dict[str, Any] | None:
    """What a program's `signature` states of a `function`; None: nothing.

    That is, as builds write it: ``params``, of which each has a ``name`` and a ``type``; ``result``, a type; and
    ``attributes``, among them, in models, ``input_names``, one for each parameter, and ``output_names``.

    Raises
    ------
    RelvmFormatError
        It is something else, as it may be in a file from elsewhere: nothing that runs depends on it.
    """
    stated = signature.get(function)
    match stated:
        case None:
            return None
        case {"params": [*params], "result": str(), "attributes": dict() as attributes} if all(map(_is_param, params)):
            inputs = attributes.get("input_names", [each["name"] for each in params])
            if _are_texts(inputs) and len(inputs) == len(params) and _are_texts(attributes.get("output_names", ())):
                return stated
    raise RelvmFormatError(f"{function}: what the executable states of it is not what builds write: {stated!r:.200}")


def _is_param(stated: Any) -> bool:
    return isinstance(stated, dict) and _are_texts([stated.get("name"), stated.get("type")])


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


def scalar_kind(type_text: str) -> str:
    """The kind of scalar, "bool", "i64" or "f64", of a parameter whose type is written `type_text` in a signature,
    which may say which one: "i64(n)"; empty if it is no scalar."""
    kind = type_text.partition("(")[0]
    return kind if kind in ("bool", "i64", "f64") else ""
