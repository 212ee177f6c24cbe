"""Properties of all exports.  tests/support/aot_export.py exports the programs that other tests run in every mode."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.aot_export import REFUSED

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("construct", REFUSED)
def test_the_tests_whose_programs_are_refused_are_there(construct: str) -> None:
    for test in REFUSED[construct]:
        path, _, name = test.partition("::")
        text = (TESTS / f"{path}.py").read_text()
        assert re.search(rf"^def {re.escape(name.partition('[')[0])}\(", text, re.MULTILINE), test
