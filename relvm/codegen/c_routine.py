"""Routines printed as C: one function each, with the native signature of csrc/native.h.

Every statement is one line: a call of a small helper of csrc/driver.h with the operands spelled out.  The compiler has
little to do per statement, so building stays linear and fast in the length of a function, and a reader can follow it
beside the routine's own text.
"""

from __future__ import annotations

from collections.abc import Mapping

from relvm.codegen.c_names import kernel_symbol, routine_symbol
from relvm.lir.routine import (
    CallStatement,
    ConstantItem,
    ContextPointer,
    FunctionItem,
    IfStatement,
    Immediate,
    NullHandle,
    Operand,
    Register,
    ResetStatement,
    Routine,
    Statement,
)


def print_routine(routine: Routine, functions: Mapping[str, int]) -> str:
    """The C text of one routine.

    Parameters
    ----------
    functions
        The place of each function in the function table f.
    """
    lines = [f"/* {routine.name}({', '.join(routine.params)}) */".replace("\n", " ")]
    head = "(rvm_machine *ctx, rvm_value *r, const rvm_value *c, const rvm_value *f)"
    lines += [f"rvm_status {routine_symbol(routine.name)}{head} {{"]
    lines += [f"  rvm_value *const failure = r + {len(routine.params)};", "  (void)c, (void)f;"]
    lines += ["  RVM_TRY(rvm_enter(ctx, failure));"]
    _append(lines, routine.body, "  ", functions)
    lines += ["  return RVM_OK;", "}"]
    return "\n".join(lines)


def _append(lines: list[str], body: tuple[Statement, ...], indent: str, functions: Mapping[str, int]) -> None:
    for statement in body:
        match statement:
            case CallStatement():
                lines.append(indent + _call(statement, functions))
            case ResetStatement(register):
                lines.append(f"{indent}rvm_api->release(&r[{register}]);")
            case IfStatement(cond, then, orelse):
                lines.append(f"{indent}{{")
                lines.append(f"{indent}  int32_t truth;")
                lines.append(f"{indent}  RVM_TRY(rvm_condition({_operand(cond)}, &truth, failure));")
                lines.append(f"{indent}  if (truth) {{")
                _append(lines, then, indent + "    ", functions)
                lines.append(f"{indent}  }} else {{")
                _append(lines, orelse, indent + "    ", functions)
                lines.append(f"{indent}  }}")
                lines.append(f"{indent}}}")


def _call(call: CallStatement, functions: Mapping[str, int]) -> str:
    args = ", ".join(map(_operand, call.args))
    array = f"(const rvm_value[]){{{args}}}" if call.args else "NULL"
    destination = "NULL" if call.destination is None else f"&r[{call.destination}]"
    comment = f"  /* {call.function} */" if not call.comment else f"  /* {call.comment} = {call.function} */"
    comment = comment.replace("*/", "* /", comment.count("*/") - 1)
    if call.kernel:
        return f"RVM_TRY(rvm_kernel({kernel_symbol(call.function)}, {array}, {len(call.args)}, failure));{comment}"
    place = functions[call.function]
    return f"RVM_TRY(rvm_call(ctx, f[{place}], {array}, {len(call.args)}, {destination}, failure));{comment}"


def _operand(operand: Operand) -> str:
    match operand:
        case Register(index):
            return f"r[{index}]"
        case ConstantItem(index):
            return f"c[{index}]"
        case FunctionItem(index):
            return f"f[{index}]"
        case Immediate(bool() as value):
            return f"RVM_BOOL({int(value)})"
        case Immediate(int() as value):
            return f"RVM_INT({value if value != -(2**63) else 'INT64_MIN'})"
        case Immediate(value):
            return f"RVM_FLOAT({_float(value)})"
        case ContextPointer():
            return "RVM_CONTEXT(ctx)"
        case NullHandle():
            return "RVM_NIL"
    raise AssertionError(f"no C for {operand!r}")


def _float(value: float) -> str:
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return value.hex()
