"""The lists of tests/support/stages.py name tests that exist, and the fast stage has tests of every folder of relvm."""

from __future__ import annotations

from collections import Counter

from support.documents import ROOT
from support.stages import CLIENTS, CROSS, DOCS, FAST, LONGEST, SLOW, may_hold, stage_of, starting_order


def test_every_folder_has_fast_tests() -> None:
    folders = {path.parent.name for path in ROOT.glob("relvm/*/__init__.py")}
    assert {folder for folder in FAST if folder} == folders


def test_listed_tests_exist() -> None:
    fast = tuple(entry for entries in FAST.values() for entry in entries)
    listed = {"full": SLOW, "fast": fast, "docs": DOCS, "cross": CROSS, "clients": CLIENTS}
    for stage, entries in listed.items():
        for entry in entries:
            file, _, test = entry.partition("::")
            path = ROOT / "tests" / file
            assert path.exists(), entry
            assert not test or f"def {test}(" in path.read_text(), entry
            assert stage_of(f"{entry}::test" if "::" not in entry else f"{entry}[1]") == stage, entry


def test_long_files_begin_first_and_small_ones_last() -> None:
    assert all((ROOT / "tests" / file).exists() for file in LONGEST)
    positions = starting_order(["a.py", "b.py", "b.py", LONGEST[1], LONGEST[0]])
    assert sorted(positions, key=positions.__getitem__)[-3:] == [LONGEST[-1], "b.py", "a.py"]
    assert positions[LONGEST[0]] < positions[LONGEST[1]]


def test_files_of_other_stages_are_not_collected() -> None:
    paths = [path.relative_to(ROOT / "tests") for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    assert 20 < sum(may_hold("fast", path) for path in paths) < len(paths) / 2
    assert all(may_hold("docs", path) == (stage_of(f"{path.as_posix()}::test") == "docs") for path in paths)
    assert all(may_hold("full", path) and may_hold("not slow", path) for path in paths)


def test_names_of_test_files_are_unique() -> None:
    """Pytest imports each test file under its name without the folder."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
