"""Golden cases: files of small programs and what they must become.

A file holds cases:  `== title`, the input, `--`, the expected text.  `pytest --update` rewrites what is expected; read
the diff.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Case:
    title: str
    source: str
    expected: str


def read_cases(path: Path) -> list[Case]:
    """The cases of a file."""
    cases = []
    for part in path.read_text().split("\n== ")[0:]:
        title, _, rest = part.removeprefix("== ").partition("\n")
        source, _, expected = rest.partition("\n--\n")
        cases.append(Case(title.strip(), source.strip() + "\n", expected.strip() + "\n"))
    return cases


def check_cases(path: Path, convert: Callable[[str], str], update: bool) -> None:
    """Compares what `convert` makes of each case's source with what the file expects, or rewrites the file."""
    cases = read_cases(path)
    assert cases, f"{path} has no cases"
    results = [convert(case.source).strip() + "\n" for case in cases]
    if update:
        parts = [f"== {case.title}\n{case.source}--\n{got}" for case, got in zip(cases, results, strict=True)]
        path.write_text("\n".join(parts))
        return
    for case, got in zip(cases, results, strict=True):
        if got != case.expected:
            pytest.fail(f"{path.name}: {case.title}\n--- expected\n{case.expected}\n--- got\n{got}")
