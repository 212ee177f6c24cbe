"""Routines printed as C: one function each, with the native signature of csrc/native.h.

Every statement is one line: a call of a small helper of csrc/driver.h with the operands spelled out.  The compiler has
little to do per statement, so building stays linear and fast in the length of a function, and a reader can follow it
beside the routine's own text.
"""

from __future__ import annotations

from collections.abc import Mapping

from relvm.codegen.c_names import kernel_symbol, routine_symbol
from relvm.lir.routine import (
    INVOKES,
    CallStatement,
    ConstantItem,
    ContextPointer,
    FunctionItem,
    IfStatement,
    Immediate,
    NullHandle,
    Operand,
    PrimStatement,
    Register,
    ResetStatement,
    Routine,
    Statement,
    TailCallStatement,
)

# A C compiler's time grows faster than a function's length: a longer block is printed as functions of this many
# statements, which is possible because all values are in the registers.
PART_STATEMENTS = 200

_PARAMETERS = "(rvm_machine *ctx, rvm_value *r, const rvm_value *c, const rvm_value *f)"


def print_routine(routine: Routine, functions: Mapping[str, int]) -> str:
    """The C text of one routine.

    Parameters
    ----------
    functions
        The place of each function in the function table f.
    """
    printer = _Printer(routine, functions)
    body = printer.block(routine.body, "  ")
    comment = f"/* {routine.name}({', '.join(routine.params)}) */".replace("\n", " ")
    start = ["start:;"] if printer.restarts else []
    body = [*start, "  RVM_TRY(rvm_enter(ctx, failure));", *body]
    function = printer.function("rvm_status", routine_symbol(routine.name), body)
    return "\n".join([comment, *printer.parts, *function])


class _Printer:
    """Prints the statements of one routine; collects the functions that long blocks became."""

    def __init__(self, routine: Routine, functions: Mapping[str, int]) -> None:
        self.routine = routine
        self.symbol = routine_symbol(routine.name)
        self.split = _is_split(routine.body)
        self.restarts = False  # whether something jumps to the start
        self.result = len(routine.params)
        self.functions = functions
        self.parts: list[str] = []
        self.part_count = 0

    def function(self, head: str, name: str, body: list[str]) -> list[str]:
        opening = [f"  rvm_value *const failure = r + {self.result};", "  (void)c, (void)f;"]
        return [f"{head} {name}{_PARAMETERS} {{", *opening, *body, "  return RVM_OK;", "}"]

    def block(self, body: tuple[Statement, ...], indent: str) -> list[str]:
        """The lines of a block; calls of its parts where it is long."""
        if len(body) <= PART_STATEMENTS:
            return [line for statement in body for line in self.statement(statement, indent)]
        lines = []
        for start in range(0, len(body), PART_STATEMENTS):
            part = self.block(body[start : start + PART_STATEMENTS], "  ")
            name = f"part{self.part_count}_of_{self.symbol}"
            self.part_count += 1
            self.parts += self.function("static __attribute__((noinline)) rvm_status", name, part)
            lines.append(f"{indent}RVM_TRY({name}(ctx, r, c, f));")
        return lines

    def statement(self, statement: Statement, indent: str) -> list[str]:
        match statement:
            case CallStatement():
                return [indent + _call(statement, self.functions)]
            case TailCallStatement():
                return self.tail_call(statement, indent)
            case PrimStatement(row, args, destination, comment):
                first, second = (*map(_operand, args), "RVM_NIL")[:2]
                comment = f"  /* {_safe(comment)} */" if comment else ""
                return [f"{indent}RVM_TRY(rvm_set_{row}({first}, {second}, &r[{destination}], failure));{comment}"]
            case ResetStatement(register):
                return [f"{indent}rvm_api->release(&r[{register}]);"]
            case IfStatement(cond, then, orelse):
                return [
                    f"{indent}{{",
                    f"{indent}  int32_t truth;",
                    f"{indent}  RVM_TRY(rvm_condition({_operand(cond)}, &truth, failure));",
                    f"{indent}  if (truth) {{",
                    *self.block(then, indent + "    "),
                    f"{indent}  }} else {{",
                    *self.block(orelse, indent + "    "),
                    f"{indent}  }}",
                    f"{indent}}}",
                ]
        raise AssertionError(f"no C for {statement!r}")

    def tail_call(self, call: TailCallStatement, indent: str) -> list[str]:
        """A jump to the start where the routine calls itself and is one C function, else what the machine jumps by."""
        callee, args = f"f[{self.functions.get(call.function)}]", call.args
        if call.function in INVOKES:
            callee, args = _operand(call.args[1]), call.args[2:]
        leave = f"return rvm_api->tail_call(ctx, {callee}, {_array(args)}, {len(args)}, failure);"
        comment = f"  /* {_safe(call.function)} */"
        if call.function != self.routine.name or self.split:
            return [f"{indent}{leave}{comment}"]
        self.restarts = True
        restart = f"rvm_restart(r, {self.routine.registers}, {_array(args)}, {len(args)});"
        return [f"{indent}if (rvm_is_watched(ctx)) {leave}", f"{indent}{restart}{comment}", f"{indent}goto start;"]


def _is_split(body: tuple[Statement, ...]) -> bool:
    """Whether some block is printed as several functions."""
    if len(body) > PART_STATEMENTS:
        return True
    return any(isinstance(s, IfStatement) and (_is_split(s.then) or _is_split(s.orelse)) for s in body)


def _array(args: tuple[Operand, ...]) -> str:
    return f"(const rvm_value[]){{{', '.join(map(_operand, args))}}}" if args else "NULL"


def _safe(text: str) -> str:
    """Text for a comment."""
    return text.replace("*/", "* /").replace("\n", " ")


def _call(call: CallStatement, functions: Mapping[str, int]) -> str:
    array = _array(call.args)
    destination = "NULL" if call.destination is None else f"&r[{call.destination}]"
    text = call.function if not call.comment else f"{call.comment} = {call.function}"
    comment = f"  /* {_safe(text)} */"
    place = functions[call.function]
    if call.kernel:
        kernel = kernel_symbol(call.function)
        return f"RVM_TRY(rvm_kernel(ctx, f[{place}], {kernel}, {array}, {len(call.args)}, failure));{comment}"
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
