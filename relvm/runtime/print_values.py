"""The default print hook of a machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from relvm.bytecode.program import Shape
from relvm.quoting import terminal_lines

MAX_CHARACTERS = 100_000  # limit on the length of the text of one call
_MAX_NESTED = 50
_BRACKETS: dict[type[Any], tuple[str, str]] = {list: ("[", "]"), tuple: ("(", ")"), Shape: ("Shape(", ")")}


def print_values(*values: Any) -> None:
    """Print values like Python's `print`, but escape control characters in strings and limit the length of the text.

    Without the limit, a program could print terabytes of text with a few values.  Examples are nested lists, each of
    which contains the next list twice, and a tuple that contains the same long string many times.
    """
    remaining = MAX_CHARACTERS
    pieces = []
    for piece in _pieces(values):
        if len(piece) > remaining:
            pieces.append(f"{piece[:remaining]}...")
            break
        pieces.append(piece)
        remaining -= len(piece)
    print("".join(pieces))


def _pieces(values: tuple[Any, ...]) -> Iterator[str]:
    """Yield the pieces of the text of several values, separated by spaces."""
    for k, value in enumerate(values):
        if k:
            yield " "
        if isinstance(value, str):
            yield terminal_lines(value[: MAX_CHARACTERS + 1])
        else:
            yield from _nested(value, 0)


def _nested(value: Any, depth: int) -> Iterator[str]:
    """Yield the pieces of the `repr` of a value that is nested inside `depth` tuples and lists."""
    if isinstance(value, str):
        yield repr(value[: MAX_CHARACTERS + 1])
    elif type(value) not in _BRACKETS:
        yield repr(value)
    else:
        opening, closing = _BRACKETS[type(value)]
        yield opening
        for k, item in enumerate(value):
            if k:
                yield ", "
            if depth == _MAX_NESTED:
                yield "..."
                break
            yield from _nested(item, depth + 1)
        yield f",{closing}" if type(value) is tuple and len(value) == 1 else closing
