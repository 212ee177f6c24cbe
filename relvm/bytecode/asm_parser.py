"""Assembly parser: converts text to a Program.  It is the inverse of relvm/bytecode/asm_printer.py."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from relvm.bytecode.asm_printer import HEADLINE, function_keys
from relvm.bytecode.container import MAJOR, MINOR
from relvm.bytecode.decode import decode
from relvm.bytecode.kernel_program import KernelProgram, decode_kernel
from relvm.bytecode.program import (
    CONTEXT,
    NIL,
    Argument,
    Constant,
    FunctionEntry,
    Instruction,
    NativeCode,
    Program,
    Shape,
    boolean,
    constant,
    function,
    immediate,
    register,
)
from relvm.data_classes import dataclass
from relvm.errors import (
    RelvmFormatError,
    RelvmNameError,
    RelvmSyntaxError,
    RelvmUnsupportedError,
    near_matches,
)
from relvm.numpy_dtypes import DTYPE_NAMES, STRINGS, numpy_dtype, unpack_strings
from relvm.tables import KINDS, OPCODES, PRIM_OPERATORS, numbers

_HEADLINES = [f"relvm executable {MAJOR}.{minor}" for minor in range(MINOR + 1)]
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"(),=\[\]:;]+|[(),=\[\]:"]|;.*')
_ROWS = numbers(PRIM_OPERATORS)
_LETTERS = {row.name: row.operands for row in OPCODES}
_WORDS = {"ctx": CONTEXT, "nil": NIL, "true": boolean(True), "false": boolean(False)}
_INDEXED = {"r": register, "c": constant, "f": function}


class _Line:
    """A line of the text, as a sequence of tokens that the methods consume from left to right."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        matches = [match for match in _TOKEN.finditer(text) if not match[0].startswith(";")]
        self.tokens = [(match[0], match.start() + 1) for match in matches] + [("", len(text) + 1)]
        self.position = 0

    @property
    def peek(self) -> str:
        """The next token, or an empty string at the end of the line."""
        return self.tokens[self.position][0]

    def fail(self, expected: str) -> RelvmSyntaxError:
        token, column = self.tokens[self.position]
        got = repr(token) if token else "the end of the line"
        return RelvmSyntaxError(f"line {self.number}, column {column}: expected {expected}, got {got}")

    def next_token(self) -> str:
        token = self.peek
        self.position += bool(token)
        return token

    def accept(self, token: str) -> bool:
        matches = self.peek == token
        if matches:
            self.next_token()
        return matches

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.fail(repr(token) if token else "the end of the line")

    def one_of(self, names: Any) -> str:
        if self.peek not in names:
            raise self.fail(f"one of {', '.join(names)}")
        return self.next_token()

    def convert(self, expected: str, reader: Callable[[str], Any]) -> Any:
        """Consume the next token, and return it converted with `reader`.

        `reader` raises ValueError or OverflowError if the token is wrong.   expected: a description of the expected
        token, for the error message.
        """
        try:
            value = reader(self.peek)
        except (ValueError, OverflowError):
            raise self.fail(expected) from None
        self.next_token()
        return value

    def integer(self) -> int:
        return self.convert("an integer", int)

    def string(self) -> str:
        return self.convert("a string", _string)

    def name(self) -> str:
        return self.string() if self.peek.startswith('"') else self.convert("a name", _bare_name)

    def index(self, letter: str) -> int:
        """Parse a token that consists of `letter` and an index, such as `c12`, and return the index."""
        return self.convert(f"{letter} and a number", lambda token: _index(token, letter))

    def list(self, opening: str, closing: str, item: Callable[[], Any]) -> list:
        """Parse a comma-separated list between `opening` and `closing`.  A trailing comma is allowed.

        item: a function that parses an item.
        """
        self.expect(opening)
        items = []
        while not self.accept(closing):
            items.append(item())
            if self.peek != closing:
                self.expect(",")
        return items


@dataclass
class _Statement:
    """A statement of the text: a line, and the lines below that belong to it.

    block: the lines below that begin with `|`, without the `|`.
    instructions: if the statement begins a function, the lines of its instructions.
    """

    line: _Line
    block: list[str] = field(default_factory=list)
    instructions: list[_Line] = field(default_factory=list)

    def content(self) -> bytes:
        try:
            return base64.b64decode("".join(self.block), validate=True)
        except ValueError:
            raise RelvmSyntaxError(f"line {self.line.number}: expected base64 in the lines below") from None

    def portable(self) -> Program:
        try:
            return decode(self.content())
        except (RelvmFormatError, RelvmUnsupportedError) as error:
            raise RelvmSyntaxError(
                f"line {self.line.number}: expected an executable in the lines below: {error}"
            ) from None

    def json(self) -> dict[str, Any]:
        try:
            return json.loads("\n".join(self.block))
        except (ValueError, RecursionError) as error:
            raise RelvmSyntaxError(f"line {self.line.number}: expected JSON in the lines below: {error}") from None


def parse_text(text: str) -> Program:
    """Parse a program.  `text` has the form that `Executable.as_text` returns.

    Raises
    ------
    RelvmSyntaxError
        The text is malformed.  The message contains the line, the column, the expected text and the text found.
    RelvmNameError
        An instruction calls a function that the function table in `text` does not contain.
    """
    parts: dict[str, Any] = {}
    constants: list[Constant] = []
    kernels: dict[str, KernelProgram] = {}
    entries: list[tuple[FunctionEntry, list[_Line]]] = []
    for statement in _statements(text):
        line = statement.line
        match line.peek:
            case "native" | "portable" | "source" | "signature" | "debug" as name if name not in parts:
                line.next_token()
                parts[name] = _section(name, statement)
            case "program":
                line.next_token()
                kernel = line.name()
                kernels[kernel] = decode_kernel(statement.content())
            case token if token == f"c{len(constants)}":
                line.next_token()
                constants.append(_constant(statement))
            case token if token == f"f{len(entries)}":
                line.next_token()
                entries.append((_heading(line), statement.instructions))
            case _:
                raise line.fail(
                    f"c{len(constants)}, f{len(entries)}, program, native, portable, source, signature or debug"
                )
        line.expect("")
    indices = _FunctionIndices(function_keys(entry for entry, _ in entries))
    functions = tuple(replace(entry, code=_code(lines, indices)) for entry, lines in entries)
    return Program(functions, tuple(constants), kernels=kernels, **parts)


def parse_code(lines: Iterable[str], functions: Sequence[tuple[bool, str]]) -> tuple[Instruction, ...]:
    """Return the instructions of a function.

    lines: one instruction each, in the form that `instruction_text` prints.
    functions: the keys of the functions in the function table, as `function_keys` returns them.
    """
    numbered = [_Line(number + 1, f"{number}: {line}") for number, line in enumerate(lines)]
    return _code(numbered, _FunctionIndices(functions))


class _FunctionIndices:
    """The positions of functions in the function table.

    keys: the keys of the functions, as `function_keys` returns them.
    """

    def __init__(self, keys: Sequence[tuple[bool, str]]) -> None:
        self.indices = {key: index for index, key in enumerate(keys)}
        self.names = [name for _, name in keys]

    def find(self, name: str, *, is_packed: bool) -> int | None:
        """Return the index of a function, or None if there is none.

        is_packed: whether the function is a packed function.  If False, it is the function `name` that the program
        defines, or else the packed function `name`.
        """
        index = self.indices.get((is_packed, name))
        return self.indices.get((True, name)) if index is None else index


def _statements(text: str) -> list[_Statement]:
    statements: list[_Statement] = []
    lines = text.split("\n")
    if lines[0].rstrip() not in _HEADLINES:
        raise RelvmSyntaxError(f"line 1, column 1: expected {HEADLINE!r}, got {lines[0][:40]!r}")
    for number, content in enumerate(lines[1:], start=2):
        if content.startswith("|") and statements:
            statements[-1].block.append(content[2:])
            continue
        line = _Line(number, content)
        if not line.peek:
            continue
        if content.startswith(" ") and statements:
            statements[-1].instructions.append(line)
        else:
            statements.append(_Statement(line))
    return statements


def _section(name: str, statement: _Statement) -> Any:
    match name:
        case "source":
            return "\n".join(statement.block)
        case "portable":
            return statement.portable()
        case "native":
            line = statement.line
            line.expect("abi")
            abi_version = line.integer()
            line.expect("triple")
            triple = line.string()
            line.expect("cpu")
            native = NativeCode(statement.content(), triple, line.string(), abi_version)
            return replace(native, replaces=line.convert("a digest", _digest)) if line.accept("replaces") else native
    return statement.json()


def _constant(statement: _Statement) -> Constant:
    line = statement.line
    line.expect("=")
    match line.one_of(("tensor", "shape", "dtype", "string", "float", "int")):
        case "shape":
            return Shape(line.list("(", ")", line.integer))
        case "dtype":
            return numpy_dtype(DTYPE_NAMES.index(line.one_of(DTYPE_NAMES)))
        case "string":
            return line.string()
        case "float":
            return line.convert("a float", _float)
        case "int":
            return line.integer()
    dtype = numpy_dtype(DTYPE_NAMES.index(line.one_of(DTYPE_NAMES)))
    shape = line.list("(", ")", line.integer)
    try:
        if dtype.kind not in _READERS:
            line.expect("base64")
        elif not line.accept("base64"):
            expected = "a string" if dtype == STRINGS else "a number"
            elements = line.list("[", "]", lambda: line.convert(expected, _READERS[dtype.kind]))
            with np.errstate(over="ignore"):  # a number that is too large for a float becomes infinite
                return np.array(elements, dtype).reshape(shape)
        if dtype == STRINGS:
            return unpack_strings(statement.content(), tuple(shape))
        return np.frombuffer(statement.content(), dtype).reshape(shape)
    except (ValueError, OverflowError) as error:
        raise RelvmSyntaxError(
            f"line {line.number}: the data does not fit a tensor of dtype {dtype} and shape {tuple(shape)}: {error}"
        ) from None


def _heading(line: _Line) -> FunctionEntry:
    line.expect("=")
    private, impure = line.accept("private"), line.accept("impure")
    kind = line.one_of([row.name for row in KINDS])
    name = line.name()
    parameters = tuple(line.list("(", ")", line.name)) if line.peek == "(" else None
    registers = line.integer() if line.accept("registers") else 0
    symbol = line.name() if line.accept("symbol") else None
    return FunctionEntry(name, kind, parameters, registers, symbol=symbol, private=private, impure=impure)


def _code(lines: list[_Line], indices: _FunctionIndices) -> tuple[Instruction, ...]:
    code = []
    for number, line in enumerate(lines):
        line.expect(str(number))
        line.expect(":")
        op = line.one_of(_LETTERS)
        code.append(Instruction(op, tuple(_operand(letter, line, indices) for letter in _LETTERS[op])))
        line.expect("")
    return tuple(code)


def _operand(letter: str, line: _Line, indices: _FunctionIndices) -> int | tuple[Argument, ...]:
    match letter:
        case "d":
            if line.tokens[line.position + bool(line.peek)][0] != "=":
                return -1
            destination = line.index("r")
            line.expect("=")
            return destination
        case "r" | "u":
            return line.index("r")
        case "p":
            return _ROWS[line.one_of(_ROWS)]
        case "j":
            line.expect("->")
            return line.integer()
        case "A":
            return tuple(line.list("(", ")", lambda: line.convert("an argument", _argument)))
    assert letter == "f"
    is_packed = line.peek == "packed" and line.tokens[line.position + 1][0] not in ("(", "")
    if is_packed:
        line.next_token()
    name = line.name()
    index = indices.find(name, is_packed=is_packed)
    if index is None:
        raise RelvmNameError(f"line {line.number}: no function {name}{near_matches(name, indices.names)}")
    return index


def _argument(token: str) -> Argument:
    if token in _WORDS:
        return _WORDS[token]
    if token[:1] in _INDEXED:
        return _INDEXED[token[0]](_index(token, token[0]))
    return immediate(int(token))


def _index(token: str, letter: str) -> int:
    if not re.fullmatch(letter + "[0-9]+", token):
        raise ValueError
    return int(token[1:])


def _string(token: str) -> str:
    if not token.startswith('"'):
        raise ValueError
    value = json.loads(token)
    value.encode(
        errors="surrogateescape"
    )  # reject lone surrogates, except those that represent bytes that are not UTF-8
    return value


def _bare_name(token: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", token):
        raise ValueError
    return token


def _float(token: str) -> float:
    bits = int(token, 16).to_bytes(8, "little") if token.startswith("0x") else struct.pack("<d", float(token))
    return struct.unpack("<d", bits)[0]


def _digest(token: str) -> bytes:
    digest = bytes.fromhex(token.strip('"'))
    if len(digest) != 32:
        raise ValueError
    return digest


def _bool(token: str) -> bool:
    if token not in ("true", "false"):
        raise ValueError
    return token == "true"


_READERS: dict[str, Callable[[str], Any]] = {"b": _bool, "i": int, "u": int, "f": _float, "O": _string}
