"""A check that a lowered module has the functions and constants that its routines use."""

from __future__ import annotations

from typing import Any

from relvm.errors import RelvmNameError, RelvmVerifyError, counted, known_names
from relvm.lir.routine import ConstantItem, FunctionItem, LirModule, operands_of, statements_in, used_functions


def verify_tables(module: LirModule) -> None:
    """Check that the tables of a module are complete.

    Raises
    ------
    RelvmVerifyError
        An index is outside the constant table or the function table.
    RelvmNameError
        The function table lacks a function that a routine calls, or the module lacks a function of the table.
    """
    own = {routine.key for routine in module.routines} | {("kernel", kernel.name) for kernel in module.kernels}
    for key in module.functions:
        if key.kind != "packed" and key not in own:
            raise RelvmNameError(f"no {key.kind} {key.name}{known_names(key.name, [name for _, name in own])}")
    for routine in module.routines:
        for statement in statements_in(routine.body):
            for operand in operands_of(statement):
                match operand:
                    case ConstantItem(index):
                        _expect_entry(routine.name, "constant", index, module.constants)
                    case FunctionItem(index):
                        _expect_entry(routine.name, "function", index, module.functions)
        for key in used_functions(routine, module.functions):
            if key not in module.functions:
                raise RelvmNameError(f"{routine.name}: the function table does not contain {key.kind} {key.name}")


def _expect_entry(routine: str, what: str, index: int, table: tuple[Any, ...]) -> None:
    if index >= len(table):
        message = f"{what} {index} is out of range; the {what} table has {counted(len(table), 'entry')}"
        raise RelvmVerifyError(f"{routine}: {message}")
