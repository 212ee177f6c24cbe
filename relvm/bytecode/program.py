"""Programs as Python objects.

encode.py encodes a program as an executable, and asm_printer.py prints it as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from relvm.bytecode.kernel_program import KernelProgram
from relvm.data_classes import dataclass
from relvm.display import Displayed
from relvm.errors import RelvmFormatError, counted
from relvm.quoting import terminal
from relvm.tables import ABI_VERSION, OPCODES

_LETTERS = {row.name: row.operands for row in OPCODES}


class Shape(tuple):
    """A shape value: a tuple of int that the virtual machine treats as a value of kind SHAPE, not TUPLE.

    Like the constructor of `tuple`, the constructor takes one iterable: `Shape((2, 3))`.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Shape({', '.join(map(str, self))})"


class Argument(NamedTuple):
    """One argument of a call instruction.

    kind: the name of a row in csrc/tables/arguments.def.   payload: a number, whose meaning the row explains.
    """

    kind: str
    payload: int


def register(index: int) -> Argument:
    """Return the argument for register `index` of the function."""
    return Argument("REGISTER", index)


def immediate(value: int) -> Argument:
    """Return the argument for the integer `value` in [-2^28, 2^28).  Use a constant for other integers."""
    return Argument("IMMEDIATE", value)


def constant(index: int) -> Argument:
    """Return the argument for the constant at `index` of the constant table."""
    return Argument("CONSTANT", index)


def function(index: int) -> Argument:
    """Return the argument that passes the function at `index` of the function table as a value."""
    return Argument("FUNCTION", index)


def boolean(value: bool) -> Argument:
    """Return the argument for the bool `value`."""
    return Argument("BOOL", int(value))


CONTEXT = Argument("CONTEXT", 0)
NIL = Argument("NIL", 0)


class Instruction(NamedTuple):
    """One instruction.

    op: the name of a row in csrc/tables/opcodes.def.
    operands: one operand for each letter in the column `operands` of that row.
    `d`, `r` and `u`: the number of a register.  For `d`, -1 means that there is no destination.
    `f`: an index in the function table.
    `p`: the index of a row in csrc/tables/scalar_operators.def.
    `j`: the index of the target instruction in the function.  The encoding converts it to a distance in words.
    `A`: a tuple of Argument.
    """

    op: str
    operands: tuple[Any, ...]


def call(destination: int, callee: int, *arguments: Argument) -> Instruction:
    """Return a call instruction, R[destination] = F[callee](arguments...).

    R are the registers, and F is the function table.  If `destination` is -1, the result is discarded.
    """
    return Instruction("call", (destination, callee, arguments))


def callees(instruction: Instruction) -> Iterator[int]:
    """Yield the index in the function table of each function that `instruction` calls."""
    for letter, operand in zip(_LETTERS[instruction.op], instruction.operands, strict=True):
        if letter == "f":
            yield operand


def tail_call(callee: int, *arguments: Argument) -> Instruction:
    """Return a tail call instruction, F[callee](arguments...).  It releases the registers before the call.

    F is the function table.
    """
    return Instruction("tail_call", (callee, arguments))


def prim(destination: int, row: int, *arguments: Argument) -> Instruction:
    """Return a `prim` instruction, which computes with scalars.

    destination: the register for the result.
    row: the operation, as the index of a row in csrc/tables/scalar_operators.def.
    arguments: the operands of the operation.
    """
    return Instruction("prim", (destination, row, arguments))


def ret(source: int) -> Instruction:
    """Return a `ret` instruction, which returns the value of register `source`."""
    return Instruction("ret", (source,))


def goto(target: int) -> Instruction:
    """Return a `goto` instruction, which jumps to the instruction at index `target`."""
    return Instruction("goto", (target,))


def unless(condition: int, target: int) -> Instruction:
    """Return an `if` instruction, which jumps to the instruction at index `target` if register `condition` is false."""
    return Instruction("if", (condition, target))


def reset(target: int) -> Instruction:
    """Return a `reset` instruction, which releases the value of register `target` and sets the register to nil."""
    return Instruction("reset", (target,))


@dataclass(frozen=True, repr=False)
class FunctionEntry(Displayed):
    """One entry of the function table.

    Attributes
    ----------
    name
        The name of the function.  It is unique among packed functions, and among all other functions of the program.
    kind
        The name of a row in csrc/tables/kinds.def.
    parameters
        The names of the parameters, or None for a packed function that accepts any number of arguments.
    registers
        The number of registers, including those of the parameters, which come first.  It is 0 for packed functions and
        kernels.
    code
        The instructions of a bytecode function.
    symbol
        The name of a native function or kernel in the native section, or None.
    private
        Whether hosts cannot find the function by its name.  Only bytecode and native functions can be private.
    impure
        Whether calls can have side effects.  If so, the function cannot be passed where a function without side effects
        is required.  Only bytecode and native functions can be impure.
    """

    name: str
    kind: str
    parameters: tuple[str, ...] | None = None
    registers: int = 0
    code: tuple[Instruction, ...] = ()
    symbol: str | None = None
    private: bool = False
    impure: bool = False

    def __str__(self) -> str:
        parameters = "..." if self.parameters is None else ", ".join(self.parameters)
        size = f": {self.registers} registers, {len(self.code)} instructions" if self.code else ""
        return terminal(f"<{self.kind} {self.name}({parameters}){size}>")


@dataclass(frozen=True)
class NativeCode:
    """The native code of a program: a shared library and its requirements.

    library: the contents of the shared library.
    triple: the target triple, such as "x86_64-linux-gnu".
    cpu: the required processor features, such as "x86-64-v3 avxvnni".  Each word is a name in
    csrc/tables/cpu_features.def or an x86-64 level.  The text is empty if the base architecture suffices.
    abi_version: the RVM_ABI_VERSION of the runtime that the library needs.
    replaces: the digest (rvm_executable_digest) of the executable whose bytecode the native code can replace in a
    machine, or zeros if there is none.
    """

    library: bytes = field(repr=False)
    triple: str
    cpu: str = ""
    abi_version: int = ABI_VERSION
    replaces: bytes = field(default=bytes(32), repr=False)


Constant = np.ndarray | Shape | str | np.dtype | int | float


@dataclass(frozen=True, eq=False, repr=False)
class Program(Displayed):
    """The contents of an executable.

    Attributes
    ----------
    functions, constants
        The function table and the constant table.  Instructions refer to their rows by index.
    native
        The native code.  It is required if a function is native, or if a kernel is compiled.
    source
        The C source of the native code.
    signature
        The parameter and result types of each function by name, as JSON.
    debug
        Information about each function for debuggers and profilers, by name, as JSON.  Execution does not need it.
        The entry of a bytecode function is {"instructions": [text, ...]}: the name of the value that each instruction
        computes.
        The entry of a kernel is {"operations": sum, "reads": [sum, ...]}.  "operations" is the number of operations in
        a call, or null if it is unknown.  "reads" contains, for each input, the maximum number of elements that a call
        reads, or null if it can read all elements.
        A sum is a list of terms.  A term [coefficient, [argument, axis], ...] is the product of the coefficient and the
        sizes of the listed axes.  For example, [[2, [0, 1]], [5]] is 2 * (size of axis 1 of argument 0) + 5.
        relvm/codegen/debug_info.py lists the additional entries of programs built for debugging.
    portable
        The same program without native code, for machines that cannot run the native code, or None.
    kernels
        The kernels in kernel bytecode, by name.
    """

    functions: tuple[FunctionEntry, ...]
    constants: tuple[Constant, ...] = ()
    native: NativeCode | None = None
    source: str = ""
    signature: dict[str, Any] = field(default_factory=dict)
    debug: dict[str, Any] = field(default_factory=dict)
    portable: Program | None = None
    kernels: Mapping[str, KernelProgram] = field(default_factory=dict)

    def __str__(self) -> str:
        head = f"<Program of {counted(len(self.functions), 'function')} and {counted(len(self.constants), 'constant')}>"
        return "\n".join((head, *map(str, self.functions)))

    def comment(self, function: str, instruction: int) -> str:
        """Return the comment of an instruction, or "" if the debug section has none.

        function: the name of the function.   instruction: the index of the instruction in the function.
        """
        match self.debug.get(function):
            case {"instructions": list(lines)} if instruction < len(lines) and isinstance(lines[instruction], str):
                return lines[instruction]
        return ""

    def origin(self, function: str, instruction: int) -> str:
        """Return the first source location of an instruction and the number of others, or "" if it is unknown.

        function: the name of the function.   instruction: the index of the instruction in the function.
        """
        match self.debug.get(function):
            case {"origins": list(locations)} if instruction < len(locations):
                found = locations[instruction]
            case {"locations": dict(locations)}:
                found = locations.get(str(instruction))
            case _:
                return ""
        match found:
            case [str(location)]:
                return location
            case [str(location), *others]:
                return f"{location} and {len(others)} more"
        return ""


def signature_entry(signature: Mapping[str, Any], function: str) -> dict[str, Any] | None:
    """Return the entry of `function` in the `signature` of a program, or None if there is none.

    In an executable that was built from a module, the entry is an object with three items: ``params``, a list of
    objects with a ``name`` and a ``type``; ``result``, a type; and ``attributes``.  The attributes of a model include
    ``input_names``, one name for each parameter, and ``output_names``.

    Raises
    ------
    RelvmFormatError
        The entry has another form.  This is possible in a file from another source, because execution does not depend
        on the signature.
    """
    entry = signature.get(function)
    match entry:
        case None:
            return None
        case {"params": [*params], "result": str(), "attributes": dict() as attributes} if all(map(_is_param, params)):
            inputs = attributes.get("input_names", [each["name"] for each in params])
            if _are_strings(inputs) and len(inputs) == len(params) and _are_strings(attributes.get("output_names", ())):
                return entry
    raise RelvmFormatError(f"{function}: the executable has a malformed signature for this function: {entry!r:.200}")


def input_names(entry: Mapping[str, Any]) -> list[str]:
    """Return the input names of a model, or the parameter names of a function that has no input names.

    entry: the entry of the function in a signature, as `signature_entry` returns it.
    """
    return list(entry["attributes"].get("input_names", [each["name"] for each in entry["params"]]))


def _is_param(entry: Any) -> bool:
    return isinstance(entry, dict) and _are_strings([entry.get("name"), entry.get("type")])


def _are_strings(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


def scalar_kind(type_text: str) -> str:
    """Return the dtype of a scalar parameter: "bool", "i64" or "f64".  Return "" if the parameter is not a scalar.

    type_text: the parameter's type in a signature, such as "i64(n)".
    """
    kind = type_text.partition("(")[0]
    return kind if kind in ("bool", "i64", "f64") else ""
