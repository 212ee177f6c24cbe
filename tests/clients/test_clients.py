"""All clients.  `pytest -m clients` runs them; CI runs the light ones (test_light_clients.py)."""

from __future__ import annotations

from pathlib import Path

import pytest
from clients.catalogue import CLIENTS
from clients.environments import PROGRAMS
from clients.running import expect_equal_results


@pytest.mark.parametrize("name", CLIENTS)
def test_results_are_equal(name: str) -> None:
    expect_equal_results(name)


def test_each_program_is_listed() -> None:
    found = {path.stem.removeprefix("use_") for path in Path(PROGRAMS).glob("use_*.py")}
    assert found == set(CLIENTS) and len(CLIENTS) >= 25


def test_programs_do_not_mention_relvm() -> None:
    for path in Path(PROGRAMS).glob("*.py"):
        assert "relvm" not in path.read_text(), path.name
