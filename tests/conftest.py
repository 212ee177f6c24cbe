"""Options and fixtures of the whole suite."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "examples"))
sys.path.insert(0, str(ROOT / "docs" / "_extensions"))  # what the site is made by
sys.path.append(str(ROOT))  # benchmarks.models.catalogue; at the end, so that an installed relvm is what is tested

from fast import is_fast, may_hold_fast  # noqa: E402


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect no other file for `-m fast`: importing all tests takes longer than the fast ones."""
    is_left_out = config.option.markexpr == "fast" and not may_hold_fast(collection_path.relative_to(ROOT / "tests"))
    return True if is_left_out else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_fast(item.nodeid.removeprefix("tests/")):
            item.add_marker("fast")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite what golden cases expect; then read the diff")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return request.config.getoption("--update")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which builds are kept during the test."""
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"
