"""Python printer: converts a Program to a Python program that builds the same executable with ExecBuilder.

The Python program assigns the executable to the variable `executable`.  An example:

b = vm.ExecBuilder()
b.packed("test.add")
b.declare("main", ["x"])
c0 = b.const(np.array([1.0, 2.0], "float32"))
with b.function("main", ["x"], registers=3):
    b.emit_call("test.add", [b.r(0), c0], dst=b.r(2))
    b.emit_ret(b.r(2))
executable = b.get()
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from math import isnan
from textwrap import indent
from typing import Any

import numpy as np

from relvm.bytecode.asm_printer import LITERAL_ELEMENTS
from relvm.bytecode.constant_key import constant_key
from relvm.bytecode.program import Argument, Constant, FunctionEntry, Instruction, NativeCode, Program, Shape
from relvm.errors import RelvmUnsupportedError
from relvm.numpy_dtypes import STRINGS, plain_array
from relvm.quoting import terminal
from relvm.tables import ABI_VERSION, OPCODES, PRIM_OPERATORS

_HEAD = """import base64
import json
import struct

import numpy as np

from relvm import vm
"""

_LETTERS = {row.name: row.operands for row in OPCODES}
# Instructions for which ExecBuilder has a method with the same operands in the same order.
_METHODS = ("ret", "goto", "if", "reset")
# The method of ExecBuilder that adds a function of a kind, if it does not have the name of the kind.
_DECLARATIONS = {"bytecode": "declare"}


def as_python(program: Program) -> str:
    """Return a Python program that builds a copy of `program`, with the same text and the same encoding.

    Native code, kernels in kernel bytecode and large tensors are printed in base64.

    Raises
    ------
    RelvmUnsupportedError
        The program contains a packed function with a symbol or registers, which code generation does not create.
    """
    for entry in program.functions:
        if entry.kind == "packed" and (entry.symbol is not None or entry.registers):
            raise RelvmUnsupportedError(
                f"{entry.name}: a packed function with its own symbol or registers cannot be printed as Python"
            )
    lines = [_HEAD]
    if program.portable:
        lines += ["", "def portable_program():"]
        lines += (indent(line, "    ") for line in _lines(program.portable))
        lines += ["    return b", "", ""]
    lines += _lines(program)
    if program.portable:
        lines.append("b.portable = portable_program()")
    return "\n".join([*lines, "", "executable = b.get()", ""])


def _lines(program: Program) -> Iterator[str]:
    """Yield the lines of the Python code that creates the builder `b` of the program."""
    yield "b = vm.ExecBuilder()"
    for name, section in (("signature", program.signature), ("debug", program.debug)):
        if section:
            yield f"b.{name} = json.loads({json.dumps(section, sort_keys=True)!r})"
    if program.source:
        yield f"b.source = {program.source!r}"
    if program.native:
        yield _native_library(program.native)
    yield ""
    names = _FunctionNames(program)
    for index, entry in enumerate(program.functions):
        yield _declaration(entry, names.variable(index), program)
    yield ""
    seen: set[tuple] = set()
    for index, value in enumerate(program.constants):
        key = constant_key(value)
        yield f"c{index} = b.const({_constant(value)}{', shared=False' if key in seen else ''})"
        seen.add(key)
    for entry in program.functions:
        if entry.kind == "bytecode":
            yield from _function(program, entry, names)


def _native_library(native: NativeCode) -> str:
    options = [f"cpu={native.cpu!r}"] if native.cpu else []
    if native.abi_version != ABI_VERSION:
        options.append(f"abi_version={native.abi_version}")
    if any(native.replaces):
        options.append(f'replaces=bytes.fromhex("{native.replaces.hex()}")')
    parts = [_base64(native.library), repr(native.triple), *options]
    return f"b.native_library({', '.join(parts)})"


def _names(names: tuple[str, ...]) -> str:
    return f"[{', '.join(map(repr, names))}]"


class _FunctionNames:
    """The expressions for the functions of a program.

    Functions are referred to by their names.  A packed function that has the name of a function of the program is
    assigned to a variable.
    """

    def __init__(self, program: Program) -> None:
        self.functions = program.functions
        self.defined = {entry.name for entry in program.functions if entry.kind != "packed"}

    def variable(self, index: int) -> str:
        """Return the variable to which the function is assigned, or "" if there is none."""
        entry = self.functions[index]
        return f"f{index}" if entry.kind == "packed" and entry.name in self.defined else ""

    def callee(self, index: int) -> str:
        return self.variable(index) or repr(self.functions[index].name)

    def value(self, index: int) -> str:
        return self.variable(index) or f"b.f({self.functions[index].name!r})"


def _declaration(entry: FunctionEntry, variable: str, program: Program) -> str:
    arguments = [repr(entry.name)]
    if entry.parameters is not None:
        arguments.append(_names(entry.parameters))
    if entry.name in program.kernels and entry.kind == "kernel":
        arguments.append(_base64(program.kernels[entry.name].encode()))
    if entry.kind == "native":
        arguments.append(f"registers={entry.registers}")
    if entry.symbol is not None:
        arguments.append(f"symbol={entry.symbol!r}")
    if entry.kind == "native":
        arguments += [f"{flag}=True" for flag in ("private", "impure") if getattr(entry, flag)]
    start = f"{variable} = " if variable else ""
    return f"{start}b.{_DECLARATIONS.get(entry.kind, entry.kind)}({', '.join(arguments)})"


def _function(program: Program, entry: FunctionEntry, names: _FunctionNames) -> Iterator[str]:
    targets = sorted({target for instruction in entry.code for target in _targets(instruction)})
    yield ""
    flags = ", private=True" * entry.private + ", impure=True" * entry.impure
    yield f"with b.function({entry.name!r}, {_names(entry.parameters or ())}, registers={entry.registers}{flags}):"
    for target in targets:
        yield f"    l{target} = b.label()"
    for number, instruction in enumerate(entry.code):
        if number in targets:
            yield f"    b.place(l{number})"
        comment = terminal(" ".join(program.comment(entry.name, number).split()))
        yield f"    {_statement(instruction, names)}{f'  # {comment}' if comment else ''}"


def _targets(instruction: Instruction) -> list[int]:
    pairs = zip(_LETTERS[instruction.op], instruction.operands, strict=True)
    return [operand for letter, operand in pairs if letter == "j"]


def _statement(instruction: Instruction, names: _FunctionNames) -> str:
    pairs = zip(_LETTERS[instruction.op], instruction.operands, strict=True)
    operands = [_operand(letter, operand, names) for letter, operand in pairs]
    if instruction.op == "call":
        destination, callee, arguments = operands
        return f"b.emit_call({callee}, {arguments}{f', dst={destination}' if destination != 'None' else ''})"
    if instruction.op in _METHODS:
        return f"b.emit_{instruction.op}({', '.join(operands)})"
    return f"b.emit({', '.join([repr(instruction.op), *operands])})"


def _operand(letter: str, operand: Any, names: _FunctionNames) -> str:
    match letter:
        case "d" if operand < 0:
            return "None"
        case "d" | "r" | "u":
            return f"b.r({operand})"
        case "f":
            return names.callee(operand)
        case "j":
            return f"l{operand}"
        case "p":
            return repr(PRIM_OPERATORS[operand].name)
        case "A":
            return f"[{', '.join(_argument(each, names) for each in operand)}]"
    return repr(operand)


def _argument(argument: Argument, names: _FunctionNames) -> str:
    match argument:
        case ("REGISTER", index):
            return f"b.r({index})"
        case ("CONSTANT", index):
            return f"c{index}"
        case ("FUNCTION", index):
            return names.value(index)
        case ("IMMEDIATE", value):
            return f"b.imm({value})"
        case ("BOOL", value):
            return f"b.bool({bool(value)})"
        case ("CONTEXT", _):
            return "b.ctx"
        case ("NIL", _):
            return "b.nil"
    raise AssertionError(f"unknown argument kind: {argument.kind}")


def _constant(value: Constant) -> str:
    """Return a Python expression for a constant."""
    match value:
        case np.ndarray():
            return _tensor(plain_array(value))
        case Shape():
            return f"vm.Shape({list(value)})"
        case np.dtype():
            return f"np.dtype({value.name!r})"
        case float() if isnan(value):  # a NaN is printed as its bits
            return f'struct.unpack("<d", bytes.fromhex("{struct.pack("<d", value).hex()}"))[0]'
        case float():
            return f'float("{value!r}")' if value in (float("inf"), -float("inf")) else repr(value)
    return repr(value)


def _tensor(array: np.ndarray) -> str:
    dtype = repr(array.dtype.name)
    reshape = "" if array.ndim == 1 else f".reshape({array.shape})"
    if array.dtype == STRINGS:
        return f"np.array({array.reshape(-1).tolist()}, {dtype}){reshape}"
    if array.size <= LITERAL_ELEMENTS and array.dtype.kind in "biuf" and np.isfinite(array).all():
        return f"np.array({array.reshape(-1).tolist()}, {dtype}){reshape}"
    return f"np.frombuffer({_base64(array.tobytes())}, {dtype}){reshape}"


def _base64(content: bytes) -> str:
    """Return a Python expression for bytes.  Its text can be indented, because decoding ignores white space."""
    text = base64.b64encode(content).decode()
    lines = "".join(f"\n{text[start : start + 96]}" for start in range(0, len(text), 96))
    return f'base64.b64decode("""{lines}\n""")'
