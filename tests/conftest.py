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
