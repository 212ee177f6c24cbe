"""What the documents say is there is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(p for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")])
PATH = re.compile(r"`([A-Za-z0-9_.\-]+(?:/[A-Za-z0-9_.\-]+)*/?(?:\.[a-z]+)?)`")
SUFFIXES = (".py", ".c", ".h", ".def", ".md", ".ipynb", ".cases", ".toml", ".relvm", ".json")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_path_a_document_names_exists(document: Path) -> None:
    for name in PATH.findall(document.read_text()):
        if "/" in name and (name.endswith(SUFFIXES) or name.endswith("/")):
            assert (ROOT / name).exists() or (document.parent / name).exists(), f"{document.name} names {name}"


@pytest.mark.parametrize("name", ["architecture", "aot"])
def test_examples_in_documents_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each document's one after the other, as somebody would who reads it."""
    programs = re.findall(r"```python\n(.*?)```", (ROOT / f"docs/{name}.md").read_text(), flags=re.DOTALL)
    assert programs
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    for program in programs:
        exec(program, namespace)


def test_no_file_is_longer_than_600_lines() -> None:
    files = [*ROOT.glob("relvm/**/*.py"), *ROOT.glob("csrc/*.[ch]"), *ROOT.glob("tests/**/*.py")]
    long = [str(f.relative_to(ROOT)) for f in files if len(f.read_text().splitlines()) > 600]
    assert not long


def test_nothing_generated_or_heavy_is_committed() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        assert not name.endswith((".onnx", ".so", ".rvm", ".o", ".npz")), name
