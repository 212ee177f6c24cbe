"""Puts this folder's own helpers on the path; fixtures of its tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which builds are kept during the test."""
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"
