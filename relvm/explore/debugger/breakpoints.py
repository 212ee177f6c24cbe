"""Breakpoints: find the instructions at a location that the user gives, such as a name or a source line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from relvm.display import Displayed
from relvm.errors import RelvmIndexError, RelvmNameError, known_names, near_matches
from relvm.explore.debugger.debug_info import FunctionCode, ProgramCode, is_version
from relvm.explore.debugger.kernel_code import KernelCode
from relvm.quoting import terminal

Place = tuple[FunctionCode | KernelCode, int]

_LINE = re.compile(r"(.+?):([0-9]{1,9})(?::[0-9]+)?")


@dataclass(frozen=True, repr=False)
class Breakpoint(Displayed):
    """A breakpoint.

    Attributes
    ----------
    number
        Its number, counted from 1 in the order of creation.
    where
        The location as the user gave it.
    places
        The instructions at which the run stops, each as "FUNCTION:NUMBER".
    when
        The condition under which the run stops, or None if it always stops.
    """

    number: int
    where: str
    places: tuple[str, ...]
    when: Callable[[Any], Any] | None = None

    def __str__(self) -> str:
        condition = ", on a condition" if self.when else ""
        return terminal(f"{self.number}: {self.where}, at {', '.join(self.places)}{condition}")


def line_of(place: str) -> tuple[str, int] | None:
    """Return the file and line of a source location FILE:LINE or FILE:LINE:COLUMN, or None if it has another form."""
    match = _LINE.fullmatch(place)
    return (match[1], int(match[2])) if match else None


def resolve(program: ProgramCode, where: str | int, function: str | None) -> tuple[Place, ...]:
    """Return the instructions that `where` denotes, as in Debugger.break_at.

    Raises
    ------
    RelvmNameError
        The function or location does not exist.
    RelvmIndexError
        The function has no such instruction.
    """
    if function is not None and function not in program.functions:
        raise RelvmNameError(f"no function {function}{known_names(function, program.functions)}")
    codes = [program.functions[function]] if function else list(program.functions.values())
    if isinstance(where, int):
        found = _of_line(codes, None, where)
    else:
        found = _of_function(program.functions, where) or _of_value(program, codes, where) or _of_text(codes, where)
        found = found or (_of_function(program.kernels, where) if function is None else [])
    if not found:
        raise _unknown(program, codes, where)
    return tuple(found)


def _of_function(functions: Mapping[str, FunctionCode | KernelCode], where: str) -> list[Place]:
    """Return the instruction that `where` denotes: NAME is the first instruction of a function or kernel, and NAME:5
    its instruction 5.  Return an empty list if there is no function NAME."""
    if where in functions:
        return [(functions[where], 0)]
    name, _, number = where.rpartition(":")
    if name not in functions or not re.fullmatch("[0-9]{1,9}", number):
        return []
    code = functions[name]
    if int(number) >= len(code.code):
        raise RelvmIndexError(f"{where}: {name} has only the instructions 0 to {len(code.code) - 1}")
    return [(code, int(number))]


def _of_value(program: ProgramCode, codes: list[FunctionCode], name: str) -> list[Place]:
    """Return the instructions that compute the value `name`.

    If no instruction has a result of that name, return the instructions compiled from the value's definition.
    """
    scripted = any(".py:" in place for place in program.values.get(name, ()))  # scripts may reassign names
    for is_wanted in (() if scripted else (name.__eq__,)) + (lambda each: is_version(each, name),):
        found = [place for each, places in program.names.items() if is_wanted(each) for place in places]
        named: list[Place] = [(code, number) for code, number in found if code in codes]
        if named:
            return named
        origins = {place for each, places in program.values.items() if is_wanted(each) for place in places}
        if made := _of_origins(codes, origins.__contains__):
            return made
    return []


def _of_text(codes: list[FunctionCode], where: str) -> list[Place]:
    """Return the instructions at a source line FILE:LINE, at an ONNX node, or at another source location."""
    line = line_of(where)
    found = _of_line(codes, *line) if line else []
    return found or _of_origins(codes, lambda origin: origin == where or f"node {where!r} " in origin)


def _of_line(codes: list[FunctionCode], file: str | None, line: int) -> list[Place]:
    def is_there(origin: str) -> bool:
        place = line_of(origin)
        return place is not None and place[1] == line and file in (None, place[0], PurePath(place[0]).name)

    return _of_origins(codes, is_there)


def _of_origins(codes: Iterable[FunctionCode], is_wanted: Callable[[str], bool]) -> list[Place]:
    """Return the first instruction of each run of consecutive instructions with a source location that `is_wanted`
    accepts.

    Instructions that compute no value (`FunctionCode.is_housekeeping`) are ignored.
    """
    found: list[Place] = []
    for code in codes:
        inside = False
        for number, origins in enumerate(code.origins):
            if code.is_housekeeping(number):
                continue
            wanted = any(map(is_wanted, origins))
            if wanted and not inside:
                found.append((code, number))
            inside = wanted
    return found


def _unknown(program: ProgramCode, codes: list[FunctionCode], where: str | int) -> RelvmNameError:
    name = str(where).rpartition(":")[0] or where
    if name in program.native_kernels or where in program.native_kernels:
        return RelvmNameError(
            f"break at {where}: a run cannot stop inside this kernel, because it is native code; build the program with"
            ' target="bytecode", or use gdb'
        )
    known = [*program.functions, *program.kernels, *program.names, *program.values]
    inside = f" in {codes[0].name}" if len(codes) == 1 else ""
    missing = (
        "" if any(any(code.origins) for code in codes) else "; build the program with debug=True to find source lines"
    )
    near = near_matches(where, known) if isinstance(where, str) else ""
    return RelvmNameError(f"break at {where}: no such function, value or source line{inside}{near}{missing}")
