"""Detection of registers that hold only scalars of one type.

Compiled mode keeps them in C variables.
"""

from __future__ import annotations

from collections.abc import Mapping

from relvm.ir.dtypes import DType
from relvm.ir.scalar_ops import DTYPE_OF_LETTER, scalar_dtype
from relvm.lir.routine import (
    COPY,
    CallStatement,
    IfStatement,
    Immediate,
    Operand,
    PrimStatement,
    Register,
    Routine,
    statements_in,
    written_registers,
)
from relvm.tables import PRIM_OPERATORS

_RESULTS = {row.name: DTYPE_OF_LETTER[row.result] for row in PRIM_OPERATORS}


def scalar_registers(routine: Routine, parameters: Mapping[int, DType]) -> dict[int, DType]:
    """Return the type of each register of a routine that holds only scalars of one type: i64, f64 or bool.

    Parameters are among them if they keep the type that the routine checks at its beginning.  The result register is
    not.

    parameters: the types of the parameters that the routine checks.
    """
    writers: dict[int, list[DType | Operand | None]] = {}
    for statement in statements_in(routine.body):
        match statement:
            case PrimStatement(row, _, destination):
                writers.setdefault(destination, []).append(_RESULTS[row])
            case CallStatement(function=function, args=(value,), destination=int(destination)) if function == COPY:
                writers.setdefault(destination, []).append(value)
            case _ if not isinstance(statement, IfStatement):
                for register in written_registers(statement):
                    writers.setdefault(register, []).append(None)
    result = len(routine.params)
    types = dict(parameters)
    for register, found in writers.items():  # a register is written before it is copied
        dtype = next((dtype for writer in found if (dtype := _type(writer, types))), None)
        if register > result and dtype:
            types[register] = dtype
    while wrong := [
        register
        for register, dtype in types.items()
        if any(_type(writer, types) != dtype for writer in writers.get(register, ()))
    ]:
        for register in wrong:
            del types[register]
    return types


def _type(writer: DType | Operand | None, types: Mapping[int, DType]) -> DType | None:
    match writer:
        case DType():
            return writer
        case Register(index):
            return types.get(index)
        case Immediate(value):
            return scalar_dtype(value)
    return None


def object_registers(routine: Routine, scalars: Mapping[int, DType]) -> set[int]:
    """Return the registers of a routine that can hold objects.   scalars: the result of `scalar_registers`."""
    calls = {
        register
        for statement in statements_in(routine.body)
        if not isinstance(statement, PrimStatement | IfStatement)
        for register in written_registers(statement)
    }
    return (calls | set(range(len(routine.params)))) - scalars.keys()
