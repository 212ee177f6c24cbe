"""C code of the operands of routines."""

from __future__ import annotations

from relvm.codegen.c.expression import integer, literal
from relvm.ir.dtypes import F64
from relvm.lir.routine import ConstantItem, ContextPointer, FunctionItem, Immediate, NullHandle, Operand, Register


def operand_text(operand: Operand) -> str:
    """Return the C expression of an operand, an rvm_value.

    The expression uses the registers r, the constant table c and the function table f.
    """
    match operand:
        case Register(index):
            return f"RVM_R({index})"
        case ConstantItem(index):
            return f"c[{index}]"
        case FunctionItem(index):
            return f"f[{index}]"
        case Immediate(bool() as value):
            return f"RVM_BOOL({int(value)})"
        case Immediate(int() as value):
            return f"RVM_INT({integer(value)})"
        case Immediate(value):
            return f"RVM_FLOAT({literal(value, F64)})"
        case ContextPointer():
            return "RVM_CONTEXT(ctx)"
        case NullHandle():
            return "RVM_NIL"
    raise AssertionError(f"cannot translate {operand!r} to C")


def literal_text(operand: Immediate | NullHandle) -> str:
    """Return the C initializer of a constant operand, for a static array of rvm_value."""
    match operand:
        case NullHandle():
            return "{.tag = RVM_TAG_NIL}"
        case Immediate(bool() as value):
            return f"{{.tag = RVM_TAG_BOOL, .as.i = {int(value)}}}"
        case Immediate(int() as value):
            return f"{{.tag = RVM_TAG_INT, .as.i = {integer(value)}}}"
        case Immediate(value):
            return f"{{.tag = RVM_TAG_FLOAT, .as.f = {literal(value, F64)}}}"
    raise AssertionError(f"not a constant: {operand!r}")
