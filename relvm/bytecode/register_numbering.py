"""Register numbering: assignment of consecutive numbers to the registers of a handwritten function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from relvm.bytecode.program import Instruction, register
from relvm.tables import OPCODES

_LETTERS = {row.name: row.operands for row in OPCODES}


def register_order(code: Sequence[Instruction], parameter_count: int) -> list[int]:
    """Return the registers that `code` uses, in the order in which they are renumbered.

    The parameters come first, then the register of the first `ret`, then the others in order of first use.
    """
    results = (instruction.operands[0] for instruction in code if instruction.op == "ret")
    used = (index for instruction in code for index in _used_registers(instruction))
    return list(dict.fromkeys([*range(parameter_count), *list(results)[:1], *used]))


def renumber(instruction: Instruction, numbers: dict[int, int]) -> Instruction:
    """Return the instruction with registers renumbered.   numbers: a dict from each register to its new number."""
    pairs = zip(_LETTERS[instruction.op], instruction.operands, strict=True)
    return Instruction(instruction.op, tuple(_renumber_operand(letter, operand, numbers) for letter, operand in pairs))


def _used_registers(instruction: Instruction) -> Iterator[int]:
    for letter, operand in zip(_LETTERS[instruction.op], instruction.operands, strict=True):
        match letter:
            case "d" | "r" | "u" if operand >= 0:
                yield operand
            case "A":
                yield from (each.payload for each in operand if each.kind == "REGISTER")


def _renumber_operand(letter: str, operand: Any, numbers: dict[int, int]) -> Any:
    match letter:
        case "d" | "r" | "u":
            return numbers.get(operand, operand)  # -1, for no destination, is unchanged
        case "A":
            return tuple(register(numbers[each.payload]) if each.kind == "REGISTER" else each for each in operand)
    return operand
