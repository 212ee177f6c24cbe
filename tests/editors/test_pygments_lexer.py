"""The Pygments lexer colors every token, and Pygments finds it."""

from __future__ import annotations

import re

import pytest
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Comment, Error, Keyword, Name, Number, String
from support.documents import ROOT

from relvm.editors.pygments_lexer import RelvmLexer
from relvm.frontend.text.lexer import Source, tokenize

BLOCKS = re.findall(r"```relvm\n(.*?)```", (ROOT / "docs" / "language.md").read_text(), flags=re.DOTALL)


def test_pygments_finds_the_lexer() -> None:
    assert type(get_lexer_by_name("relvm")) is RelvmLexer
    assert type(get_lexer_for_filename("model.relvm")) is RelvmLexer


@pytest.mark.parametrize("text", BLOCKS)
def test_every_token_of_the_parser_is_known(text: str) -> None:
    found = list(RelvmLexer().get_tokens_unprocessed(text))
    assert not [value for _, kind, value in found if kind in Error]
    starts = {start for start, kind, _ in found if kind not in Comment}
    marks = {"@"}  # the lexer colors @f as one token
    previous = ""
    for token in tokenize(Source(text, "t"))[:-1]:
        assert token.offset in starts or previous in marks, token
        previous = token.text


def test_kinds() -> None:
    text = 'def main(x: f32[n]) -> f32[n] {  # why\n  return sum(x, axes=(1,), note="a")\n}\n'
    kinds = {value: kind for _, kind, value in RelvmLexer().get_tokens_unprocessed(text)}
    assert kinds["def"] is Keyword.Declaration and kinds["main"] is Name.Function
    assert kinds["f32"] is Keyword.Type and kinds["return"] is Keyword
    assert kinds["sum"] is Name.Builtin and kinds["axes"] is Name.Attribute
    assert kinds["1"] is Number.Integer and kinds['"a"'] in String and kinds["# why"] is Comment.Single
