"""The parser of the text form of routines.  It is the inverse of relvm/lir/printer.py."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from relvm.bytecode.encode import PAYLOAD_LIMIT
from relvm.errors import (
    RelvmError,
    RelvmNameError,
    RelvmSyntaxError,
    RelvmVerifyError,
    counted,
    expect_type,
    near_matches,
)
from relvm.kernels.kernel import Kernel
from relvm.lir.printer import CALL_FORMS
from relvm.lir.routine import (
    COPY,
    PREFIX,
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
    TailCallStatement,
    packed,
    routine,
    statements_in,
)
from relvm.tables import BUILTIN_PREFIX, BUILTINS, PRIM_OPERATORS

_KINDS = {form: kind for kind, form in CALL_FORMS.items()}
_OPERAND_COUNTS = {row.name: len(row.operands) for row in PRIM_OPERATORS}
_BUILTIN_NAMES = [BUILTIN_PREFIX + row.name for row in BUILTINS]
_INDENT = 2
_HEAD = re.compile(rf"{PREFIX}(.+)\(ctx_ptr, r, c, f\):(?:  # r\[0\.\.(\d+)\] = (.*))?")
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|-?\d(?:[\w.]|(?<=e)[+-])*|-inf|\S)')
_IF = 'if bool(call_packed("vm.builtin.read_if_cond", '


def parse_routines(
    text: str,
    *,
    constants: Sequence[Any] | None = None,
    functions: Sequence[FunctionKey] | None = None,
    kernels: Iterable[Kernel] | None = None,
    private: Collection[str] = (),
    impure: Collection[str] = (),
) -> LirModule:
    """Parse the text form of routines, as `format_module` prints it, and verify the routines.

    Parameters
    ----------
    text
        The routines.
    constants
        The constant table, to which `anylist_getitem(c, i)` refers (see `LirModule`).  If it is None, the routines can
        use any constants, but then they cannot be built.
    functions
        The function table, to which `anylist_getitem(f, i)` refers.  The default consists of the routines, then of the
        other functions in the order of their first calls.
    kernels
        The kernels that `call_cpacked` calls.  If it is None, the routines can call any kernels, but then they cannot
        be built.
    private, impure
        The names of routines that hosts cannot find, and of routines that can have side effects.

    Raises
    ------
    RelvmTypeError
        `text` is not a string.
    RelvmSyntaxError
        The text is not in the form that `format_module` prints.  The message contains the line and the column.
    RelvmNameError
        A routine, kernel, builtin or scalar operator does not exist.  The message contains the line and the column.
    RelvmVerifyError
        A register is read before it is written, an index is out of range, or a routine does not write its result.  The
        message contains the line and the column.
    """
    expect_type("parse_routines: text", text, str, "a string")
    lines = [_Line(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    parsed: list[tuple[_Line, str, tuple[str, ...], tuple[Statement, ...]]] = []
    places: dict[int, list[_Place]] = {}  # id of a statement -> the places of what it uses
    position = 0
    while position < len(lines):
        head = lines[position]
        name, params = _parse_head(head)
        body, position = _parse_block(lines, position + 1, _INDENT, places)
        parsed.append((head, name, params, body))
    if not parsed:
        raise RelvmSyntaxError("line 1, column 1: expected a routine")
    bodies = [body for _, _, _, body in parsed]
    names = [name for _, name, _, _ in parsed]
    for position, name in enumerate(names):
        if name in names[:position]:
            raise RelvmVerifyError(f"line {parsed[position][0].number}, column 1: routine {name} is defined twice")
    table = _function_table(names, bodies) if functions is None else tuple(functions)
    known_kernels = None if kernels is None else tuple(kernels)
    counts = {routine(name): len(params) for _, name, params, _ in parsed}
    counts |= {FunctionKey("kernel", k.name): len(k.inputs) + len(k.outputs) for k in known_kernels or ()}
    verifier = _Verifier(places, table, counts, constants, knows_kernels=kernels is not None)
    routines = tuple(
        Routine(name, params, verifier.routine(head, params, body), body, name in private, name in impure)
        for head, name, params, body in parsed
    )
    return LirModule(routines, known_kernels or (), table, tuple(constants or ()), {})


class _Line:
    """A line, as a sequence of tokens that the methods consume from left to right."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.text = text.rstrip()
        self.indent = len(text) - len(text.lstrip())
        self.column = self.indent  # of the next character to consume, from 0

    def error(self, error: type[RelvmError], message: str, column: int | None = None) -> RelvmError:
        """Return an error with the line and the column, by default that of the next character, in the message."""
        at = self.column if column is None else column
        return error(f"line {self.number}, column {at + 1}: {message}")

    def peek(self) -> str:
        match = _TOKEN.match(self.text, self.column)
        return match[1] if match else ""

    def next(self) -> str:
        match = _TOKEN.match(self.text, self.column)
        if match is None:
            raise self.error(RelvmSyntaxError, "expected more on this line")
        self.column = match.end()
        return match[1]

    def expect(self, *tokens: str) -> None:
        for token in tokens:
            if self.peek() != token:
                raise self.error(RelvmSyntaxError, f"expected {token!r}, got {self.peek() or 'the end of the line'!r}")
            self.next()

    def expect_end(self) -> None:
        if self.peek():
            raise self.error(RelvmSyntaxError, f"expected the end of the line, got {self.peek()!r}")

    def integer(self) -> int:
        if not re.fullmatch(r"\d+", self.peek()):
            raise self.error(RelvmSyntaxError, f"expected an index, got {self.peek() or 'the end of the line'!r}")
        return int(self.next())

    def string(self) -> str:
        if not self.peek().startswith('"'):
            raise self.error(RelvmSyntaxError, f"expected a string, got {self.peek() or 'the end of the line'!r}")
        try:
            return json.loads(self.peek(), strict=False)
        except ValueError:
            raise self.error(RelvmSyntaxError, f"invalid string {self.peek()}") from None
        finally:
            self.next()


_Place = tuple[_Line, int]


def _parse_head(line: _Line) -> tuple[str, tuple[str, ...]]:
    match = _HEAD.fullmatch(line.text)
    if match is None:
        raise line.error(RelvmSyntaxError, f"expected a routine such as {PREFIX}main(ctx_ptr, r, c, f):", 0)
    name, last, names = match.groups()
    params = tuple(names.split(", ")) if names is not None else ()
    if last is not None and len(params) != int(last) + 1:
        raise line.error(
            RelvmSyntaxError, f"expected {int(last) + 1} parameter names, got {len(params)}", match.start(3)
        )
    return name, params


def _parse_block(
    lines: list[_Line], position: int, indent: int, places: dict[int, list[_Place]]
) -> tuple[tuple[Statement, ...], int]:
    """Parse the statements of a block.  Return them and the position of the line after the block.

    indent: the indentation of the block.   places: a dict to which the places of the statements are added.
    """
    statements: list[Statement] = []
    start = position
    while position < len(lines) and lines[position].indent >= indent and lines[position].text.strip() != "else:":
        line = lines[position]
        if line.indent != indent:
            raise line.error(RelvmSyntaxError, f"expected an indentation of {indent} spaces, got {line.indent}", 0)
        position += 1
        if line.text.strip() == "pass":
            continue
        found: list[_Place] = []
        if line.text.startswith(_IF, indent):
            line.column = indent + len(_IF)
            cond = _operand(line, found)
            line.expect(")", ")", ":")
            line.expect_end()
            then, position = _parse_block(lines, position, indent + _INDENT, places)
            if position == len(lines) or lines[position].text != " " * indent + "else:":
                at = lines[min(position, len(lines) - 1)]
                raise at.error(RelvmSyntaxError, f'expected "else:" with an indentation of {indent} spaces', 0)
            orelse, position = _parse_block(lines, position + 1, indent + _INDENT, places)
            statement: Statement = IfStatement(cond, then, orelse)
        else:
            statement = _statement(line, found)
            line.expect_end()
        places[id(statement)] = found
        statements.append(statement)
    if position == start:
        at = lines[min(position, len(lines) - 1)]
        raise at.error(RelvmSyntaxError, f'expected a statement or "pass" with an indentation of {indent} spaces', 0)
    return tuple(statements), position


def _statement(line: _Line, places: list[_Place]) -> Statement:
    places.append((line, line.column))
    word = line.next()
    if word == "return":
        line.expect("tail_call", "(")
        name = line.string()
        key = packed(name) if name.startswith(BUILTIN_PREFIX) else routine(name)
        return TailCallStatement(key, _arguments(line, places))
    if word in _KINDS:
        line.expect("(")
        return _call(line, word, None, places)
    line_forms = {"anylist_setitem", "anylist_resetitem", *(f"anylist_setitem_{form}" for form in _KINDS)}
    if word not in line_forms:
        raise line.error(RelvmSyntaxError, f"unknown statement {word!r}{near_matches(word, line_forms)}", places[0][1])
    line.expect("(", "r", ",")
    register = line.integer()
    if word == "anylist_resetitem":
        line.expect(")")
        return ResetStatement(register)
    line.expect(",")
    if word != "anylist_setitem":
        return _call(line, word.removeprefix("anylist_setitem_"), register, places)
    column, row = line.column + 1, line.next()
    if row not in _OPERAND_COUNTS:
        message = f"unknown scalar operator {row}{near_matches(row, _OPERAND_COUNTS)}"
        raise line.error(RelvmNameError, message, column)
    line.expect("(")
    args = [] if line.peek() == ")" else [_operand(line, places)]
    while line.peek() == ",":
        line.next()
        args.append(_operand(line, places))
    if len(args) != _OPERAND_COUNTS[row]:
        message = f"{row}: expected {_OPERAND_COUNTS[row]} operands, got {len(args)}"
        raise line.error(RelvmSyntaxError, message, column)
    line.expect(")", ")")
    return PrimStatement(row, tuple(args), register)


def _call(line: _Line, form: str, destination: int | None, places: list[_Place]) -> CallStatement:
    key = FunctionKey(_KINDS[form], line.string())
    args = _arguments(line, places)
    is_direct = key.kind == "kernel" and args[-1:] == (NullHandle(),)
    return CallStatement(key, args[:-1] if is_direct else args, destination, is_direct)


def _arguments(line: _Line, places: list[_Place]) -> tuple[Operand, ...]:
    """Parse the arguments after the name of the callee, and the closing parenthesis."""
    args = []
    while line.peek() == ",":
        line.next()
        args.append(_operand(line, places))
    line.expect(")")
    return tuple(args)


def _operand(line: _Line, places: list[_Place]) -> Operand:
    places.append((line, len(line.text) - len(line.text[line.column :].lstrip())))
    word = line.next()
    match word:
        case "ctx_ptr":
            return ContextPointer()
        case "null":
            return NullHandle()
        case "True" | "False":
            return Immediate(word == "True")
        case "anylist_getitem":
            line.expect("(")
            table = line.next()
            if table not in ("r", "c", "f"):
                raise line.error(RelvmSyntaxError, f"expected r, c or f, got {table!r}", line.column - len(table))
            line.expect(",")
            index = line.integer()
            line.expect(")")
            return Register(index) if table == "r" else ConstantItem(index) if table == "c" else FunctionItem(index)
    try:
        number = int(word) if re.fullmatch(r"-?\d+", word) else float(word)
        if isinstance(number, float) or -(2**63) <= number < 2**63:
            return Immediate(number)
        raise line.error(RelvmSyntaxError, f"{word} does not fit in an int64", places[-1][1])
    except ValueError:
        raise line.error(RelvmSyntaxError, f"expected an operand, got {word!r}", places[-1][1]) from None


def _function_table(names: list[str], bodies: list[tuple[Statement, ...]]) -> tuple[FunctionKey, ...]:
    """Return the default function table: the routines, then the other functions in the order of their first calls."""
    used = dict.fromkeys(map(routine, names))
    for body in bodies:
        for statement in statements_in(body):
            if isinstance(statement, CallStatement | TailCallStatement):
                used.setdefault(statement.function)
            elif isinstance(statement, IfStatement) and not isinstance(statement.cond, Register):
                used.setdefault(COPY)  # bytecode can test only registers
    return tuple(used)


class _Verifier:
    """Checks statements.

    places: a dict from the id of each statement to its places (line and column): that of the statement itself, then
    those of its operands.  For an `if`, there are only those of its operands.
    functions: the function table.
    parameter_counts: the number of parameters of each routine and known kernel.
    constants: the constant table, or None if it is unknown.
    knows_kernels: whether there are no kernels but those in `parameter_counts`.
    """

    def __init__(
        self,
        places: dict[int, list[_Place]],
        functions: tuple[FunctionKey, ...],
        parameter_counts: dict[FunctionKey, int],
        constants: Sequence[Any] | None,
        *,
        knows_kernels: bool,
    ) -> None:
        self.places = places
        self.functions = functions
        self.parameter_counts = parameter_counts
        self.constants = constants
        self.knows_kernels = knows_kernels
        self.registers = 0

    def routine(self, head: _Line, params: tuple[str, ...], body: tuple[Statement, ...]) -> int:
        """Check a routine, and return the number of its registers."""
        self.registers = len(params) + 1
        written = self.block(body, set(range(len(params))))
        if written is not None and len(params) not in written:
            message = f"the routine does not write its result, register {len(params)}, on every path"
            raise head.error(RelvmVerifyError, message, 0)
        return self.registers

    def block(self, body: tuple[Statement, ...], written: set[int]) -> set[int] | None:
        """Check statements.  Return the registers that are written afterwards, or None if a tail call ends the routine.

        written: the registers that are written before.
        """
        for position, statement in enumerate(body):
            places = self.places[id(statement)]
            match statement:
                case IfStatement(cond, then, orelse):
                    self.operand(cond, places[0], written)
                    branches = [self.block(part, set(written)) for part in (then, orelse)]
                    ends = [branch for branch in branches if branch is not None]
                    if ends:
                        written = set.intersection(*ends)
                        continue
                case ResetStatement(register):
                    self.operand(Register(register), places[0], written)
                    written.discard(register)
                    continue
                case _:
                    for operand, place in zip(statement.args, places[1:], strict=False):
                        self.operand(operand, place, written)
                        if isinstance(statement, PrimStatement) and isinstance(operand, ContextPointer | NullHandle):
                            line, column = place
                            raise line.error(RelvmVerifyError, "expected a scalar operand", column)
                    if not isinstance(statement, PrimStatement):
                        self.callee(statement.function, len(statement.args), places[0])
                    if not isinstance(statement, TailCallStatement):
                        if statement.destination is not None:
                            self.register(statement.destination, places[0])
                            written.add(statement.destination)
                        continue
            if position + 1 < len(body):
                line, _ = self.places[id(body[position + 1])][0]
                raise line.error(
                    RelvmVerifyError,
                    "this statement is never executed, because a tail call ends the routine",
                    line.indent,
                )
            return None
        return written

    def callee(self, key: FunctionKey, arg_count: int, place: _Place) -> None:
        line, column = place
        known = [name for kind, name in self.parameter_counts if kind == key.kind]
        is_checked = key.kind == "routine" or (key.kind == "kernel" and self.knows_kernels)
        if key.name.startswith(BUILTIN_PREFIX):
            known, is_checked = _BUILTIN_NAMES, True
        if is_checked and key.name not in known:
            kind = "builtin" if key.kind == "packed" else key.kind
            raise line.error(RelvmNameError, f"no {kind} {key.name}{near_matches(key.name, known)}", column)
        if key not in self.functions:
            raise line.error(RelvmNameError, f"the function table does not contain {key.kind} {key.name}", column)
        expected = self.parameter_counts.get(key, arg_count)
        if arg_count != expected:
            raise line.error(
                RelvmVerifyError, f"{key.name}: expected {counted(expected, 'argument')}, got {arg_count}", column
            )

    def operand(self, operand: Operand, place: _Place, written: set[int]) -> None:
        line, column = place
        match operand:
            case Register(index):
                self.register(index, place)
                if index not in written:
                    raise line.error(RelvmVerifyError, f"register {index} is read before it is written", column)
            case ConstantItem(index) if self.constants is not None and index >= len(self.constants):
                message = (
                    f"constant {index} is out of range; the constant table has {counted(len(self.constants), 'entry')}"
                )
                raise line.error(RelvmVerifyError, message, column)
            case FunctionItem(index) if index >= len(self.functions):
                message = (
                    f"function {index} is out of range; the function table has {counted(len(self.functions), 'entry')}"
                )
                raise line.error(RelvmVerifyError, message, column)

    def register(self, index: int, place: _Place) -> None:
        line, column = place
        if index >= PAYLOAD_LIMIT:
            raise line.error(RelvmVerifyError, f"register {index} is out of range; expected less than 2^28", column)
        self.registers = max(self.registers, index + 1)
