"""The text of a routine, as golden tests pin it and `relvm show --stage routine` prints it."""

from __future__ import annotations

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


def format_module(module: LirModule) -> str:
    """Every routine of the module."""
    return "\n\n".join(map(format_routine, module.routines)) + "\n"


def format_routine(routine: Routine) -> str:
    """One routine, its statements indented."""
    lines = [
        f"{PREFIX}{routine.name}(ctx_ptr, r, c, f):  # r[0..{len(routine.params) - 1}] = {', '.join(routine.params)}"
    ]
    if not routine.params:
        lines = [f"{PREFIX}{routine.name}(ctx_ptr, r, c, f):"]
    _append(lines, routine.body, "  ")
    return "\n".join(lines)


def _append(lines: list[str], body: tuple[Statement, ...], indent: str) -> None:
    if not body:
        lines.append(f"{indent}pass")
    for statement in body:
        match statement:
            case CallStatement():
                lines.append(indent + _call(statement))
            case TailCallStatement(function, args):
                parts = ", ".join([f'"{function}"', *map(_operand, args)])
                lines.append(f"{indent}return tail_call({parts})")
            case PrimStatement(row, args, destination):
                lines.append(f"{indent}anylist_setitem(r, {destination}, {row}({', '.join(map(_operand, args))}))")
            case ResetStatement(register):
                lines.append(f"{indent}anylist_resetitem(r, {register})")
            case IfStatement(cond, then, orelse):
                lines.append(f'{indent}if bool(call_packed("vm.builtin.read_if_cond", {_operand(cond)})):')
                _append(lines, then, indent + "  ")
                lines.append(f"{indent}else:")
                _append(lines, orelse, indent + "  ")


def _call(call: CallStatement) -> str:
    parts = [f'"{call.function}"', *map(_operand, call.args)]
    if call.kernel:
        parts.append("null")
    form = "call_cpacked" if call.kernel else "call_packed"
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
    raise AssertionError(f"no text form for {operand!r}")
