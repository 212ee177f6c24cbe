"""docs/onnx.md lists what can be imported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from frontend.onnx_models import onnx

from relvm.frontend.onnx.support_table import as_markdown, rows

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "onnx.md"
MARK = "<!-- the table -->\n"


def test_the_table_is_that_of_the_declarations(request: pytest.FixtureRequest) -> None:
    text, _, table = DOCUMENT.read_text().partition(MARK)
    (stated,) = re.findall(r"the schemas of onnx ([\d.]+)", text)
    if onnx.__version__ != stated:
        pytest.skip(f"the table was made with onnx {stated}")
    if request.config.getoption("--update"):
        DOCUMENT.write_text(f"{text}{MARK}\n{as_markdown()}")
        return
    assert table.strip() == as_markdown().strip(), "run pytest --update, and read the diff"


def test_every_row_has_an_operator_that_can_be_told_from_others() -> None:
    names = [(row.domain, row.name) for row in rows()]
    assert len(names) == len(set(names)) > 200
    assert all(row.types for row in rows() if not row.domain and row.versions)
