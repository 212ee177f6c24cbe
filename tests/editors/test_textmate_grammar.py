"""The TextMate grammar gives each token the scope of its Pygments token."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT
from editors.test_pygments_lexer import BLOCKS

from relvm.editors.pygments_lexer import RelvmLexer
from relvm.editors.textmate_grammar import SCOPES, textmate_grammar

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


def test_the_command_of_the_documentation_prints_the_grammar(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "editors.md").read_text()
    command = next(line for line in page.splitlines() if line.startswith("python -m relvm.editors.textmate_grammar > "))
    words = command.partition(" > ")[0].split()
    printed = subprocess.run([sys.executable, *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(printed.stdout) == textmate_grammar()
    manifest = json.loads(re.search(r"```json\n(.*?)```", page, flags=re.DOTALL)[1])
    (grammar,) = manifest["contributes"]["grammars"]
    assert grammar["scopeName"] == textmate_grammar()["scopeName"]
    assert command.endswith(grammar["path"].removeprefix("./"))
