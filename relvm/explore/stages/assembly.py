"""The assembly code of kernels, grouped by the lines of C that it is compiled from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from relvm.codegen.c.kernel import print_kernel
from relvm.codegen.c.mangling import kernel_symbol
from relvm.codegen.c.module import print_c
from relvm.compiler.toolchain import UNIT_FILE, kernel_assembly
from relvm.data_classes import dataclass
from relvm.explore.stages.view import Line
from relvm.lir.routine import LirModule

_FILE = re.compile(r"\s*\.file\s+(\d+)\s.*\"(?:.*/)?" + re.escape(UNIT_FILE) + r'"')
_LOCATION = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)")
_FUNCTION = re.compile(r"([A-Za-z_][\w.]*):")
_LABEL = re.compile(r"(\.?[A-Za-z_$][\w.$]*):")
_DIRECTIVE = re.compile(r"\s*\.")
_INSTRUCTION = re.compile(r"\s+[A-Za-z]")
# Directives after which the labels before them do not label instructions.
_DATA = re.compile(
    r"\s*\.(section|text|data|size|set|byte|short|value|hword|long|word|quad|xword|zero|ascii|string|octa)\b"
)


@dataclass
class _Function:
    """The assembly code of a C function.

    lines: its labels and instructions, each with the number of its line in the stage of C, or None.
    """

    lines: list[tuple[str, int | None]] = field(default_factory=list)

    @property
    def first(self) -> int | None:
        """The number of the first line of C, or None if the function does not belong to a kernel."""
        return min((number for _, number in self.lines if number is not None), default=None)


def assembly_lines(lir: LirModule, c_lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the assembly code of the kernels.

    A comment with the line of C is before each group of instructions.  Instructions have the source locations of their
    line of C.  The code of inline functions of relvm's headers belongs to the line that calls them.

    c_lines: the lines of C of all kernels.

    Raises
    ------
    RelvmToolchainError
        There is no C compiler, or it failed.
    """
    texts = print_c(lir, routines=()).kernels
    starts = _kernel_starts(lir)
    functions: list[_Function] = []
    for text, assembly in zip(texts, kernel_assembly(texts), strict=True):
        functions += _functions(assembly, _stage_lines(lir, text, starts))
    shown = [each for each in functions if each.first is not None]
    for place, function in enumerate(sorted(shown, key=lambda each: each.first or 0)):
        if place:
            yield Line("")
        yield from _function_lines(function, c_lines)


def _kernel_starts(lir: LirModule) -> dict[str, int]:
    """Return the number of the first line of each kernel in the stage of C, in which an empty line follows a kernel."""
    starts, at = {}, 0
    for kernel in lir.kernels:
        starts[kernel.name] = at
        at += print_kernel(kernel, kernel_symbol(kernel.name)).count("\n") + 2
    return starts


def _stage_lines(lir: LirModule, text: str, starts: Mapping[str, int]) -> dict[int, int]:
    """Return a dict from line numbers of a translation unit, from 1, to line numbers of the stage `c`, from 0.

    The dict contains the lines of kernels.

    text: the C code of the translation unit.
    starts: for each kernel, the number of its first line in the stage `c`.
    """
    found = {}
    for kernel in lir.kernels:
        printed = print_kernel(kernel, kernel_symbol(kernel.name))
        offset = text.find(printed)
        if offset < 0:  # the kernel is in another unit
            continue
        first = text.count("\n", 0, offset) + 1
        for line in range(printed.count("\n") + 1):
            found[first + line] = starts[kernel.name] + line
    return found


def _functions(assembly: str, stage_lines: Mapping[int, int]) -> list[_Function]:
    """Return the functions in the output of the C compiler, without directives and labels that nothing uses."""
    functions: list[_Function] = []
    files: set[str] = set()
    labels: list[str] = []
    current: int | None = None
    for line in assembly.split("\n"):
        if found := _FILE.match(line):
            files.add(found[1])
        elif found := _LOCATION.match(line):
            if found[1] in files:
                current = stage_lines.get(int(found[2]), current)
        elif found := _FUNCTION.match(line):
            labels, current = [found[0]], None
            functions.append(_Function())
        elif found := _LABEL.match(line):
            labels.append(found[0])
        elif _DATA.match(line):
            labels = []
        elif _INSTRUCTION.match(line) and not _DIRECTIVE.match(line) and functions:
            functions[-1].lines += [(label, current) for label in labels]
            functions[-1].lines.append(("  " + " ".join(line.split()), current))
            labels = []
    return functions


def _function_lines(function: _Function, c_lines: Sequence[Line]) -> Iterator[Line]:
    code = "\n".join(text for text, _ in function.lines if text.startswith(" "))
    used = set(re.findall(r"\.[A-Za-z_$][\w.$]*", code))
    shown = None
    for text, number in function.lines:
        is_local = text.startswith(".")
        if is_local and text[:-1] not in used:
            continue
        is_function = not is_local and not text.startswith(" ")
        source = c_lines[number] if number is not None else Line("")
        if number is not None and number != shown and not is_function:
            yield Line(f"  # c:{number + 1}: {source.text.strip()}", source.origins)
            shown = number
        yield Line(text, source.origins)
