"""C code of the operands of routines."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from relvm.codegen.c.scalars import BOXES, FIELDS, scalar_literal
from relvm.ir.dtypes import DType
from relvm.ir.scalar_ops import scalar_dtype
from relvm.lir.routine import ConstantItem, ContextPointer, FunctionItem, Immediate, NullHandle, Operand, Register


def operand_text(operand: Operand, scalars: Mapping[int, DType] = MappingProxyType({})) -> str:
    """Return the C expression of an operand, an rvm_value.

    The expression uses the registers r, the constant table c and the function table f.

    scalars: the types of the registers that are C variables.
    """
    match operand:
        case Register(index):
            return f"RVM_{BOXES[scalars[index]]}(s{index})" if index in scalars else f"RVM_R({index})"
        case ConstantItem(index):
            return f"c[{index}]"
        case FunctionItem(index):
            return f"f[{index}]"
        case Immediate(value):
            return f"RVM_{BOXES[scalar_dtype(value)]}({scalar_literal(value)})"
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
        case Immediate(value):
            dtype = scalar_dtype(value)
            return f"{{.tag = RVM_TAG_{BOXES[dtype]}, .as.{FIELDS[dtype]} = {scalar_literal(value)}}}"
    raise AssertionError(f"not a constant: {operand!r}")
