"""C code of the operands of routines."""

from __future__ import annotations

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
            return f"RVM_INT({_int_text(value)})"
        case Immediate(value):
            return f"RVM_FLOAT({float_text(value)})"
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
            return f"{{.tag = RVM_TAG_INT, .as.i = {_int_text(value)}}}"
        case Immediate(value):
            return f"{{.tag = RVM_TAG_FLOAT, .as.f = {float_text(value)}}}"
    raise AssertionError(f"not a constant: {operand!r}")


def _int_text(value: int) -> str:
    return str(value) if value != -(2**63) else "INT64_MIN"


def float_text(value: float) -> str:
    """Return a float as a C constant.  It is exact, except for the bits of a NaN."""
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return value.hex()
