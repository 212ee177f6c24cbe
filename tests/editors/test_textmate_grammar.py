"""The TextMate grammar gives each token the scope of its Pygments token."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from string import punctuation
from typing import Any

import pytest
from editors.test_pygments_lexer import BLOCKS
from pygments.token import Keyword, Name, Operator, Punctuation
from support.documents import ROOT

import relvm.ops  # noqa: F401  (declares the operators)
from relvm.editors.pygments_lexer import RelvmLexer
from relvm.editors.textmate_grammar import SCOPES, textmate_grammar
from relvm.frontend.text.lexer import TOKEN
from relvm.ir.kernel_def_printer import KERNEL_KEYWORDS
from relvm.ir.operator import operators
from relvm.ir.printer import KEYWORDS
from relvm.ir.scalar_ops import FORMS
from relvm.tables import DTYPES

# Words that are keywords only in some places, with a text that contains the word in such a place.
CONTEXTUAL = {
    "private": "private def f(x: i64) -> i64 = x",
    "inout": "kernel k(inout x: f32[n]) -> () {",
    "fused": "y = fused { return x }",
}
PARSERS = sorted((ROOT / "relvm" / "frontend" / "text").glob("*.py"))
EXAMPLE = (ROOT / "relvm" / "explore" / "live" / "example.relvm").read_text()


def scopes(grammar: dict[str, Any], text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the offset, text and scope of each token, as an editor would determine them.

    Lines are processed separately.  The first match of any rule counts, and of two matches at the same position that of
    the earlier rule.
    """
    rules = [(re.compile(rule["match"]), rule) for rule in grammar["patterns"]]
    start = 0
    for line in text.splitlines(keepends=True):
        at = 0
        while found := [
            (match.start(), number) for number, (regex, _) in enumerate(rules) if (match := regex.search(line, at))
        ]:
            _, number = min(found)
            regex, rule = rules[number]
            match = regex.search(line, at)
            if "name" in rule:
                yield start + match.start(), match[0], rule["name"]
            for group, capture in rule.get("captures", {}).items():
                yield start + match.start(int(group)), match[int(group)], capture["name"]
            at = match.end()
        start += len(line)


@pytest.mark.parametrize(
    "text", [EXAMPLE, *BLOCKS], ids=["example", *(f"block_{number}" for number in range(len(BLOCKS)))]
)
def test_scopes_are_those_of_the_pygments_lexer(text: str) -> None:
    expected = [
        (offset, value, SCOPES[kind])
        for offset, kind, value in RelvmLexer().get_tokens_unprocessed(text)
        if value.strip()
    ]
    assert list(scopes(textmate_grammar(), text)) == expected


def scope_of(word: str, text: str) -> str:
    (found,) = {scope for _, value, scope in scopes(textmate_grammar(), text) if value == word}
    return found


def test_every_word_of_the_parsers_is_a_keyword() -> None:
    pattern = r'\.(?:at|accept|expect)\("([^\W\d]\w+)"'
    words = {word for path in PARSERS for word in re.findall(pattern, path.read_text())}
    assert len(words) > 15 and words <= KEYWORDS | KERNEL_KEYWORDS | CONTEXTUAL.keys()
    keywords = {SCOPES[kind] for kind in SCOPES if kind in Keyword}
    for word in KEYWORDS | KERNEL_KEYWORDS:
        assert scope_of(word, f"{word} x") in keywords, word
    for word, text in CONTEXTUAL.items():
        assert scope_of(word, text) in keywords, word
        assert scope_of(word, f"{word} = 1") not in keywords, word


def test_every_dtype_operator_and_mark_of_the_tables_has_a_scope() -> None:
    for row in DTYPES:
        assert scope_of(row.name, f"x: {row.name}[n]") == SCOPES[Keyword.Type], row.name
    for name in operators().keys() - KEYWORDS - KERNEL_KEYWORDS:
        assert scope_of(name, f"{name}(x)") == SCOPES[Name.Builtin], name
    spelled = ("".join(letters) for size in (1, 2, 3) for letters in itertools.product(punctuation, repeat=size))
    marks = {mark for mark in spelled if (found := TOKEN.fullmatch(mark)) and found.lastgroup == "mark"}
    assert marks > {form for form, _ in FORMS if not form.isidentifier()}
    for mark in marks:
        expected = Punctuation if mark in "()[]{},:;." else Operator
        assert scope_of(mark, f"x {mark} 1") == SCOPES[expected], mark


def test_the_command_of_the_documentation_prints_the_grammar(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "editors.md").read_text()
    command = next(line for line in page.splitlines() if line.startswith("python -m relvm.editors.textmate_grammar > "))
    words = command.partition(" > ")[0].split()
    printed = subprocess.run([sys.executable, *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(printed.stdout) == textmate_grammar()
