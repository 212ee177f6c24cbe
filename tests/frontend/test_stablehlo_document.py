"""docs/stablehlo.md lists the supported operations."""

from __future__ import annotations

from pathlib import Path

import pytest

from relvm.frontend.stablehlo.support_table import as_markdown

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "stablehlo.md"
MARK = "<!-- the table -->\n"


def test_the_table_is_that_of_the_declarations(request: pytest.FixtureRequest) -> None:
    text, _, table = DOCUMENT.read_text().partition(MARK)
    if request.config.getoption("--update"):
        DOCUMENT.write_text(f"{text}{MARK}\n{as_markdown()}")
        return
    assert table.strip() == as_markdown().strip(), "run pytest --update, and read the diff"
