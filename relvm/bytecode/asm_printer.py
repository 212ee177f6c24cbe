"""Assembly printer: converts a Program to text, which relvm/bytecode/asm_parser.py parses.

The instruction set is that of csrc/tables/*.def.  An example:

    c0 = tensor f32 (2,) [1.0, 2.0]                a constant; a long one is `base64` and lines that begin with `|`
    f0 = packed test.add
    f1 = bytecode main(x) registers 3              `private bytecode`: hosts do not find it by name;
                                                   `impure bytecode`: a call can have side effects
      0: call r2 = test.add(r0, c0)                ; the comment in the debug section
      1: call r1 = vm.builtin.copy(r2)
      2: ret r1

Each operand has a letter in opcodes.def, which determines its text:
d: `r4 =` for a destination register, or nothing;
r, u: `r4` for a register;
f: the name of a function, or `packed NAME` for a packed function if the program also defines a function NAME;
p: the name of a scalar operator;
j: `-> 7` for a jump target;
A: a list of arguments in parentheses.
An argument is a register (r0), a constant (c0), a function (f0), an integer, true, false, nil, or the VM (ctx).
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from relvm.bytecode.container import MAJOR, MINOR
from relvm.bytecode.encode import encode
from relvm.bytecode.program import Argument, Constant, FunctionEntry, Instruction, NativeCode, Program, Shape
from relvm.numpy_dtypes import DTYPE_NAMES, STRINGS, dtype_number, plain_array, plain_bytes
from relvm.quoting import terminal, text_string
from relvm.tables import OPCODES, PRIM_OPERATORS

HEADLINE = f"relvm executable {MAJOR}.{MINOR}"
LITERAL_ELEMENTS = 16  # maximum elements of a tensor printed as numbers; larger tensors are printed as base64
_COMMENT_COLUMN = 56
_LETTERS = {row.name: row.operands for row in OPCODES}


def as_text(program: Program) -> str:
    """Return the program as text, which `parse_text` can parse.

    The parsed program is encoded to the same bytes as `program`.
    """
    return "".join(f"{line}\n" for line in _lines(program))


def listing(program: Program) -> str:
    """Return the program as text for people.  Unlike the result of `as_text`, it cannot be parsed.

    Adjacent lines that begin with `|` are replaced by a single line `| ...`.  Such lines contain long tensors, native
    code, a portable program, source or JSON.
    """
    lines: list[str] = []
    for line in _lines(program):
        if not line.startswith("|"):
            lines.append(line)
        elif lines[-1] != "| ...":
            lines.append("| ...")
    return "".join(f"{line}\n" for line in lines)


def _lines(program: Program) -> Iterator[str]:
    yield HEADLINE
    if program.constants:
        yield ""
    for index, value in enumerate(program.constants):
        yield from _constant_lines(f"c{index} = ", value)
    names = function_texts(function_keys(program.functions))
    for index, entry in enumerate(program.functions):
        if index == 0 or entry.code or program.functions[index - 1].code:
            yield ""
        yield f"f{index} = {_heading(entry)}"
        for number, instruction in enumerate(entry.code):
            line = f"  {number}: {instruction_text(instruction, names)}"
            comment = terminal(" ".join(program.comment(entry.name, number).split()))
            yield f"{line.ljust(_COMMENT_COLUMN)}  ; {comment}" if comment else line
    if program.native:
        yield from ("", _native_heading(program.native), *_base64_lines(program.native.library))
    for name, kernel in program.kernels.items():
        yield from ("", f"program {quoted(name)}", *_base64_lines(kernel.encode()))
    if program.portable:
        yield from ("", "portable", *_base64_lines(encode(program.portable)))
    for name, text in (
        ("source", program.source),
        ("signature", _json(program.signature)),
        ("debug", _json(program.debug)),
    ):
        if text:
            yield from ("", name, *(f"| {line}" if line else "|" for line in text.split("\n")))


def quoted(name: str) -> str:
    """Return the text form of a name: the name itself if it is a plain identifier, otherwise a JSON string."""
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", name) else text_string(name)


def function_keys(functions: Iterable[FunctionEntry]) -> list[tuple[bool, str]]:
    """Return the keys of entries of the function table: whether the function is packed, and its name."""
    return [(entry.kind == "packed", entry.name) for entry in functions]


def function_texts(keys: Sequence[tuple[bool, str]]) -> list[str]:
    """Return the text of each function as the operand of an instruction.

    It is the function's name, after `packed` if the function is packed and the program defines a function of that name.

    keys: the keys of the functions in the function table, as `function_keys` returns them.
    """
    defined = {name for is_packed, name in keys if not is_packed}
    return ["packed " * (is_packed and name in defined) + quoted(name) for is_packed, name in keys]


def instruction_text(instruction: Instruction, names: Sequence[str]) -> str:
    """Return the text of one instruction, without its index in the function.

    names: the functions in the function table, in the text form that `function_texts` returns.
    """
    text = instruction.op + " "
    for letter, operand in zip(_LETTERS[instruction.op], instruction.operands, strict=True):
        match letter:
            case "d":
                text += f"r{operand} = " if operand >= 0 else ""
            case "r" | "u":
                text += f"r{operand} "
            case "f":
                text += names[operand]
            case "p":
                text += PRIM_OPERATORS[operand].name
            case "j":
                text += f"-> {operand}"
            case "A":
                text += f"({', '.join(map(_argument_text, operand))})"
    return text.rstrip()


def _argument_text(argument: Argument) -> str:
    match argument:
        case ("REGISTER", index):
            return f"r{index}"
        case ("CONSTANT", index):
            return f"c{index}"
        case ("FUNCTION", index):
            return f"f{index}"
        case ("IMMEDIATE", value):
            return str(value)
        case ("BOOL", value):
            return "true" if value else "false"
        case ("CONTEXT", _):
            return "ctx"
        case ("NIL", _):
            return "nil"
    raise AssertionError(f"unknown argument kind: {argument.kind}")


def _heading(entry: FunctionEntry) -> str:
    parameters = "" if entry.parameters is None else f"({', '.join(map(quoted, entry.parameters))})"
    registers = f" registers {entry.registers}" if entry.registers else ""
    symbol = "" if entry.symbol is None else f" symbol {quoted(entry.symbol)}"
    flags = "private " * entry.private + "impure " * entry.impure
    return f"{flags}{entry.kind} {quoted(entry.name)}{parameters}{registers}{symbol}"


def _native_heading(native: NativeCode) -> str:
    replaces = f" replaces {text_string(native.replaces.hex())}" if any(native.replaces) else ""
    heading = f"native abi {native.abi_version} triple {text_string(native.triple)} cpu {text_string(native.cpu)}"
    return heading + replaces


def _constant_lines(start: str, value: Constant) -> Iterator[str]:
    match value:
        case np.ndarray():
            array = plain_array(value)
            head = f"{start}tensor {DTYPE_NAMES[dtype_number(array.dtype)]} {_tuple_text(array.shape)}"
            if array.dtype == STRINGS and array.size <= LITERAL_ELEMENTS:
                yield f"{head} [{', '.join(map(text_string, array.reshape(-1)))}]"
            elif array.size > LITERAL_ELEMENTS or array.dtype.kind not in "biuf" or (array != array).any():
                yield from (f"{head} base64", *_base64_lines(plain_bytes(array).tobytes()))
            else:
                yield f"{head} [{', '.join(map(_number_text, array.reshape(-1).tolist()))}]"
        case Shape():
            yield f"{start}shape {_tuple_text(value)}"
        case np.dtype():
            yield f"{start}dtype {DTYPE_NAMES[dtype_number(value)]}"
        case str():
            yield f"{start}string {text_string(value)}"
        case float():
            yield f"{start}float {_number_text(value)}"
        case int():
            yield f"{start}int {value}"


def _tuple_text(dims: Sequence[int]) -> str:
    return f"({', '.join(map(str, dims))}{',' if len(dims) == 1 else ''})"


def _number_text(value: float) -> str:
    """Return the text of a number, from which the parser restores the same bits.

    A NaN is printed as its bits in hexadecimal.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case float() if value != value:
            return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016x}"
    return repr(value)


def _base64_lines(content: Any) -> Iterator[str]:
    text = base64.b64encode(content).decode()
    for start in range(0, len(text), 96):
        yield f"| {text[start : start + 96]}"


def _json(value: dict[str, Any]) -> str:
    lines = (f"{json.dumps(key)}: {json.dumps(each, sort_keys=True)}" for key, each in sorted(value.items()))
    return "{" + ",\n ".join(lines) + "}" if value else ""
