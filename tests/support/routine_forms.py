"""Routines of a program that differ only in numbers, so that compiling one of them tests all.

Compiled mode prints each statement of a routine independently, and the numbers in a statement do not affect the rest.
In a module of hundreds of functions, most functions have the same statements as another one.  They need not be
compiled.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from relvm.bytecode.program import Instruction
from relvm.runtime.executable import Executable
from relvm.tables import OPCODES

_LETTERS = {row.name: row.operands for row in OPCODES}


def first_of_each_form(executable: Executable) -> list[str]:
    """Return the first function of each form.  executable: in bytecode."""
    program = executable.program
    names = [re.sub(r"_\d+$", "", entry.name) for entry in program.functions]  # kernels may be numbered
    firsts: dict[tuple, str] = {}
    for entry in program.functions:
        if entry.kind == "bytecode":
            form = tuple(_form(instruction, names) for instruction in entry.code)
            firsts.setdefault((len(entry.parameters or ()), form), entry.name)
    return list(firsts.values())


def _form(instruction: Instruction, names: Sequence[str]) -> tuple:
    """Return the form of an instruction: without numbers of registers, constants and instructions, and literals."""
    parts = [instruction.op]
    for letter, operand in zip(_LETTERS[instruction.op], instruction.operands, strict=True):
        match letter:
            case "f":
                parts.append(names[operand])
            case "p":
                parts.append(operand)
            case "d":
                parts.append(operand < 0)
            case "A":
                parts.append(tuple(argument.kind for argument in operand))
    return tuple(parts)
