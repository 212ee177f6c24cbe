"""C code of scalar routines (relvm/lir/passes/scalar_functions.py): C functions that call each other directly.

There are three C functions for each routine:

- `scalar_NAME` is the computation.
- `call_NAME` is the function that other routines call.  It goes through the function table if an instrument observes
  calls, or if the call could exceed the limits on nested calls or on the C stack.
- The function with the symbol of the routine is for the function table.
"""

from __future__ import annotations

from collections.abc import Mapping

from relvm.codegen.c.expression import CExpression, primary
from relvm.codegen.c.mangling import routine_symbol
from relvm.codegen.c.operands import operand_text
from relvm.codegen.c.scalars import BOXES, CTYPES, FAILURES, FIELDS, has_value, operation, scalar_literal
from relvm.lir.passes.scalar_functions import ScalarRoutine
from relvm.lir.routine import (
    COPY,
    CallStatement,
    FunctionKey,
    IfStatement,
    Immediate,
    Operand,
    PrimStatement,
    Register,
    Statement,
    TailCallStatement,
)
from relvm.quoting import c_comment, c_string


def print_declarations(scalar: ScalarRoutine) -> str:
    """Return the C declarations of `scalar_NAME` and `call_NAME`."""
    symbol, params = routine_symbol(scalar.routine.name), _params(scalar)
    return (
        f"static rvm_status scalar_{symbol}({params});\n"
        f"static __attribute__((unused)) rvm_status call_{symbol}({params});"
    )


def print_scalar_routine(scalar: ScalarRoutine, functions: Mapping[FunctionKey, int], checks: str) -> str:
    """Return the C code of one scalar routine, which consists of three C functions (see the docstring of this module).

    Parameters
    ----------
    functions
        The index of each function of the program in the function table, by key.
    checks
        The C code that checks the parameters of the routine, which are in the C array `r` of registers.
    """
    routine = scalar.routine
    symbol = routine_symbol(routine.name)
    printer = _Printer(scalar, functions)
    body = printer.block(routine.body[scalar.checks :], "  ")
    count = len(routine.params)
    variables = [f"  {CTYPES[dtype]} s{index} = 0;" for index, dtype in sorted(scalar.types.items()) if index >= count]
    function_index, out = functions[routine.key], FIELDS[scalar.result]
    boxed = ", ".join(f"RVM_{BOXES[scalar.types[i]]}(s{i})" for i in range(count))
    arguments = f"(const rvm_value[]){{{boxed}}}" if count else "NULL"
    passed = "".join(f", s{i}" for i in range(count))
    unboxed = "".join(f", r[{i}].as.{FIELDS[scalar.types[i]]}" for i in range(count))
    tag = f"RVM_TAG_{BOXES[scalar.result]}"
    return "\n".join(
        [
            f"/* {c_comment(routine.name)}({c_comment(', '.join(routine.params))}) */",
            f"static rvm_status scalar_{symbol}({_params(scalar)}) {{",
            *variables,
            *(["start:;"] if printer.restarts else []),
            "  RVM_TRY(rvm_scalar_enter(ctx));",
            *body,
            f"  *out = s{count};",
            "  return RVM_OK;",
            "}",
            "",
            f"static rvm_status call_{symbol}({_params(scalar)}) {{",
            "  rvm_value result = RVM_NIL;",
            "  if (rvm_is_slow(ctx)) {",
            f"    RVM_TRY(rvm_scalar_call(ctx, {function_index}, {arguments}, {count}, {tag}, &result));",
            f"    *out = result.as.{out};",
            "    return RVM_OK;",
            "  }",
            "  rvm_head(ctx)->nesting++;",
            f"  rvm_status status = scalar_{symbol}(ctx{passed}, out);",
            "  rvm_head(ctx)->nesting--;",
            "  if (status == RVM_OK) return RVM_OK;",
            f"  RVM_TRY(rvm_scalar_end(ctx, {c_string(routine.name)}, status, {tag}, &result));",
            f"  *out = result.as.{out};",
            "  return RVM_OK;",
            "}",
            "",
            f"rvm_status {symbol}(rvm_machine *ctx, rvm_value *r, const rvm_value *c, const rvm_value *f) {{",
            f"  rvm_value *const failure = r + {count};",
            f"  {CTYPES[scalar.result]} out = 0;",
            "  (void)c, (void)f;",
            checks,
            f"  rvm_status status = scalar_{symbol}(ctx{unboxed}, &out);",
            "  if (status > RVM_OK) return rvm_failed(rvm_scalar_error(ctx), status, failure);",
            f"  if (status == RVM_OK) rvm_put(failure, RVM_{BOXES[scalar.result]}(out));",
            "  return status;",
            "}",
        ]
    )


def _params(scalar: ScalarRoutine) -> str:
    count = len(scalar.routine.params)
    params = (f"{CTYPES[scalar.types[i]]} s{i}" for i in range(count))
    return ", ".join(["rvm_machine *ctx", *params, f"{CTYPES[scalar.result]} *out"])


class _Printer:
    def __init__(self, scalar: ScalarRoutine, functions: Mapping[FunctionKey, int]) -> None:
        self.scalar = scalar
        self.functions = functions
        self.restarts = False  # whether the code contains a jump to its start

    def block(self, body: tuple[Statement, ...], indent: str) -> list[str]:
        return [line for statement in body for line in self.statement(statement, indent)]

    def statement(self, statement: Statement, indent: str) -> list[str]:
        match statement:
            case PrimStatement(row, args, destination):
                operands = list(map(_expression, args))
                line = f"{indent}s{destination} = {operation(row, *operands)};"
                if row not in FAILURES:
                    return [line]
                first, second = (*map(self.boxed, args), "RVM_NIL")[:2]
                fail = f"return rvm_scalar_arithmetic_failed(ctx, RVM_SCALAR_OP_{row}, {first}, {second});"
                return [f"{indent}if (!{has_value(row, *operands)}) {fail}", line]
            case CallStatement(function=function, args=args, destination=destination, kernel=False):
                if function == COPY:
                    return [f"{indent}s{destination} = {_expression(args[0])};"]
                values = "".join(f", {_expression(arg)}" for arg in args)
                return [f"{indent}RVM_TRY(call_{routine_symbol(function.name)}(ctx{values}, &s{destination}));"]
            case TailCallStatement(function=function, args=args):
                return self.tail_call(function, args, indent)
            case IfStatement(cond, then, orelse):
                return [
                    f"{indent}if ({_expression(cond)}) {{",
                    *self.block(then, indent + "  "),
                    f"{indent}}} else {{",
                    *self.block(orelse, indent + "  "),
                    f"{indent}}}",
                ]
        raise AssertionError(f"cannot translate {statement!r} to C")

    def tail_call(self, function: FunctionKey, args: tuple[Operand, ...], indent: str) -> list[str]:
        """Return the lines of a tail call.

        If the routine calls itself, the code jumps to the start of the function.  Otherwise the virtual machine
        performs the tail call.
        """
        function_index = self.functions[function]
        boxed = ", ".join(map(self.boxed, args))
        array = f"(const rvm_value[]){{{boxed}}}" if args else "NULL"
        leave_line = f"return rvm_scalar_tail_call(ctx, {function_index}, {array}, {len(args)});"
        if function != self.scalar.routine.key:
            return [f"{indent}{leave_line}"]
        self.restarts = True
        changed = [(i, arg) for i, arg in enumerate(args) if arg != Register(i)]
        lines = [f"{indent}if (rvm_is_machine_watched(ctx)) {leave_line}", f"{indent}{{"]
        lines += [f"{indent}  const {CTYPES[self.scalar.types[i]]} next{i} = {_expression(arg)};" for i, arg in changed]
        lines += [f"{indent}  s{i} = next{i};" for i, _ in changed]
        return [*lines, f"{indent}}}", f"{indent}goto start;"]

    def boxed(self, operand: Operand) -> str:
        match operand:
            case Register(index):
                return f"RVM_{BOXES[self.scalar.types[index]]}(s{index})"
        return operand_text(operand)


def _expression(operand: Operand) -> CExpression:
    match operand:
        case Register(index):
            return primary(f"s{index}")
        case Immediate(value):
            return scalar_literal(value)
    raise AssertionError(f"cannot translate {operand!r} to a C scalar")
