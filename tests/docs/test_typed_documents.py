"""mypy and pyright find no errors in the programs of the documents that users read first."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.documents import ROOT

DOCUMENTS = ("README.md", "docs/index.md", "docs/tutorial.md")
LANGUAGE = ROOT / "docs" / "language.md"


def programs(text: str) -> str:
    """Return the Python code blocks of a document as one program."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the programs of the documents, and of the section on type checkers."""
    folder = tmp_path_factory.mktemp("programs")
    for name in DOCUMENTS:
        text = (ROOT / name).read_text()
        (folder / Path(name).with_suffix(".py").name).write_text(programs(text))
    section = LANGUAGE.read_text().partition("### Type checkers")[2].partition("\n## ")[0]
    (folder / "language_section.py").write_text(programs(section))
    assert all(path.read_text() for path in folder.iterdir())
    return folder


CHECKERS = {
    "mypy": ["mypy", "--no-incremental", "--check-untyped-defs"],
    "pyright": ["basedpyright", "--level", "error"],
}
WRONG = """
from relvm import script, vm
from relvm.language import Tensor, softmax

@script
def main(x: Tensor) -> Tensor:
    return softmax(x, axis="last")

vm.build(3)
"""


@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checkers_find_no_errors(checker: str, folder: Path) -> None:
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    files = sorted(path.name for path in folder.glob("*.py"))
    done = subprocess.run(
        [sys.executable, "-m", *CHECKERS[checker], *files], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checkers_find_wrong_arguments(checker: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", *CHECKERS[checker], "wrong.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert {int(line) for line in re.findall(r"wrong\.py:(\d+)", done.stdout)} == {7, 9}, done.stdout
