"""Profiles of kernels in bytecode: the count and the time of each instruction, measured in C (csrc/vm/profile.c)."""

from __future__ import annotations

from typing import Any

from relvm._native import lib
from relvm.bytecode.kernel_printer import enclosing_loops, instruction_texts
from relvm.bytecode.kernel_program import KernelProgram
from relvm.data_classes import dataclass
from relvm.display import Displayed, text_table
from relvm.quoting import terminal

_HOT = 0.1  # rows with at least this share of the time are marked


@dataclass(frozen=True)
class InstructionRow:
    """The measurements of one instruction of a kernel.

    Attributes
    ----------
    index
        The index of the instruction in the code of the kernel.
    text
        The instruction as text, as in `relvm show --stage kernels`.
    count
        The number of times that it ran.
    seconds
        The total time of all its runs, without the time of the measurement.
    share
        The part of the kernel's time that this instruction takes, from 0 to 1.
    loops
        The enclosing loops, outermost first.  Each is given by the index of the loop's first instruction.
    """

    index: int
    text: str
    count: int
    seconds: float
    share: float
    loops: tuple[int, ...] = ()


@dataclass(frozen=True, repr=False)
class KernelProfile(Displayed):
    """The profile of the instructions of a kernel.  `str(profile)` is a table of at most 40 instructions.

    Attributes
    ----------
    name
        The name of the kernel.
    rows
        A row for each instruction that ran, in the order of the code.
    """

    name: str
    rows: tuple[InstructionRow, ...]

    @property
    def seconds(self) -> float:
        """The total time of all instructions."""
        return sum(row.seconds for row in self.rows)

    @property
    def hottest(self) -> tuple[InstructionRow, ...]:
        """The rows, sorted by time in descending order."""
        return tuple(sorted(self.rows, key=lambda row: (-row.seconds, row.index)))

    def table(self, limit: int | None = 40) -> str:
        """Return a table of the instructions, in the order of the code and indented by loops.

        An asterisk marks the hottest instruction, and every other instruction that takes at least 10 % of the time.

        Parameters
        ----------
        limit
            The maximum number of instructions in the table, or None for all.  If there are more, the hottest ones are
            shown.
        """
        hottest = self.hottest
        shown = {row.index for row in hottest[:limit]}
        lines = [("", "count", "ms", "share", terminal(self.name))]
        for row in self.rows:
            if row.index in shown:
                mark = "*" if row is hottest[0] or row.share >= _HOT else ""
                text = f"{'  ' * len(row.loops)}{row.index}: {terminal(row.text)}"
                lines.append((mark, str(row.count), f"{row.seconds * 1e3:.4f}", f"{row.share:.1%}", text))
        if remaining := hottest[len(shown) :]:
            seconds, share = sum(row.seconds for row in remaining), sum(row.share for row in remaining)
            text = f"({len(remaining)} more instructions)"
            lines.append(("", str(sum(row.count for row in remaining)), f"{seconds * 1e3:.4f}", f"{share:.1%}", text))
        return "\n".join(text_table(lines, left=(4,)))

    def __str__(self) -> str:
        return self.table()


def read_kernel(name: str, index: int, program: KernelProgram, profile: Any) -> KernelProfile | None:
    """Return the profile of a kernel, or None if none of its instructions ran.

    index: the index of the kernel in the function table.
    profile: the rvm_profile that measured it.
    """
    measured = [(k, lib.rvm_profile_instruction(profile, index, k)) for k in range(len(program.code))]
    measured = [(k, row) for k, row in measured if row.count]
    if not measured:
        return None
    total = sum(row.nanoseconds for _, row in measured)
    texts, loops = instruction_texts(program, name), enclosing_loops(program)
    rows = (
        InstructionRow(
            k, texts[k], row.count, row.nanoseconds / 1e9, row.nanoseconds / total if total else 0.0, loops[k]
        )
        for k, row in measured
    )
    return KernelProfile(name, tuple(rows))
