"""Reference implementations of the string operators, for single strings.

They use the methods of Python's str if these have the same results as the runtime.  Otherwise, they implement the same
algorithm as the C code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from relvm.ir.dtypes import F32, DType
from relvm.tables import PATTERNS

_FLOAT = r"\s*[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:inf|infinity|nan))\s*"
_INTEGER = r"\s*[+-]?\d+\s*"


def map_elements(function: Callable[[Any], Any], x: np.ndarray, dtype: Any) -> np.ndarray:
    """Apply `function` to each element of x, and return the results as an array of dtype `dtype`."""
    result = np.empty(x.shape, dtype)
    result.reshape(-1)[:] = [function(text) for text in x.reshape(-1)]
    return result


@cache
def _letters(case: str) -> dict[int, int]:
    from relvm.tables import LETTERS  # a long table, which few models need

    return {
        point: row.mapped + point - row.first
        for row in LETTERS
        if row.case == case
        for point in range(row.first, row.last + 1, row.step)
    }


def convert_case(text: str, *, upper: bool) -> str:
    """Convert each letter to upper or lower case, as defined in csrc/tables/unicode_case.def."""
    return text.translate(_letters("upper" if upper else "lower"))


def split(text: str, delimiter: str, max_splits: int) -> list[str]:
    """Split a text at each delimiter, or at white space if the delimiter is empty.

    max_splits: the maximum number of splits, or -1 for no limit.
    """
    return text.split(delimiter or None, max_splits)


def parse_number(text: str, dtype: DType) -> int | float | None:
    """Parse `text` as a number of dtype `dtype`: an integer dtype, f32 or f64.  Return None if it is not such a
    number."""
    if not re.fullmatch(_FLOAT if dtype.is_float else _INTEGER, text, re.ASCII):
        return None
    if dtype.is_float:
        return float(np.float32(text.strip())) if dtype == F32 else float(text)
    value, (low, high) = int(text), dtype.limits
    return value if low <= value <= high else None


def format_number(value: np.generic) -> str:
    """Format a NumPy number."""
    if not isinstance(value, np.floating) or not np.isfinite(value):
        return str(value)
    if value == 0 or 1e-4 <= abs(float(value)) < 1e16:
        return np.format_float_positional(value, unique=True, trim="0")
    return np.format_float_scientific(value, unique=True, trim="-", exp_digits=2)


_CODES = {row.name: row.number for row in PATTERNS}
SET, RANGE, SPLIT, JUMP, ANCHOR, MATCH = (_CODES[name] for name in ("SET", "RANGE", "SPLIT", "JUMP", "ANCHOR", "MATCH"))


def longest_match(program: list[list[int]], text: str, start: int = 0) -> int:
    """Return the end of the longest match in `text` that begins at `start`, or -1 if there is no match.

    program: a compiled pattern (csrc/tables/regex_opcodes.def).
    """
    points = [None, *map(ord, text), None]
    found, now = -1, _reachable(program, {0}, points[start], points[start + 1])
    for end in range(start, len(text) + 1):
        if any(program[i][0] == MATCH for i in now):
            found = end
        point = points[end + 1]
        if point is None or not now:
            break
        next_instructions = {i + program[i][1] + 1 for i in now if program[i][0] == SET and _is_in(program, i, point)}
        now = _reachable(program, next_instructions, point, points[end + 2])
    return found


def tokens(program: list[list[int]], text: str) -> list[str]:
    """Return the nonempty matches of `program`, a compiled pattern, in a text, in order.

    Each match is the longest one at its start.
    """
    found, at = [], 0
    while at < len(text):
        end = longest_match(program, text, at)
        if end > at:
            found.append(text[at:end])
        at = max(end, at + 1)
    return found


def _is_in(program: list[list[int]], place: int, point: int) -> bool:
    _, count, other = program[place]
    return any(low <= point <= high for _, low, high in program[place + 1 : place + 1 + count]) != bool(other)


def _reachable(program: list[list[int]], starts: set[int], before: int | None, after: int | None) -> set[int]:
    """Return the indices of the instructions that are reachable from `starts` without consuming a character.

    before: the character before the current position, or None at the start of the text.
    after: the character after the current position, or None at the end of the text.
    """
    reached, waiting = set(starts), list(starts)
    while waiting:
        place = waiting.pop()
        leads: tuple[int, ...] = ()
        match program[place]:
            case [code, to, other] if code in (JUMP, SPLIT):
                leads = (to, other) if code == SPLIT else (to,)
            case [code, what, _] if code == ANCHOR and _anchor_holds(what, before, after):
                leads = (place + 1,)
        for lead in leads:
            if lead not in reached:
                reached.add(lead)
                waiting.append(lead)
    return reached


def _anchor_holds(what: int, before: int | None, behind: int | None) -> bool:
    newline = ord("\n")
    edge = _is_word(before) != _is_word(behind)
    return (before is None, behind is None, before in (None, newline), behind in (None, newline), edge, not edge)[what]


def _is_word(point: int | None) -> bool:
    return point is not None and point < 128 and (chr(point).isalnum() or chr(point) == "_")
