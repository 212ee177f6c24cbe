"""The text form of routines, as in golden tests and in the output of `relvm show --stage routine`."""

from __future__ import annotations

from collections.abc import Iterator

from relvm.lir.routine import (
    PREFIX,
    CallStatement,
    ConstantItem,
    ContextPointer,
    FunctionItem,
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
)
from relvm.quoting import terminal, text_string

# The names of the printed forms of calls, by the kind of the callee.
CALL_FORMS = {"packed": "call_packed", "routine": "call_routine", "kernel": "call_cpacked"}


def format_module(module: LirModule) -> str:
    """Return the text of all routines of the module."""
    return "\n\n".join(map(format_routine, module.routines)) + "\n"


def format_routine(routine: Routine) -> str:
    """Return the text of one routine, with indented statements."""
    return "\n".join(line for line, _ in routine_lines(routine))


def routine_lines(routine: Routine) -> Iterator[tuple[str, Statement | None]]:
    """Yield the lines of a routine, each with the statement that begins on the line, or None."""
    params = f"  # r[0..{len(routine.params) - 1}] = {terminal(', '.join(routine.params))}" if routine.params else ""
    yield f"{PREFIX}{terminal(routine.name)}(ctx_ptr, r, c, f):{params}", None
    yield from _block_lines(routine.body, "  ")


def _block_lines(body: tuple[Statement, ...], indent: str) -> Iterator[tuple[str, Statement | None]]:
    if not body:
        yield f"{indent}pass", None
    for statement in body:
        yield indent + _statement(statement), statement
        if isinstance(statement, IfStatement):
            yield from _block_lines(statement.then, indent + "  ")
            yield f"{indent}else:", None
            yield from _block_lines(statement.orelse, indent + "  ")


def _statement(statement: Statement) -> str:
    match statement:
        case CallStatement():
            return _call(statement)
        case TailCallStatement(function, args):
            parts = ", ".join([text_string(function.name), *map(_operand, args)])
            return f"return tail_call({parts})"
        case PrimStatement(row, args, destination):
            return f"anylist_setitem(r, {destination}, {row}({', '.join(map(_operand, args))}))"
        case ResetStatement(register):
            return f"anylist_resetitem(r, {register})"
        case IfStatement(cond):
            return f'if bool(call_packed("vm.builtin.read_if_cond", {_operand(cond)})):'
    raise AssertionError(f"cannot print {statement!r}")


def _call(call: CallStatement) -> str:
    parts = [text_string(call.function.name), *map(_operand, call.args)]
    if call.kernel:
        parts.append("null")
    form = CALL_FORMS[call.function.kind]
    if call.destination is None:
        return f"{form}({', '.join(parts)})"
    return f"anylist_setitem_{form}(r, {call.destination}, {', '.join(parts)})"


def _operand(operand: Operand) -> str:
    match operand:
        case Register(index):
            return f"anylist_getitem(r, {index})"
        case ConstantItem(index):
            return f"anylist_getitem(c, {index})"
        case FunctionItem(index):
            return f"anylist_getitem(f, {index})"
        case Immediate(value):
            return str(value)
        case ContextPointer():
            return "ctx_ptr"
        case NullHandle():
            return "null"
    raise AssertionError(f"cannot print {operand!r}")
