"""The test follows the recipes of docs/contributing.md in a copy of the sources."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.documents import ROOT
from support.source_copy import make_importable

GUIDE = (ROOT / "docs" / "contributing.md").read_text()
_EDIT = re.compile(
    r"(?P<how>At the end of|Create|In) `(?P<path>[^`]+)`(?:, (?P<where>after|before) `(?P<anchor>[^`\n]+)`)?:\n\n"
    r"```\w+\n(?P<text>.*?)```\n",
    re.DOTALL,
)
_TRY = re.compile(r"```(?P<language>python|sh)\n(?P<code>.*?)```\n", re.DOTALL)


@dataclass(frozen=True)
class Recipe:
    """A section of the guide.  edits: matches of _EDIT.  trials: (language, code) that must run after the edits."""

    title: str
    edits: tuple[re.Match[str], ...]
    trials: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return self.title


def recipes() -> Iterator[Recipe]:
    for section in GUIDE.split("\n## ")[1:]:
        edits, _, trial = section.partition("\nTry it:\n")
        found = tuple((match["language"], match["code"]) for match in _TRY.finditer(trial))
        yield Recipe(section.partition("\n")[0], tuple(_EDIT.finditer(edits)), found)


RECIPES = [recipe for recipe in recipes() if recipe.edits]


def follow(recipe: Recipe, folder: Path) -> None:
    """Make the edits of a recipe in a copy of the sources."""
    for edit in recipe.edits:
        path = folder / edit["path"]
        if edit["how"] == "Create":
            assert not path.exists(), path
            path.write_text(edit["text"])
            continue
        text = path.read_text()
        if edit["how"] == "In":
            lines, anchor = text.split("\n"), edit["anchor"]
            assert lines.count(anchor) == 1, f"{path}: {lines.count(anchor)} lines are {anchor!r}"
            at = lines.index(anchor) + (edit["where"] == "after")
            path.write_text("\n".join([*lines[:at], *edit["text"].rstrip("\n").split("\n"), *lines[at:]]))
        else:
            gap = {".py": "\n\n", ".c": "\n", ".def": ""}[path.suffix]
            path.write_text(text + gap + edit["text"])


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the sources and follow all recipes in order, because some depend on others."""
    folder = tmp_path_factory.mktemp("sources")
    for name in ("relvm", "csrc", "examples", "docs", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    make_importable(folder)
    for recipe in RECIPES:
        follow(recipe, folder)
    return folder


def test_the_guide_has_the_recipes() -> None:
    kinds = [
        *("an operator", "an ONNX operator", "a front end", "an IR pass", "a LIR pass", "a subcommand", "a builtin"),
        *("an opcode", "a kernel schedule", "a micro-kernel", "a processor feature"),
    ]
    assert [recipe.title for recipe in RECIPES] == [f"Add {kind}" for kind in kinds]
    assert "Add a dtype" in re.findall(r"^## (.*)$", GUIDE, re.M)


@pytest.mark.parametrize("recipe", [recipe for recipe in RECIPES if recipe.trials], ids=str)
def test_a_recipe_works(recipe: Recipe, copied: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(copied), "PYTEST_ADDOPTS": ""}  # a recipe can run pytest
    for language, code in recipe.trials:
        command = [sys.executable, "-P", "-c", code] if language == "python" else ["sh", "-ec", code]
        done = subprocess.run(command, cwd=copied, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
