"""Formatter of the text form: indentation and spaces.

The formatter changes only spaces and blank lines.  The tokens, the lines that they stand on, and the comments stay the
same, so that a formatted text has the same meaning.  A comment after code stays in its column if there is room, so that
comments below each other stay aligned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from relvm.frontend.text.lexer import TOKEN, Source, Token, tokenize
from relvm.ir.kernel_def_printer import KERNEL_KEYWORDS
from relvm.ir.printer import KEYWORDS

_INDENT = "  "
_OPENING, _CLOSING = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
_INFIX = frozenset("= == != < <= > >= | ^ & << >> + - * / // % -> =>".split())  # noqa: SIM905
_CALLED = {"builtin", "const", "dim", "dtype", "kill", "match_cast", "packed", "packed_pure", "prim", "shape"}
_CALLED |= {"false", "inf", "nan", "null", "true"}
_WORDS = (KEYWORDS | KERNEL_KEYWORDS) - _CALLED  # words followed by a space and a value


def format_text(text: str, name: str = "<text>") -> str:
    """Return a source text with uniform indentation and spaces.

    A line is indented by two spaces for each bracket that is open at its start.  It is indented by two more if it
    continues an expression after an infix operator or `=`.  At most one blank line remains between two lines.

    Parameters
    ----------
    text
        A module in the text form.
    name
        The name of the text in error messages.

    Returns
    -------
    str
        The formatted text, which ends with a line break unless it is empty.

    Raises
    ------
    RelvmSyntaxError
        The text contains a character that cannot begin a token.

    Examples
    --------
    >>> from relvm.editors.formatter import format_text
    >>> print(format_text("def f(x:i64)->i64{\\nreturn x+1 }"), end="")
    def f(x: i64) -> i64 {
      return x + 1 }
    """
    lines: list[str] = []
    open_brackets: list[str] = []
    continues = False  # whether the previous line ends with an infix operator or =
    for tokens, comment in _split_lines(Source(text, name)):
        if not tokens and not comment:
            if lines and lines[-1]:
                lines.append("")
            continue
        starts_closed = len(tokens) > 0 and tokens[0].text in _CLOSING
        indent = max(0, len(open_brackets) - starts_closed) + (continues and not starts_closed)
        written = _join_tokens(tokens, open_brackets)
        if tokens:
            continues = tokens[-1].kind == "mark" and tokens[-1].text in _INFIX
        line = _INDENT * indent + written
        if comment:
            column = max(comment.column, len(line) + 2) if written else len(line)
            line += " " * (column - len(line)) + comment.text
        lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    return "".join(f"{line}\n" for line in lines)


class _Comment(NamedTuple):
    """A comment.

    column: the number of characters before it on its line.
    """

    text: str
    column: int


def _split_lines(source: Source) -> Iterator[tuple[list[Token], _Comment | None]]:
    """Yield the tokens and the comment of each line of a source."""
    tokens = tokenize(source)
    ends = [token.offset + len(token.text) for token in tokens]
    gaps = zip([0, *ends[:-1]], tokens, strict=True)
    line: list[Token] = []
    comment: _Comment | None = None
    for start, token in gaps:
        for piece in re.finditer(r"\n|#[^\n]*", source.text[start : token.offset]):
            if piece[0] == "\n":
                yield line, comment
                line, comment = [], None
            else:
                comment = _Comment(piece[0].rstrip(), source.line_and_column(start + piece.start())[1])
        line.append(token)
    yield line[:-1], comment  # without the token `end`


def _join_tokens(tokens: list[Token], open_brackets: list[str]) -> str:
    """Join the tokens of a line to a text, with spaces where the format has them.

    open_brackets: the brackets that are open at the start of the line.  The list is updated to those that are open at
    the end.
    """
    parts: list[str] = []
    before: Token | None = None
    is_prefix = False  # whether `before` is a sign in front of an operand, such as the minus of -x
    for token in tokens:
        if before is not None and _needs_space(before, token, is_prefix, open_brackets):
            parts.append(" ")
        parts.append(token.text)
        is_prefix = token.text in ("-", "~", "@") and (before is None or not _ends_operand(before))
        if token.kind == "mark" and token.text in _OPENING:
            open_brackets.append(token.text)
        elif token.kind == "mark" and token.text in _CLOSING and open_brackets:
            open_brackets.pop()
        before = token
    return "".join(parts)


def _ends_operand(token: Token) -> bool:
    """Return whether `token` can be the last token of an operand."""
    if token.kind == "name":
        return token.text not in _WORDS
    return token.kind != "mark" or token.text in _CLOSING


def _needs_space(left: Token, right: Token, is_prefix: bool, open_brackets: list[str]) -> bool:
    """Return whether the formatter puts a space between `left` and `right`, two consecutive tokens of a line.

    is_prefix: whether `left` is a sign in front of an operand.
    open_brackets: the brackets that are open between the tokens.
    """
    together = TOKEN.match(left.text + right.text)
    if together is None or together.group() != left.text or (left.text == "." and right.text.startswith(".")):
        return True  # without a space, the two would be read as another token
    inner = open_brackets[-1] if open_brackets else ""
    if is_prefix or right.kind == "item" or "." in (left.text, right.text):
        return False
    if left.text == ")" and right.text == ":":  # before the type of a call: packed("f", x) : f32[n]
        return True
    if left.text == "{" or right.text == "}":
        return not (left.text == "{" and right.text == "}")
    if left.text in ("(", "[") or right.text in (")", "]", ",", ";", ":"):
        return False
    if right.text == "=" and left.text in ("+", "-", "*", "/") and left.offset + 1 == right.offset:
        return False  # the kernel statement x += y
    if "=" in (left.text, right.text):
        return inner != "("
    if right.text in ("(", "["):
        return not _ends_operand(left) or left.kind in ("int", "float")
    return True
