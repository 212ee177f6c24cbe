"""Location of errors in a source text, as a range of characters that an editor underlines."""

from __future__ import annotations

import re

from relvm.data_classes import value_record
from relvm.errors import RelvmError
from relvm.frontend.text.lexer import Source, tokenize


@value_record
class Problem:
    """An error in a source text.

    message: the message without the location.
    start, end: the range of characters to underline, as offsets in the text.  Both are 0 if the error has no location
    in the text.
    """

    message: str
    start: int
    end: int


def locate_problem(error: RelvmError, source: Source) -> Problem:
    """Find the characters to underline for an error: those of the token at the error's location.

    source: the text that was parsed.  The location in the error message begins with the name of this source.
    """
    message = str(error).partition("\n")[0]
    found = re.match(rf"{re.escape(source.name)}:(\d+):(\d+)(?:: )?", message)
    if found is None:
        return Problem(message, 0, 0)
    start = min(source.offset(int(found[1]), int(found[2])), len(source.text))
    return Problem(message[found.end() :], start, _end_of_token(source, start))


def _end_of_token(source: Source, start: int) -> int:
    """Return the end of the name that begins at `start`.  If no name begins there, the result is `start + 1`."""
    try:
        names = [token for token in tokenize(source) if token.kind == "name"]
    except RelvmError:
        names = []
    end = next((start + len(name.text) for name in names if name.offset == start), start + 1)
    return min(end, len(source.text))
