"""Messages: a number stands before a noun that agrees with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from relvm.errors import counted

PACKAGE = Path(__file__).resolve().parent.parent / "relvm"
NOUNS = (
    "arguments|axes|bytes|characters|elements|entries|fields|functions|indices|inputs|integers|items|names|numbers|"
    "operands|outputs|parameters|results|strings|values"
)


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "item", "0 items"),
        (1, "item", "1 item"),
        (2, "axis", "2 axes"),
        (3, "index", "3 indices"),
        (1, "entry", "1 entry"),
    ],
)
def test_a_noun_agrees_with_its_number(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


def lengths_before_plurals(text: str) -> list[str]:
    """Return the parts of f-strings such as f"{len(x)} items", except after "of", as in "2 of 3 items"."""
    shares = r"(?<! of )(?<! of the )"
    return [found[0] for found in re.finditer(rf"{shares}\{{len\((?:[^{{}}\n])*\)\}} (?:{NOUNS})\b", text)]


def test_lengths_are_counted() -> None:
    assert lengths_before_plurals('f"{len(x)} items, {counted(len(y), "item")} of {len(z)} items"') == [
        "{len(x)} items"
    ]
    found = {
        path.relative_to(PACKAGE).as_posix(): places
        for path in PACKAGE.rglob("*.py")
        if (places := lengths_before_plurals(path.read_text()))
    }
    assert not found, "write {counted(len(x), 'item')} instead of {len(x)} items"
