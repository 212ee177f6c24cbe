"""Breakpoints: find the instructions at a location that the user gives, such as a name or a source line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from typing import Any

from relvm.data_classes import dataclass
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


def parse_line_location(place: str) -> tuple[str, int] | None:
    """Parse a source location FILE:LINE or FILE:LINE:COLUMN.  Return the file and the line, or None for other forms."""
    match = _LINE.fullmatch(place)
    return (match[1], int(match[2])) if match else None


def find_places(program: ProgramCode, where: str | int, function: str | None) -> tuple[Place, ...]:
    """Return the instructions at which a breakpoint at the given location stops the run.

    where: a location, in one of the forms that `Debugger.break_at` describes.
    function: the name of the only function in which to search, or None for all functions.

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
        found = _find_line(codes, None, where)
    else:
        found = (
            _find_in_function(program.functions, where)
            or _find_value(program, codes, where)
            or _find_location(codes, where)
        )
        found = found or (_find_in_function(program.kernels, where) if function is None else [])
    if not found:
        raise _unknown_location(program, codes, where)
    return tuple(found)


def _find_in_function(functions: Mapping[str, FunctionCode | KernelCode], where: str) -> list[Place]:
    """Find the instruction that `where` denotes if it is the name of a function or kernel, or NAME:NUMBER.

    NAME is the first instruction of the function, and NAME:5 its instruction 5.  Return an empty list if `functions`
    contains no such function.
    """
    if where in functions:
        return [(functions[where], 0)]
    name, _, number = where.rpartition(":")
    if name not in functions or not re.fullmatch("[0-9]{1,9}", number):
        return []
    code = functions[name]
    if int(number) >= len(code.code):
        raise RelvmIndexError(f"{where}: {name} has only the instructions 0 to {len(code.code) - 1}")
    return [(code, int(number))]


def _find_value(program: ProgramCode, codes: list[FunctionCode], name: str) -> list[Place]:
    """Find the instructions that compute the value `name`.

    If no instruction has a result of that name, return the instructions compiled from the definition of the value.

    codes: the functions in which to search.
    """
    scripted = any(".py:" in place for place in program.values.get(name, ()))  # scripts may reassign names
    for matches in (() if scripted else (name.__eq__,)) + (lambda each: is_version(each, name),):
        found = [place for each, places in program.names.items() if matches(each) for place in places]
        named: list[Place] = [(code, number) for code, number in found if code in codes]
        if named:
            return named
        origins = {place for each, places in program.values.items() if matches(each) for place in places}
        if made := _find_origins(codes, origins.__contains__):
            return made
    return []


def _find_location(codes: list[FunctionCode], where: str) -> list[Place]:
    """Find the instructions at a source location.  where: FILE:LINE, the name of an ONNX node, or another location."""
    line = parse_line_location(where)
    found = _find_line(codes, *line) if line else []
    return found or _find_origins(codes, lambda origin: origin == where or f"node {where!r} " in origin)


def _find_line(codes: list[FunctionCode], file: str | None, line: int) -> list[Place]:
    def matches(origin: str) -> bool:
        place = parse_line_location(origin)
        return place is not None and place[1] == line and file in (None, place[0], PurePath(place[0]).name)

    return _find_origins(codes, matches)


def _find_origins(codes: Iterable[FunctionCode], matches: Callable[[str], bool]) -> list[Place]:
    """Find the instructions with a matching source location.  If consecutive instructions match, return only the first
    of them.

    Instructions that compute no value (`FunctionCode.is_housekeeping`) are ignored.

    matches: a function that takes a source location, and returns whether it matches.
    """
    found: list[Place] = []
    for code in codes:
        inside = False
        for number, origins in enumerate(code.origins):
            if code.is_housekeeping(number):
                continue
            is_match = any(map(matches, origins))
            if is_match and not inside:
                found.append((code, number))
            inside = is_match
    return found


def _unknown_location(program: ProgramCode, codes: list[FunctionCode], where: str | int) -> RelvmNameError:
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
