"""C code of unboxed scalars: their types, literals and operators."""

from __future__ import annotations

from relvm.codegen.c.expression import CExpression, call, integer, literal
from relvm.ir.dtypes import BOOL, F64, I64
from relvm.ir.scalar_ops import Scalar, scalar_dtype
from relvm.tables import PRIM_OPERATORS

CTYPES = {I64: "int64_t", F64: "double", BOOL: "int64_t"}  # the C type of a variable
BOXES = {I64: "INT", F64: "FLOAT", BOOL: "BOOL"}  # RVM_INT(x) makes an rvm_value of x, whose tag is RVM_TAG_INT
FIELDS = {I64: "i", F64: "f", BOOL: "i"}  # the member of rvm_value.as that contains the number
# An operator that is not defined for all operands -> its error message.
FAILURES = {row.name: row.fails for row in PRIM_OPERATORS if row.fails}


def scalar_literal(value: Scalar) -> CExpression:
    """Return a Python scalar as a C constant of type `CTYPES[scalar_dtype(value)]`."""
    return literal(value, scalar_dtype(value))


def operation(row: str, *operands: CExpression) -> CExpression:
    """Return the call of a scalar operator.   row: the name of a row in csrc/tables/scalar_operators.def."""
    return call(f"rvm_scalar_op_{row}_value", *(*operands, integer(0))[:2])


def has_value(row: str, *operands: CExpression) -> CExpression:
    """Return the condition that a scalar operator is defined for its operands.   row: a key of FAILURES."""
    return call(f"rvm_scalar_op_{row}_has_value", *(*operands, integer(0))[:2])
