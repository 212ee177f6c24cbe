"""C code of routines: one function for each routine, with the native signature of csrc/codegen/native.h.

Every statement becomes one line: a call of a small helper function in csrc/codegen/native_function.h.  The time to
compile such code is linear in the length of a function.  A reader can compare the code with the text of the routine
line by line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, repeat
from types import MappingProxyType

from relvm.codegen.c.expression import CExpression, primary
from relvm.codegen.c.mangling import kernel_symbol, routine_symbol
from relvm.codegen.c.operands import literal_text, operand_text
from relvm.codegen.c.scalars import CTYPES, FAILURES, FIELDS, operation, scalar_literal
from relvm.data_classes import value_record
from relvm.ir.dtypes import DType
from relvm.lir.passes.scalar_registers import object_registers, scalar_registers
from relvm.lir.routine import (
    INVOKES,
    CallStatement,
    ConstantItem,
    ContextPointer,
    FunctionItem,
    FunctionKey,
    IfStatement,
    Immediate,
    Operand,
    PrimStatement,
    Register,
    ResetStatement,
    Routine,
    Statement,
    TailCallStatement,
    always_tail_calls,
    blocks_of,
    builtin,
    operands_of,
    statements_in,
)
from relvm.quoting import c_comment
from relvm.tables import BUILTINS

# The compile time of a C function grows faster than linearly with its length.  Therefore, a block with more statements
# than this is split into several functions.  This is possible because all values are in the registers.
PART_STATEMENTS = 200
_MAX_RESETS = 16  # maximum number of registers that are released one by one at the end of a call
_MAX_ARRAY = 32  # maximum number of arguments that are passed as a C array; gcc takes quadratic time for long ones
_MAX_INLINED = 8  # maximum number of statements of a routine that is inlined

# The names of builtins that call no other functions, so that generated code can call them directly.
_DIRECT = {builtin(row.name): row.name for row in BUILTINS if row.decoded not in ("INVOKE", "HOST")}

# The kinds of operands in csrc/codegen/native_function.h.
_REGISTER, _CONSTANT, _FUNCTION, _LITERAL, _CONTEXT = range(5)

_PARAMETERS = "(rvm_machine *ctx, rvm_value *r, const rvm_value *c, const rvm_value *f)"


@value_record
class Reports:
    """The reports of a routine's C code to the virtual machine.

    positions: the indices of the bytecode instructions that correspond to the statements of the routine
    (Bytecode.statement_positions).
    located: the instructions that report a failure, with their source locations.  If it is None, the code is for
    debugging: all instructions report a failure, and each instruction is also reported before it runs.
    """

    positions: Sequence[int]
    located: Mapping[int, tuple[str, ...]] | None


_SILENT = Reports((), {})


def print_prototype(routine: Routine) -> str:
    """Return the declaration of the function that `print_routine` defines."""
    return f"rvm_status {routine_symbol(routine.name)}{_PARAMETERS};"


def print_apply_prototype(routine: Routine) -> str:
    """Return the declaration of `apply_NAME`, the C function through which other C code calls a routine directly."""
    return f"{_apply_head(routine)};"


def _apply_head(routine: Routine) -> str:
    params = "".join(f", rvm_value a{i}" for i in range(len(routine.params)))
    return (
        f"static __attribute__((noinline, unused)) rvm_status apply_{routine_symbol(routine.name)}("
        f"rvm_machine *ctx{params}, rvm_value *destination, rvm_value *failure)"
    )


def print_apply(routine: Routine, functions: Mapping[FunctionKey, int], *, is_scalar: bool) -> str:
    """Return the C code of `apply_NAME`, the function through which other C code calls a routine directly.

    `apply_NAME` allocates the registers of the routine, copies the arguments to them, and runs the routine.  In the C
    file, its code must come after the code of the routine.

    Parameters
    ----------
    functions
        The index of each function in the function table, by key.
    is_scalar
        Whether the routine is printed by relvm/codegen/c/scalar_function.py.
    """
    symbol, count, registers = routine_symbol(routine.name), len(routine.params), routine.registers
    array = f"(const rvm_value[]){{{', '.join(f'a{i}' for i in range(count))}}}" if count else "NULL"
    return "\n".join(
        [
            f"{_apply_head(routine)} {{",
            f"  const rvm_value callee = rvm_head(ctx)->function_values[{functions[routine.key]}];",
            f"  rvm_value *window = rvm_open(ctx, {registers});",
            f"  if (!window) return rvm_call(ctx, callee, {array}, {count}, destination, failure);",
            *(f"  rvm_pass(&window[{i}], a{i});" for i in range(count)),
            "  rvm_status status;",
            f"  RVM_RUN(ctx, {'body_' if _is_small(routine) and not is_scalar else ''}{symbol}, window, status);",
            "  if (status != RVM_OK)",
            "    return rvm_close_other(ctx, callee.as.function, window, status, destination, failure);",
            *_release_registers(routine),
            f"  rvm_close(ctx, window, {count}, destination);",
            "  return RVM_OK;",
            "}",
        ]
    )


def _release_registers(routine: Routine) -> list[str]:
    """Return C statements that release all registers except the result register, which follows the parameters."""
    count, registers = len(routine.params), routine.registers
    written = object_registers(routine, {}) - {count}
    if len(written) > _MAX_RESETS:
        return [
            f"  rvm_reset_all(window, {count});",
            f"  rvm_reset_all(window + {count + 1}, {registers - count - 1});",
        ]
    return [f"  rvm_reset(&window[{i}]);" for i in sorted(written)]


def print_routine(
    routine: Routine,
    functions: Mapping[FunctionKey, int],
    routines: Mapping[FunctionKey, Routine],
    reports: Reports = _SILENT,
    parameters: Mapping[int, DType] = MappingProxyType({}),
    *,
    releases_early: bool = False,
) -> str:
    """Return the C code of one routine.

    Parameters
    ----------
    functions
        The index of each function in the function table f, by key.
    routines
        The routines in the same C file, by key.
    reports
        What the code reports to the virtual machine, by default nothing.
    parameters
        The types of the parameters that the routine checks to be scalars.
    releases_early
        Whether a call releases registers that the routine does not use afterwards before the callee runs, so that the
        callee can update arguments in place.
    """
    printer = _Printer(routine, functions, routines, reports, parameters, releases_early)
    body = printer.block(routine.body, "  ")
    if not always_tail_calls(routine.body):
        body += printer.last_report("  ")
    comment = f"/* {c_comment(routine.name)}({c_comment(', '.join(routine.params))}) */"
    start = ["start:;"] if printer.restarts else []
    body = [*printer.variables(), *start, "  RVM_TRY(rvm_enter(ctx, failure));", *body]
    symbol = routine_symbol(routine.name)
    if not _is_small(routine):
        return "\n".join([comment, *printer.parts, *printer.function("rvm_status", symbol, body)])
    head = "static inline __attribute__((always_inline)) rvm_status"
    return "\n".join(
        [
            comment,
            *printer.function(head, f"body_{symbol}", body),
            f"rvm_status {symbol}{_PARAMETERS} {{",
            f"  return body_{symbol}(ctx, r, c, f);",
            "}",
        ]
    )


def _is_small(routine: Routine) -> bool:
    """Return whether the routine is small enough to be inlined into its callers."""
    return len(list(islice(statements_in(routine.body), _MAX_INLINED + 1))) <= _MAX_INLINED


class _Printer:
    """Printer of one routine, including the functions into which its long blocks are split."""

    def __init__(
        self,
        routine: Routine,
        functions: Mapping[FunctionKey, int],
        routines: Mapping[FunctionKey, Routine],
        reports: Reports,
        parameters: Mapping[int, DType],
        releases_early: bool,
    ) -> None:
        self.routine = routine
        self.positions = iter(reports.positions) if reports.positions else repeat(-1)
        self.located = reports.located
        self.routines = routines
        self.symbol = routine_symbol(routine.name)
        self.split = _has_long_block(routine.body)
        # The types of registers that hold only scalars.  Those behind the result register are C variables.  A debugger
        # reads the registers, and so do the functions into which a routine is split.
        keeps = reports.located is not None and not self.split
        self.scalars = scalar_registers(routine, parameters) if keeps else {}
        for statement in statements_in(routine.body):
            if len(operands_of(statement)) > _MAX_ARRAY:  # the operands are described as registers
                for operand in operands_of(statement):
                    self.scalars.pop(getattr(operand, "index", -1), None)
        self.locals = {index: dtype for index, dtype in self.scalars.items() if index > len(routine.params)}
        self.restarts = False  # whether the code contains a jump to its start
        self.result = len(routine.params)
        self.functions = functions
        # Whether calls release registers early, and the registers that are released after each call, by its id.
        self.releases_early = releases_early and reports.located is not None
        self.dead: dict[int, tuple[int, ...]] = {}
        self.parts: list[str] = []
        self.part_count = 0

    def variables(self) -> list[str]:
        """Return the declarations of the C variables in which the routine keeps scalars."""
        return [f"  {CTYPES[dtype]} s{index} = 0;" for index, dtype in sorted(self.locals.items())]

    def operand(self, operand: Operand) -> str:
        """Return the C expression of an operand as an rvm_value."""
        return operand_text(operand, self.locals)

    def number(self, operand: Operand) -> CExpression | None:
        """Return the C expression of an operand as a number, or None if its type is not known."""
        match operand:
            case Register(index) if index in self.scalars:
                in_memory = f"r[{index}].as.{FIELDS[self.scalars[index]]}"
                return primary(f"s{index}" if index in self.locals else in_memory)
            case Immediate(value):
                return scalar_literal(value)
        return None

    def arithmetic(self, statement: PrimStatement, instruction: int | None) -> str:
        """Return the line of a scalar operator."""
        row, destination = statement.row, statement.destination
        comment = f"  /* {c_comment(statement.comment)} */" if statement.comment else ""
        numbers = [number for arg in statement.args if (number := self.number(arg)) is not None]
        if destination in self.locals and len(numbers) == len(statement.args) and row not in FAILURES:
            return f"s{destination} = {operation(row, *numbers)};{comment}"
        first, second = (*map(self.operand, statement.args), "RVM_NIL")[:2]
        if destination not in self.locals:
            line = f"RVM_TRY(rvm_set_{row}({first}, {second}, &r[{destination}], failure));{comment}"
            return _report_failure_at(instruction, line)
        line = _report_failure_at(instruction, f"RVM_TRY(rvm_set_{row}({first}, {second}, &number, failure));")
        result = f"s{destination} = number.as.{FIELDS[self.locals[destination]]};"
        return f"{{ rvm_value number = RVM_NIL; {line} {result} }}{comment}"

    def copy(self, call: CallStatement) -> str | None:
        """Return the line of a copy to a register that is a C variable, or None for other calls."""
        if call.destination not in self.locals:
            return None
        comment = f"  /* {c_comment(call.comment)} */" if call.comment else ""
        return f"s{call.destination} = {self.number(call.args[0])};{comment}"

    def function(self, head: str, name: str, body: list[str]) -> list[str]:
        opening = [f"  rvm_value *const failure = r + {self.result};", "  (void)c, (void)f;"]
        return [f"{head} {name}{_PARAMETERS} {{", *opening, *body, "  return RVM_OK;", "}"]

    def block(self, body: tuple[Statement, ...], indent: str) -> list[str]:
        """Return the lines of a block.  A long block is split into functions, and the lines call these functions."""
        if self.releases_early:
            for statement, dead in zip(body, _resets_after(body), strict=True):
                self.dead[id(statement)] = tuple(each for each in dead if each not in self.locals)
        if len(body) <= PART_STATEMENTS:
            return [line for statement in body for line in self.statement_lines(statement, indent)]
        lines = []
        for start in range(0, len(body), PART_STATEMENTS):
            part = [
                line
                for statement in body[start : start + PART_STATEMENTS]
                for line in self.statement_lines(statement, "  ")
            ]
            name = f"part{self.part_count}_of_{self.symbol}"
            self.part_count += 1
            self.parts += self.function("static __attribute__((noinline)) rvm_status", name, part)
            lines.append(f"{indent}RVM_TRY({name}(ctx, r, c, f));")
        return lines

    def statement_lines(self, statement: Statement, indent: str) -> list[str]:
        """Return the lines of a statement, which also report the statement to the virtual machine (`Reports`)."""
        instruction = next(self.positions)
        if self.located is None:
            return [self.report_line(instruction, indent), *self.statement(statement, instruction, indent)]
        return self.statement(statement, instruction if instruction in self.located else None, indent)

    def report_line(self, instruction: int, indent: str) -> str:
        function = self.functions[self.routine.key]
        return f"{indent}RVM_TRY_AT({instruction}, rvm_step(ctx, r, {function}, {instruction}, failure));"

    def last_report(self, indent: str) -> list[str]:
        """Return the line that reports to the virtual machine the jump or return at the end of a block.

        If the code is not for debugging, return an empty list.
        """
        instruction = next(self.positions)
        return [self.report_line(instruction, indent)] if self.located is None else []

    def statement(self, statement: Statement, instruction: int | None, indent: str) -> list[str]:
        match statement:
            case CallStatement():
                dead = self.dead.get(id(statement), ())
                line = self.copy(statement) or _call(statement, self.functions, self.routines, self.locals, dead)
                return [indent + _report_failure_at(instruction, line)]
            case TailCallStatement():
                return self.tail_call(statement, indent)
            case PrimStatement():
                return [indent + self.arithmetic(statement, instruction)]
            case ResetStatement(register):
                return [] if register in self.locals else [f"{indent}rvm_reset(&r[{register}]);"]
            case IfStatement(cond, then, orelse):
                condition = _report_failure_at(
                    instruction, f"RVM_TRY(rvm_condition({self.operand(cond)}, &truth, failure));"
                )
                return [
                    f"{indent}{{",
                    f"{indent}  int32_t truth;",
                    f"{indent}  {condition}",
                    f"{indent}  if (truth) {{",
                    *self.block(then, indent + "    "),
                    *([] if always_tail_calls(then) else self.last_report(indent + "    ")),
                    f"{indent}  }} else {{",
                    *self.block(orelse, indent + "    "),
                    f"{indent}  }}",
                    f"{indent}}}",
                ]
        raise AssertionError(f"cannot translate {statement!r} to C")

    def tail_call(self, call: TailCallStatement, indent: str) -> list[str]:
        """Return the lines of a tail call.

        If the routine calls itself and is printed as a single C function, the code jumps to the start of the function.
        Otherwise the virtual machine performs the tail call.
        """
        callee, args = f"f[{self.functions.get(call.function)}]", call.args
        if call.function in INVOKES:
            callee, args = self.operand(call.args[1]), call.args[2:]
        array = _array(args, self.locals)
        leave_line = f"return rvm_api->tail_call(ctx, {callee}, {array}, {len(args)}, failure);"
        if len(args) > _MAX_ARRAY:
            leave_line = (
                f"{{ {_tables(args)} return rvm_tail_call_many(ctx, {callee}, &tables, words, {len(args)}, failure); }}"
            )
        comment = f"  /* {c_comment(call.function.name)} */"
        if call.function != self.routine.key or self.split:
            return [f"{indent}{leave_line}{comment}"]
        self.restarts = True
        return [
            f"{indent}if (rvm_is_machine_watched(ctx)) {leave_line}",
            f"{indent}{{{comment}",
            *(f"{indent}  {line}" for line in self.assign_parameters(args)),
            f"{indent}}}",
            f"{indent}goto start;",
        ]

    def assign_parameters(self, args: tuple[Operand, ...]) -> list[str]:
        """Return C statements that assign `args` to the parameters, for a tail call of the routine to itself.

        If the same register is passed several times, the first assignment moves its value, and the others add a
        reference to the value.
        """
        changed = [(i, arg) for i, arg in enumerate(args) if arg != Register(i)]
        used = {arg.index for arg in args if isinstance(arg, Register)}  # indices of registers that are arguments
        moved = {i for i, arg in enumerate(args) if arg == Register(i)} | self.scalars.keys()
        lines = []
        for i, arg in changed:
            lines.append(f"const rvm_value next{i} = {self.operand(arg)};")
            if isinstance(arg, Register) and arg.index not in moved:
                moved.add(arg.index)
            elif self.number(arg) is None:
                lines.append(f"rvm_retain(next{i});")
        lines += [f"rvm_reset(&r[{i}]);" for i, _ in changed if i not in used and i not in self.scalars]
        released = sorted(each for each in object_registers(self.routine, self.scalars) if each > self.result)
        lines += [f"r[{index}].tag = RVM_TAG_NIL;" for index in released if index in used]
        lines += [f"rvm_move(&r[{i}], &next{i});" for i, _ in changed]
        if len(released) <= _MAX_RESETS:
            lines += [f"rvm_reset(&r[{index}]);" for index in released if index not in used]
        else:
            first = self.result + 1
            lines.append(f"rvm_reset_all(r + {first}, {self.routine.registers - first});")
        return lines


def _has_long_block(body: tuple[Statement, ...]) -> bool:
    """Return whether `body`, or a block nested in it, is so long that it is split into several C functions."""
    return len(body) > PART_STATEMENTS or any(_has_long_block(block) for each in body for block in blocks_of(each))


def _resets_after(body: tuple[Statement, ...]) -> list[tuple[int, ...]]:
    """Return, for each statement of a block, the registers that the statements directly after it release."""
    found: list[tuple[int, ...]] = []  # in reverse order
    following: tuple[int, ...] = ()
    for statement in reversed(body):
        found.append(following)
        following = (statement.register, *following) if isinstance(statement, ResetStatement) else ()
    return found[::-1]


def _report_failure_at(instruction: int | None, line: str) -> str:
    """Return `line`, changed so that a failure in it reports the failed instruction to the virtual machine.

    line: a line of C that begins with RVM_TRY.
    instruction: the index of an instruction, or None to return `line` unchanged.
    """
    return line if instruction is None else line.replace("RVM_TRY(", f"RVM_TRY_AT({instruction}, ", 1)


def _array(args: tuple[Operand, ...], scalars: Mapping[int, DType]) -> str:
    return f"(const rvm_value[]){{{', '.join(operand_text(arg, scalars) for arg in args)}}}" if args else "NULL"


def _tables(args: tuple[Operand, ...]) -> str:
    """Return the declarations of the C variables `words` and `tables`, which describe the arguments of a large call."""
    words: list[int] = []
    literals: list[str] = []
    for arg in args:
        match arg:
            case Register(index):
                words.append(8 * index + _REGISTER)
            case ConstantItem(index):
                words.append(8 * index + _CONSTANT)
            case FunctionItem(index):
                words.append(8 * index + _FUNCTION)
            case ContextPointer():
                words.append(_CONTEXT)
            case _:
                words.append(8 * len(literals) + _LITERAL)
                literals.append(literal_text(arg))
    table = f"static const rvm_value literals[] = {{{', '.join(literals)}}}; " if literals else ""
    return (
        f"static const int32_t words[] = {{{', '.join(map(str, words))}}}; {table}"
        f"const rvm_operand_tables tables = {{r, c, f, {'literals' if literals else 'NULL'}}};"
    )


def print_checks(statements: tuple[Statement, ...], functions: Mapping[FunctionKey, int]) -> str:
    """Return the C code of `statements`, the checks of parameters at the beginning of a routine."""
    return "\n".join(f"  {_call(each, functions, {}, {})}" for each in statements if isinstance(each, CallStatement))


def _call(
    call: CallStatement,
    functions: Mapping[FunctionKey, int],
    routines: Mapping[FunctionKey, Routine],
    scalars: Mapping[int, DType],
    dead: tuple[int, ...] = (),
) -> str:
    """Return the C code of a call.

    functions: the index of each function in the function table, by key.
    routines: the routines in the same C file, by key, which are called directly.
    scalars: the types of the registers that are C variables.
    dead: the registers to release before the callee runs.
    """
    array, count = _array(call.args, scalars), len(call.args)
    destination = "NULL" if call.destination is None else f"&r[{call.destination}]"
    name = call.function.name
    text = name if not call.comment else f"{call.comment} = {name}"
    comment = f"  /* {c_comment(text)} */"
    callee = f"f[{functions[call.function]}]"
    calls_routine = call.function in routines or (call.function in INVOKES and count >= 2)
    given = declared = ""
    if calls_routine and dead:
        given = f"&(const rvm_dead_registers){{r, dead, {len(dead)}}}"
        declared = f"static const int32_t dead[] = {{{', '.join(map(str, dead))}}}; "
    if count > _MAX_ARRAY:
        called = f"rvm_call_many(ctx, {callee}, &tables, words, {count}, {given or 'NULL'}, {destination}, failure)"
        return f"{{ {_tables(call.args)} {declared}RVM_TRY({called}); }}{comment}"
    if given:
        called = f"rvm_call_last(ctx, {callee}, {array}, {count}, {given}, {destination}, failure)"
        return f"{{ {declared}RVM_TRY({called}); }}{comment}"
    if call.kernel:
        kernel = kernel_symbol(name)
        return f"RVM_TRY(rvm_kernel(ctx, {callee}, {kernel}, {array}, {count}, {destination}, failure));{comment}"
    args = ", ".join(operand_text(arg, scalars) for arg in call.args)
    if call.function in routines:
        passed = f"{args}, " if args else ""
        return f"RVM_TRY(apply_{routine_symbol(name)}(ctx, {passed}{destination}, failure));{comment}"
    if call.function in INVOKES and count >= 2:
        return f"RVM_TRY(rvm_invoke(ctx, {callee}, {array}, {count}, NULL, {destination}, failure));{comment}"
    row = _DIRECT.get(call.function, "")
    match row, call.args:
        case "copy", (_,) if call.destination is not None:
            return f"RVM_TRY(rvm_copy(ctx, {callee}, {args}, {destination}, failure));{comment}"
        case "check_prim_value_info", (_, _, _):
            return f"RVM_TRY(rvm_check_scalar(ctx, {callee}, {args}, failure));{comment}"
        case "check_tensor_info", (_, _, _, _):
            return f"RVM_TRY(rvm_check_tensor(ctx, {callee}, {args}, failure));{comment}"
        case "tuple_getitem", (_, _) if call.destination is not None:
            return f"RVM_TRY(rvm_item(ctx, {callee}, {args}, {destination}, failure));{comment}"
    if row:
        number = f"RVM_BUILTIN_{row}"
        return f"RVM_TRY(rvm_builtin(ctx, {callee}, {number}, {array}, {count}, {destination}, failure));{comment}"
    return f"RVM_TRY(rvm_call(ctx, {callee}, {array}, {count}, {destination}, failure));{comment}"
