"""Errors in a source text, as a range of characters for an editor to underline."""

from __future__ import annotations

import re

from relvm.data_classes import value_record
from relvm.errors import RelvmError
from relvm.frontend.text.lexer import Source, tokenize


@value_record
class Problem:
    """An error in a source text.

    start, end: offsets of the erroneous characters.  Both are 0 if the error has no location in the source text.
    """

    message: str
    start: int
    end: int


def problem_of(error: RelvmError, source: Source) -> Problem:
    """Return the message of an error without its location, and the token at that location.

    source: the text that was parsed.  The location in the error message begins with the name of this source.
    """
    message = str(error).partition("\n")[0]
    found = re.match(rf"{re.escape(source.name)}:(\d+):(\d+)(?:: )?", message)
    if found is None:
        return Problem(message, 0, 0)
    start = min(source.offset(int(found[1]), int(found[2])), len(source.text))
    return Problem(message[found.end() :], start, _end_of_token(source, start))


def _end_of_token(source: Source, start: int) -> int:
    """Return the end of the name that begins at `start`, or of the character there if no name begins there."""
    try:
        names = [token for token in tokenize(source) if token.kind == "name"]
    except RelvmError:
        names = []
    end = next((start + len(name.text) for name in names if name.offset == start), start + 1)
    return min(end, len(source.text))
