"""A position in the text of an MLIR program, with the tokens that follow it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from relvm.errors import RelvmSyntaxError, RelvmUnsupportedError, shortened
from relvm.frontend.stablehlo.limits import MAX_DEPTH, MAX_STRING

_SPACE = re.compile(r"(?:\s+|//[^\n]*)*+")
_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\\n]++|\\.)*+")
      | (?P<value>%[\w$.-]++(?:\#\d{1,9})?)
      | (?P<symbol>@(?:[A-Za-z_][\w$.-]*+|"(?:[^"\\\n]++|\\.)*+"))
      | (?P<block>\^[\w$.-]++)
      | (?P<hash>\#[A-Za-z_][\w$.]*+)
      | (?P<bang>![A-Za-z_][\w$.]*+)
      | (?P<number>-?(?:0x[0-9a-fA-F]++|\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?))
      | (?P<word>[A-Za-z_][\w$.-]*+)
      | (?P<mark>->|::|[()\[\]{}<>,:=?*+/|\-])
      | (?P<end>\Z)
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}
_DIMENSIONS = re.compile(r"\s*((?:(?:\d{1,19}|\?)\s*x\s*)*+)")
_BRACKETS = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|->|[<>\[\](){}]')
_CLOSING = {"<": ">", "[": "]", "(": ")", "{": "}"}


class Cursor:
    """A position in a text.

    place: the name of the text, for messages.
    kind, text: the kind of the token at the position, which is the name of a group of _TOKEN, and its text.
    """

    def __init__(self, text: str, place: str) -> None:
        self.source = text
        self.place = place
        self.depth = 0
        self._lines: list[int] | None = None
        self.kind = self.text = ""
        self.start = self.end = 0
        self.move_to(0)

    # ---- positions and errors ----

    def move_to(self, offset: int) -> None:
        """Make the token at or after `offset` the current one."""
        space = _SPACE.match(self.source, offset)
        assert space is not None
        self.start = space.end()
        match = _TOKEN.match(self.source, self.start)
        if match is None or match.lastgroup is None:
            self.kind, self.text, self.end = "unknown", self.source[self.start], self.start + 1
            return
        self.kind, self.text, self.end = match.lastgroup, match[0], match.end()
        if self.kind == "word" and self.text.endswith("-"):  # `a->b` is a word and an arrow
            self.text = self.text.rstrip("-")
            self.end = self.start + len(self.text)

    def here(self, offset: int | None = None) -> str:
        """Return the place of the current token, or of a character, as FILE:LINE:COLUMN."""
        offset = self.start if offset is None else offset
        if self._lines is None:
            self._lines = [0, *(match.end() for match in re.finditer("\n", self.source))]
        line = bisect_right(self._lines, offset)
        return f"{self.place}:{line}:{offset - self._lines[line - 1] + 1}"

    def shown(self) -> str:
        return "the end of the text" if self.kind == "end" else repr(shortened(self.text, 60))

    def expected(self, what: str) -> NoReturn:
        raise RelvmSyntaxError(f"{self.here()}: expected {what}, got {self.shown()}")

    def unsupported(self, what: str, offset: int | None = None) -> NoReturn:
        raise RelvmUnsupportedError(f"{self.here(offset)}: {what}")

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A context manager for a nested part of the program, which limits the depth."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise RelvmSyntaxError(f"{self.here()}: the program is nested deeper than {MAX_DEPTH} levels")
        try:
            yield
        finally:
            self.depth -= 1

    # ---- tokens ----

    def next(self) -> str:
        """Move to the next token, and return the text of the token before it."""
        text = self.text
        self.move_to(self.end)
        return text

    def at(self, *texts: str) -> bool:
        return self.text in texts and self.kind in ("mark", "word")

    def accept(self, text: str) -> bool:
        """Skip the token `text` if it is the current one.  Return whether it was."""
        if not self.at(text):
            return False
        self.next()
        return True

    def expect(self, text: str) -> None:
        """Skip the token `text`.  Raise RelvmSyntaxError if the current token is another one."""
        if not self.accept(text):
            self.expected(repr(text))

    def take(self, kind: str, what: str) -> str:
        """Return the text of the current token, which must be of kind `kind`, and move to the next one."""
        if self.kind != kind:
            self.expected(what)
        return self.next()

    def word(self, what: str = "a name") -> str:
        return self.take("word", what)

    def integer(self) -> int:
        """Read an integer, in decimal or hexadecimal digits."""
        text = self.text
        if self.kind != "number" or not re.fullmatch(r"-?(?:\d{1,39}|0x[0-9a-fA-F]{1,32})", text):
            self.expected("an integer")
        self.next()
        return int(text, 0) if "x" in text else int(text)

    def string(self) -> str:
        """Read a string."""
        return self.string_bytes().decode("utf-8", "replace")

    def string_bytes(self) -> bytes:
        """Read a string, and return its bytes."""
        if self.kind != "string":
            self.expected("a string")
        if len(self.text) > MAX_STRING:
            raise RelvmSyntaxError(f"{self.here()}: a string is longer than {MAX_STRING} characters")
        return unescaped(self.next())

    def symbol(self) -> str:
        """Read the name of a function, `@name`, and return it without the @."""
        text = self.take("symbol", "the name of a function such as @main")[1:]
        return unescaped(text).decode("utf-8", "replace") if text.startswith('"') else text

    def dimensions(self) -> tuple[int | None, ...]:
        """Read the dimensions of a type, such as `2x?x`, which end before the type of the elements."""
        match = _DIMENSIONS.match(self.source, self.start)
        assert match is not None
        dims = re.findall(r"\d+|\?", match[1])
        self.move_to(match.end())
        return tuple(None if dim == "?" else int(dim) for dim in dims)

    def balanced(self) -> str:
        """Return the text from the current token, an opening bracket, to its closing bracket, and move behind it."""
        first = self.start
        open_brackets: list[str] = []
        for match in _BRACKETS.finditer(self.source, first):
            bracket = match[0]
            if bracket in _CLOSING:
                open_brackets.append(_CLOSING[bracket])
            elif bracket in _CLOSING.values():
                if not open_brackets or open_brackets.pop() != bracket:
                    raise RelvmSyntaxError(f"{self.here(match.start())}: unbalanced {bracket!r}")
                if not open_brackets:
                    self.move_to(match.end())
                    return self.source[first : match.end()]
            if len(open_brackets) > 4 * MAX_DEPTH:
                raise RelvmSyntaxError(f"{self.here(match.start())}: nested deeper than {4 * MAX_DEPTH} levels")
        raise RelvmSyntaxError(f"{self.here(first)}: a bracket is not closed")

    def items(self, opening: str, closing: str, item: Any) -> list[Any]:
        """Read a list in brackets whose items are separated by commas.   item: a function that reads an item."""
        self.expect(opening)
        found: list[Any] = []
        if self.accept(closing):
            return found
        while True:
            found.append(item())
            if not self.accept(","):
                break
        self.expect(closing)
        return found


def unescaped(text: str) -> bytes:
    """Return the bytes that a string in quotes stands for."""

    def replaced(match: re.Match[bytes]) -> bytes:
        return bytes((int(match[1], 16),)) if match[1] else _ESCAPED.get(match[2], match[2])

    return _ESCAPE.sub(replaced, text[1:-1].encode())
