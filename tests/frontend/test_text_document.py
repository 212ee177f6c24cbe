"""The examples of docs/language.md run, and its grammar contains every keyword of the language."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from relvm.frontend.script.names import SCRIPT_FUNCTIONS
from relvm.frontend.text import parse_module
from relvm.frontend.text.lexer import DEEPEST_NESTING, Source, tokenize
from relvm.ir.dtypes import ALL_DTYPES
from relvm.ir.printer import DIM_KEYWORDS, KEYWORDS, print_module
from relvm.ir.type_inference import infer_types
from relvm.ir.verifier import Stage, verify
from relvm.ir.visitor import structural_equal

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "language.md").read_text()
BLOCKS = re.findall(r"```([\w-]+)\n(.*?)```", DOCUMENT, flags=re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


def test_every_example_is_of_a_kind_that_is_run():
    assert {name for name, _ in BLOCKS} == {"relvm", "relvm-planned", "python", "ebnf", "text"}  # text: lists of names
    assert DOCUMENT.count("```") == 2 * len(BLOCKS)


@pytest.mark.parametrize("text", blocks("relvm"), ids=lambda text: text[:30])
def test_a_program_is_a_program(text):
    module = infer_types(parse_module(text))
    verify(module, Stage.TYPED)
    assert structural_equal(parse_module(print_module(module)), module)


@pytest.mark.parametrize("text", blocks("relvm-planned"), ids=lambda text: text[:30])
def test_a_program_of_a_later_stage_parses(text):
    assert print_module(parse_module(text)) == text


@pytest.mark.parametrize("text", blocks("python"), ids=lambda text: text[:40])
def test_a_python_example_runs(text, tmp_path):
    path = tmp_path / "example.py"
    path.write_text(text)
    runpy.run_path(str(path))


def test_the_grammar_has_every_word():
    words = set(re.findall(r'"([^"\s]+)"', *blocks("ebnf")))
    assert words.issuperset(KEYWORDS | DIM_KEYWORDS)
    for word in words:
        tokens = tokenize(Source(word, "<grammar>"))
        assert [token.text for token in tokens] == [word, ""]


def test_the_tables_are_complete():
    for name in (*ALL_DTYPES, *SCRIPT_FUNCTIONS, str(DEEPEST_NESTING)):
        assert re.search(rf"\b{name}\b", DOCUMENT), name
