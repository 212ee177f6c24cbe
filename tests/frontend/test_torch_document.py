"""docs/pytorch.md lists the supported operators."""

from __future__ import annotations

from pathlib import Path

import pytest

from relvm.frontend.torch.support_table import as_markdown

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "pytorch.md"
MARK = "<!-- the table -->\n"


def test_the_table_is_that_of_the_declarations(request: pytest.FixtureRequest) -> None:
    text, _, table = DOCUMENT.read_text().partition(MARK)
    if request.config.getoption("--update"):
        DOCUMENT.write_text(f"{text}{MARK}\n{as_markdown()}")
        return
    assert table.strip() == as_markdown().strip(), "run pytest --update, and read the diff"
