"""The formatter of the text form changes only spaces, and agrees with the printer."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.documents import ROOT

from relvm.editors.formatter import format_text
from relvm.errors import RelvmSyntaxError
from relvm.frontend.text import parse_module
from relvm.frontend.text.lexer import Source, tokenize
from relvm.ir.printer import print_module

BLOCKS = re.findall(r"```relvm\n(.*?)```", (ROOT / "docs" / "language.md").read_text(), flags=re.DOTALL)
PIECES = ["def", "f", "(", ")", "[", "]", "{", "}", ",", ":", "=", "->", "-", "+", "~", "@", "return", "if", "1", "2.5"]
PIECES += ["x", ".0", ".", "prim", "==", "#c\n", "\n", "\n\n\n", " ", "  ", "const", "packed", '"a # b"', "...", "*"]


def tokens(text: str) -> list[tuple[str, str, bool]]:
    return [(token.kind, token.text, token.is_first_in_line) for token in tokenize(Source(text, "t"))[:-1]]


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("def f( x:i64 )->i64=x+1", "def f(x: i64) -> i64 = x + 1\n"),
        ("y=sum( x,axes = ( 1 , ) )", "y = sum(x, axes=(1,))\n"),
        ("return -x - -1", "return -x - -1\n"),
        ("a = (-x, [- 1], ~ b)", "a = (-x, [-1], ~b)\n"),
        ("x = @ f (1) ;y=t .0", "x = @f(1); y = t.0\n"),
        ("p=packed ( \"h\",x ):f32[n , 4]", 'p = packed("h", x) : f32[n, 4]\n'),
        ("k = prim . max(a,b) // 2", "k = prim.max(a, b) // 2\n"),
        ("acc+=x [i]", "acc += x[i]\n"),
        ("if(a) then(b)", "if (a) then (b)\n"),
        ("{a=1\n{\nb=2\n}\n}", "{ a = 1\n  {\n    b = 2\n  }\n}\n"),
        ("a\n\n\n\nb\n\n", "a\n\nb\n"),
        ("def f(x: i64) -> i64 =\nx +\n1\ny = 1", "def f(x: i64) -> i64 =\n  x +\n  1\ny = 1\n"),
        ("a  # one\nbcd # two", "a  # one\nbcd  # two\n"),
        ("a       # one\nbcd     # two", "a       # one\nbcd     # two\n"),
        ("   # alone", "# alone\n"),
        ("", ""),
    ],
)  # fmt: skip
def test_spaces(given_text: str, expected: str) -> None:
    assert format_text(given_text) == expected


@pytest.mark.parametrize("text", BLOCKS)
def test_printed_modules_are_formatted(text: str) -> None:
    printed = print_module(parse_module(text))
    assert format_text(printed) == printed


@given(st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join))
def test_tokens_lines_and_comments_stay(text: str) -> None:
    formatted = format_text(text)
    assert tokens(formatted) == tokens(text)
    assert formatted.count("#c") == text.count("#c")
    assert format_text(formatted) == formatted


def test_a_wrong_character_is_told() -> None:
    with pytest.raises(RelvmSyntaxError, match=r"model\.relvm:2:3: unexpected character"):
        format_text("a\nb $", "model.relvm")
