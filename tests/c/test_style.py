"""Rules for the text of the C sources that clang-format and clang-tidy do not check."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from relvm.tables import csrc_directory

FILES = sorted(path for path in csrc_directory().rglob("*") if path.suffix in (".c", ".h", ".def"))
# A declaration at file level: a name, its parameters, then a semicolon or a body.
_DECLARATION = re.compile(
    r"^(?:[A-Za-z_]\w*[ *]+)+(rvm_\w+)\(([^;{}()]*(?:\([^()]*\)[^;{}()]*)*)\)\s*[;{]", re.MULTILINE
)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def name_of(path: Path) -> str:
    return path.relative_to(csrc_directory()).as_posix()


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".h"], ids=name_of)
def test_an_include_guard_is_named_after_its_file(path: Path) -> None:
    guard = path.stem.upper()
    guard = guard if guard.startswith("RELVM") else f"RELVM_{guard}"
    if path.parent.name == "python":
        guard = f"RELVM_PYTHON_{path.stem.upper()}"
    directives = re.findall(r"^#(?:ifndef|define) (\w+)$", path.read_text(), re.MULTILINE)
    assert directives[:2] == [f"{guard}_H", f"{guard}_H"]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_begins_with_what_it_is_for(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("/* " if path.suffix == ".def" else f"/* {path.name}: ")
    assert not [line for line in text.splitlines() if len(line) > 120]


def test_a_name_has_one_signature() -> None:
    signatures: dict[str, str] = {}
    for path in FILES:
        for name, parameters in _DECLARATION.findall(_COMMENT.sub("", path.read_text())):
            types = re.sub(r"\bstruct |\b\w+(?=,|$|\[)", "", parameters)  # without the names
            found = " ".join(types.split())
            assert signatures.setdefault(name, found) == found, f"{name_of(path)}: {name}({parameters})"
    assert len(signatures) > 300


def test_a_noun_in_a_message_agrees_with_its_number() -> None:
    nouns = "arguments|dimensions|elements|functions|inputs|items|operands|outputs|parameters|slots|tensors|values"
    plural = re.compile(rf"(?<!%lld of )%(?:d|u|lld|llu) (?:{nouns})\b")
    found = {name_of(path): plural.findall(path.read_text()) for path in FILES}
    assert not {name: texts for name, texts in found.items() if texts}, 'write "%d item%s", n, RVM_PLURAL(n)'
