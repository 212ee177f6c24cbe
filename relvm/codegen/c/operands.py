"""C code of operands."""

from __future__ import annotations

from relvm.lir.routine import ConstantItem, ContextPointer, FunctionItem, Immediate, NullHandle, Operand, Register


def operand_text(operand: Operand) -> str:
    """Return an operand as an rvm_value, over the registers r, the constants c and the functions f."""
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
            return f"RVM_INT({value if value != -(2**63) else 'INT64_MIN'})"
        case Immediate(value):
            return f"RVM_FLOAT({float_text(value)})"
        case ContextPointer():
            return "RVM_CONTEXT(ctx)"
        case NullHandle():
            return "RVM_NIL"
    raise AssertionError(f"no C for {operand!r}")


def float_text(value: float) -> str:
    """Return a double as a C constant, exact except for the bits of NaN."""
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return value.hex()
