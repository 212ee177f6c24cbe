"""The examples of docs/reference/errors.md: programs that fail, each with the error that Python prints."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

from support.documents import ROOT, blocks

DOCUMENT = ROOT / "docs" / "reference" / "errors.md"
_PAIR = re.compile(
    r"(^```python\n(?P<program>(?:(?!^```).*\n)*)```\n\n```text\n)(?P<shown>(?:(?!^```).*\n)*)```\n", re.MULTILINE
)


@dataclass(frozen=True)
class Example:
    """A program that fails.

    heading: the error class in the heading above the example.  shown: the error that the document shows.
    """

    heading: str
    program: str
    shown: str


def prelude() -> dict:
    """Return the names that the first block of the document defines, which the examples use."""
    namespace: dict = {"__name__": "page"}
    exec(next(text for language, text in blocks(DOCUMENT) if language == "python"), namespace)
    return namespace


def examples() -> Iterator[Example]:
    """Yield the examples of the document in order."""
    sections = re.split(r"^### (\w+)\n", DOCUMENT.read_text(), flags=re.MULTILINE)
    for heading, text in zip(sections[1::2], sections[2::2], strict=True):
        for found in _PAIR.finditer(text):
            yield Example(heading, found["program"], found["shown"])


def failure_of(example: Example, namespace: dict) -> Exception:
    """Return the error that the program raises.  Raise AssertionError if it raises none."""
    try:
        exec(compile(example.program, str(DOCUMENT), "exec"), namespace)
    except Exception as error:
        return error
    raise AssertionError(f"{example.heading}: the example does not fail:\n{example.program}")


def shown(error: Exception) -> str:
    """Return the last lines of the traceback of an error: the class, the message and the notes."""
    return "".join(traceback.format_exception_only(error))


def update(namespace: dict) -> None:
    """Update the errors in the document to those that its examples raise now."""

    def replaced(found: re.Match) -> str:
        error = failure_of(Example("", found["program"], ""), namespace)
        return f"{found[1]}{shown(error)}```\n"

    DOCUMENT.write_text(_PAIR.sub(replaced, DOCUMENT.read_text()))
