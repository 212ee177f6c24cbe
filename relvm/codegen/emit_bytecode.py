"""Bytecode emission: converts routines to instructions.

A structured `if` becomes jumps.  Every other statement becomes one instruction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relvm.bytecode import program
from relvm.bytecode.encode import PAYLOAD_LIMIT
from relvm.bytecode.program import Argument, Instruction
from relvm.data_classes import value_record
from relvm.ir.dtypes import DType
from relvm.lir.routine import (
    COPY,
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
    always_tail_calls,
)
from relvm.tables import PRIM_OPERATORS, numbers

_ROWS = numbers(PRIM_OPERATORS)


@value_record
class Bytecode:
    """The bytecode of routines, as returned by print_bytecode.

    All fields but `constants` are dicts with the name of the routine as the key.

    code: the instructions.
    comments: for each instruction, the name of the IR value that it computes.
    origins: for each instruction, its source locations.
    statement_positions: the indices of the instructions that correspond to the statements of the routine's C code, in
    the order of these statements.  For an `if`, they are those of the conditional jump, the first branch, the jump at
    its end, and the second branch.  The last item is the return instruction.  If all paths through a branch or the
    routine end with tail calls, there is no such jump or return.
    registers: the number of registers.  If an `if` has a constant condition, this includes a spare register, because a
    conditional jump can test only a register.
    constants: the constants of the module, then constants that only instructions need.
    """

    code: dict[str, tuple[Instruction, ...]]
    comments: dict[str, list[str]]
    origins: dict[str, list[tuple[str, ...]]]
    statement_positions: dict[str, list[int]]
    registers: dict[str, int]
    constants: tuple[Any, ...]


def print_bytecode(module: LirModule, routines: Iterable[Routine] | None = None, *, debug: bool = False) -> Bytecode:
    """Return the bytecode of the given routines of the module, or of all routines if `routines` is None.

    debug: whether the code is for a debugger.  If not, jumps to a return are replaced by returns.
    """
    constants = list(constant_values(module))
    extra_constants: dict[Any, int] = {}
    code, comments, origins, statement_positions, registers = {}, {}, {}, {}, {}
    functions = {key: i for i, key in enumerate(module.functions)}
    for routine in module.routines if routines is None else routines:
        printer = _Printer(functions, constants, extra_constants, routine)
        printer.block(routine.body)
        if not always_tail_calls(routine.body):
            ret = printer.emit(program.ret(len(routine.params)), origins=routine.result_origins)
            printer.statement_positions.append(ret)
        if not debug:
            printer.shorten_jumps()
        code[routine.name] = tuple(printer.instructions)
        comments[routine.name], origins[routine.name] = printer.comments, printer.origins
        statement_positions[routine.name], registers[routine.name] = printer.statement_positions, printer.registers
    return Bytecode(code, comments, origins, statement_positions, registers, tuple(constants))


def constant_values(module: LirModule) -> tuple[Any, ...]:
    """Return the module's constants, converted to the types that an executable stores."""

    def convert(value: Any) -> Any:
        match value:
            case DType():
                return value.numpy
            case tuple():
                return program.Shape(value)
        return value

    return tuple(map(convert, module.constants))


class _Printer:
    def __init__(
        self, functions: dict[FunctionKey, int], constants: list, extra_constants: dict[Any, int], routine: Routine
    ) -> None:
        self.functions = functions
        self.constants = constants
        self.extra_constants = extra_constants
        self.spare = routine.registers
        self.registers = routine.registers
        self.instructions: list[Instruction] = []
        self.comments: list[str] = []
        self.origins: list[tuple[str, ...]] = []
        self.statement_positions: list[int] = []

    def emit(self, instruction: Instruction, comment: str = "", origins: tuple[str, ...] = ()) -> int:
        self.instructions.append(instruction)
        self.comments.append(comment)
        self.origins.append(origins)
        return len(self.instructions) - 1

    def block(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            if not isinstance(statement, IfStatement):
                self.statement_positions.append(len(self.instructions))
            match statement:
                case CallStatement(function, args, destination, _, comment):
                    target = -1 if destination is None else destination
                    self.emit(
                        program.call(target, self.functions[function], *map(self.argument, args)),
                        comment,
                        statement.origins,
                    )
                case TailCallStatement(function, args):
                    call = program.tail_call(self.functions[function], *map(self.argument, args))
                    self.emit(call, origins=statement.origins)
                case PrimStatement(row, args, destination, comment):
                    self.emit(
                        program.prim(destination, _ROWS[row], *map(self.argument, args)), comment, statement.origins
                    )
                case ResetStatement(register):
                    self.emit(program.reset(register), origins=statement.origins)
                case IfStatement():
                    self.emit_if(statement)

    def emit_if(self, statement: IfStatement) -> None:
        """Emit an `if`.

        A conditional jump skips the first branch if the condition is false.  At the end of the first branch, a jump
        skips the second branch.
        """
        condition_register = self.condition_register(statement.cond)
        test = self.emit(program.unless(condition_register, 0), origins=statement.origins)
        self.statement_positions.append(test)
        self.block(statement.then)
        leave_index = None
        if not always_tail_calls(statement.then):
            leave_index = self.emit(program.goto(0))
            self.statement_positions.append(leave_index)
        self.instructions[test] = program.unless(condition_register, len(self.instructions))
        self.block(statement.orelse)
        if leave_index is not None:
            self.instructions[leave_index] = program.goto(len(self.instructions))

    def shorten_jumps(self) -> None:
        """Replace each jump to a return instruction by a return instruction."""
        for index, instruction in enumerate(self.instructions):
            if instruction.op == "goto" and self.instructions[instruction.operands[0]].op == "ret":
                self.instructions[index] = self.instructions[instruction.operands[0]]

    def condition_register(self, cond: Operand) -> int:
        """Return the register that contains the condition `cond`.

        If `cond` is constant, emit a copy of it to a spare register first, because jumps can test only registers.
        """
        if isinstance(cond, Register):
            return cond.index
        self.registers = self.spare + 1
        copy = program.call(self.spare, self.functions[COPY], self.argument(cond))
        self.emit(copy)
        return self.spare

    def argument(self, operand: Operand) -> Argument:
        match operand:
            case Register(index):
                return program.register(index)
            case ConstantItem(index):
                return program.constant(index)
            case FunctionItem(index):
                return program.function(index)
            case Immediate(bool() as value):
                return program.boolean(value)
            case Immediate(int() as value) if -PAYLOAD_LIMIT <= value < PAYLOAD_LIMIT:
                return program.immediate(value)
            case Immediate(value):
                return program.constant(self.constant(value))
            case ContextPointer():
                return program.CONTEXT
            case NullHandle():
                return program.NIL
        raise AssertionError(f"cannot encode the argument {operand!r}")

    def constant(self, value: int | float) -> int:
        """Return the index of `value` in the constant table, after adding it if necessary.

        value: a number that does not fit in the argument word of an instruction.
        """
        key = (type(value), value.hex() if isinstance(value, float) else value)
        if key not in self.extra_constants:
            self.extra_constants[key] = len(self.constants)
            self.constants.append(value)
        return self.extra_constants[key]
