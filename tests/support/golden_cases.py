"""Golden tests: files of small programs with the expected results.

A file contains cases, each of which consists of `== title`, the input, `--`, and the expected text.  `pytest --update`
rewrites the expected texts.  Read the diff afterwards.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Case:
    path: Path
    title: str
    source: str
    expected: str


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a file."""
    cases = []
    for part in path.read_text().split("\n== "):
        title, _, rest = part.removeprefix("== ").partition("\n")
        source, _, expected = rest.partition("\n--\n")
        cases.append(Case(path, title.strip(), source.strip() + "\n", expected.strip() + "\n"))
    assert len({case.title for case in cases} - {""}) == len(cases), f"{path} has cases of one title, or of none"
    return cases


def golden(*paths: Path) -> pytest.MarkDecorator:
    """Parametrize a test by `case`: one item for each case of the files."""
    cases = [case for path in paths for case in read_cases(path)]
    return pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.path.stem}: {case.title}") for case in cases])


def check_case(case: Case, got: str, update: bool) -> None:
    """Compare what a case's source became with what its file expects, or rewrite that case in its file."""
    got = got.strip() + "\n"
    if update:
        cases = [replace(each, expected=got) if each.title == case.title else each for each in read_cases(case.path)]
        case.path.write_text(_text(cases))
    elif got != case.expected:
        lines = (text.splitlines(keepends=True) for text in (case.expected, got))
        difference = difflib.unified_diff(*lines, f"{case.path.name}: {case.title}", "got")
        pytest.fail("".join(difference), pytrace=False)


def _text(cases: Iterable[Case]) -> str:
    return "\n".join(f"== {case.title}\n{case.source}--\n{case.expected}" for case in cases)
