"""Tokens of the text form, and errors with a position in the source."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple

from relvm.errors import RelvmError, RelvmSyntaxError, shortened

DEEPEST_NESTING = 150
_SHOWN_AROUND = 150  # maximum number of characters shown on each side of an error

_SPACE = re.compile(r"(?:\s+|#[^\n]*)*")
TOKEN = re.compile(
    r"""(?P<name>[^\W\d]\w*)
      | (?P<float>\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+))
      | (?P<int>\d+)
      | (?P<string>"(?:[^"\\\n]++|\\.)*+")
      | (?P<item>\.\d{1,9}\b)
      | (?P<mark>->|=>|//|\.\.\.|==|!=|<=|>=|<<|>>|[()\[\]{},:;=.+\-*/%@<>&|^~])
      | (?P<end>\Z)
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """A token.

    kind: the name of the group in the regular expression TOKEN that matches the token, such as "name" or "int".
    offset: its position in the source, in characters.
    is_first_in_line: whether it is the first token of its line.
    """

    kind: str
    text: str
    offset: int
    is_first_in_line: bool

    def __str__(self) -> str:
        if self.kind == "end":
            return "the end of the text"
        return shortened(self.text)


class Source:
    """A named source text.  Its methods create error messages with positions in the text."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def error(self, kind: type[RelvmError], reason: str, offset: int) -> RelvmError:
        """Return an error of class `kind` whose message has the position of the character at `offset`."""
        line, column = self.line_and_column(offset)
        return self.error_at(kind, reason, line, column)

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return the line, counted from 1, and the column, counted from 0, of the character at `offset`."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1]

    def offset(self, line: int, column: int) -> int:
        """Return the offset, in characters, of a line and a column, both counted from 1."""
        return self.line_starts[line - 1] + column - 1

    def origin(self, offset: int) -> str:
        """Return the position of the character at `offset` as `name:line:column`, both counted from 1."""
        line, column = self.line_and_column(offset)
        return f"{self.name}:{line}:{column + 1}"

    def add_source_line(self, error: RelvmError) -> RelvmError:
        """Return `error` with the source line and a caret added to its message, if it has a position in this source.

        Otherwise return it unchanged.
        """
        match = re.fullmatch(re.escape(self.name) + r":(\d+):(\d+)", error.origin)
        if match is None:
            return error
        reason = str(error).removeprefix(f"{error.origin}: ")
        return self.error_at(type(error), reason, int(match[1]), int(match[2]) - 1)

    def error_at(self, kind: type[RelvmError], reason: str, line: int, column: int) -> RelvmError:
        """Return an error of class `kind`.  Its message consists of the position, the reason, the line and a caret.

        The message shows at most 150 characters of the line on each side of the position.  The error has the attributes
        `reason`, the message without the position, and `filename`, `lineno` and `offset`, as in SyntaxError.  `lineno`
        and `offset` are counted from 1.

        Parameters
        ----------
        kind
            Class of the error.
        reason
            The message without the position.
        line
            Number of the line, counted from 1.
        column
            Column in characters, counted from 0.
        """
        lines = self.text.split("\n")
        shown = lines[line - 1] if line <= len(lines) else ""
        shown = shown.encode(errors="backslashreplace").decode()  # a lone surrogate cannot be printed
        first = max(0, column - _SHOWN_AROUND)
        caret = re.sub(r"[^\t]", " ", shown[first:column]) + "^"
        shown = shown[first : column + _SHOWN_AROUND]
        error = kind(f"{self.name}:{line}:{column + 1}: {reason}\n  {shown}\n  {caret}")
        error.reason, error.filename, error.lineno, error.offset = reason, self.name, line, column + 1
        return error


def tokenize(source: Source) -> list[Token]:
    """Return the tokens of the source, followed by a token of kind `end`.

    Raises
    ------
    RelvmSyntaxError
        The source contains a character that cannot begin a token.
    """
    tokens = []
    offset, kind = 0, ""
    while kind != "end":
        start = offset
        space = _SPACE.match(source.text, start)
        assert space is not None  # the pattern matches the empty string too
        offset = space.end()
        first = start == 0 or source.text.find("\n", start, offset) >= 0
        match = TOKEN.match(source.text, offset)
        if match is None:
            character = source.text[offset]
            reason = "unterminated string" if character == '"' else f"unexpected character {character!r}"
            raise source.error(RelvmSyntaxError, reason, offset)
        kind = match.lastgroup or ""
        tokens.append(Token(kind, match.group(), offset, first))
        offset = match.end()
    return tokens


class TokenReader:
    """Base class of all parsers, with a cursor over the tokens of a source.

    position: the index of the current token.
    depth: the number of nested constructs around the current token.  This number is limited so that Python's stack does
    not overflow.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = tokenize(source)
        self.position = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    @property
    def following(self) -> Token:
        """The token after the current one, or the current one if it is the last."""
        return self.tokens[min(self.position + 1, len(self.tokens) - 1)]

    def error(self, kind: type[RelvmError], reason: str, token: Token) -> RelvmError:
        return self.source.error(kind, reason, token.offset)

    def unexpected(self, expected: str) -> RelvmError:
        """Return an error "expected A, got B", where A is `expected` and B is the current token."""
        return self.error(RelvmSyntaxError, f"expected {expected}, got {self.token}", self.token)

    def take(self) -> Token:
        token = self.token
        self.position += token.kind != "end"
        return token

    def at(self, text: str) -> bool:
        return self.token.text == text

    def accept(self, text: str) -> bool:
        """Consume the current token if its text is `text`.  Return whether it was consumed."""
        found = self.token.text == text
        self.position += found
        return found

    def expect(self, text: str, expected: str = "") -> Token:
        if self.token.text != text:
            raise self.unexpected(expected or text)
        return self.take()

    def expect_kind(self, kind: str, expected: str) -> Token:
        if self.token.kind != kind:
            raise self.unexpected(expected)
        return self.take()

    def end(self) -> None:
        if self.token.kind != "end":
            raise self.unexpected("the end of the text")

    def comma_separated(self, closing: str, read: Callable[[], Any]) -> tuple[list[Any], bool]:
        """Parse a comma-separated list and the bracket `closing` after it.  `read` parses an item.

        Return the items, and whether the list has the form of a tuple: in parentheses, `()`, `(a,)` and `(a, b)` are
        tuples, but `(a)` is not.
        """
        items, comma = [], True
        while comma and not self.at(closing):
            items.append(read())
            comma = self.accept(",")
        self.expect(closing, f", or {closing}")
        return items, comma or len(items) != 1

    def enter_level(self) -> None:
        """Increment `depth`.  The caller must decrement it at the end of the nested construct.

        Raises
        ------
        RelvmSyntaxError
            `depth` exceeds DEEPEST_NESTING.
        """
        self.depth += 1
        if self.depth > DEEPEST_NESTING:
            raise self.error(
                RelvmSyntaxError,
                f"nested more than {DEEPEST_NESTING} levels deep; bind a part to a variable",
                self.token,
            )

    def string(self) -> str:
        """Parse a string literal with JSON escapes, and return the string.

        Raise RelvmSyntaxError if it is not valid, or contains an unpaired surrogate.
        """
        token = self.expect_kind("string", "a string")
        try:
            value = json.loads(token.text)
            value.encode(errors="surrogateescape")  # invalid UTF-8 bytes are represented as surrogates
        except json.JSONDecodeError as error:
            raise self.error(RelvmSyntaxError, f"invalid string: {error.msg}", token) from None
        except UnicodeEncodeError as error:
            reason = f"invalid string: unpaired surrogate {value[error.start]!a}"
            raise self.error(RelvmSyntaxError, reason, token) from None
        return value

    def in_range(self, token: Token, value: int) -> int:
        if not -(1 << 63) <= value < 1 << 63:
            raise self.error(RelvmSyntaxError, f"{token} is out of the range of int64", token)
        return value
