"""`pytest -m fast` has tests of every folder of relvm."""

from __future__ import annotations

from documents import ROOT
from fast import FAST, SLOW, is_fast, may_hold_fast


def test_every_folder_has_fast_tests() -> None:
    folders = {path.parent.name for path in ROOT.glob("relvm/*/__init__.py")}
    assert {folder for folder in FAST if folder} == folders
    for entry in (*SLOW, *(entry for entries in FAST.values() for entry in entries)):
        file, _, test = entry.partition("::")
        path = ROOT / "tests" / file
        assert path.exists(), entry
        assert not test or f"def {test}(" in path.read_text(), entry
        assert (entry in SLOW) != is_fast(f"{entry}::test" if "::" not in entry else f"{entry}[1]")


def test_other_files_are_not_collected() -> None:
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    held = [path for path in paths if may_hold_fast(path.relative_to(ROOT / "tests"))]
    assert 20 < len(held) < len(paths) / 2
