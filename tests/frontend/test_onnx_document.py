"""docs/onnx.md lists what can be imported."""

from __future__ import annotations

import re

import pytest
from frontend.onnx_models import onnx
from support.documented_table import DOCS, check_table

from relvm.frontend.onnx.support_table import as_markdown, rows

DOCUMENT = "onnx.md"


def test_the_table_is_that_of_the_declarations(request: pytest.FixtureRequest) -> None:
    (stated,) = re.findall(r"the schemas of onnx ([\d.]+)", (DOCS / DOCUMENT).read_text())
    if onnx.__version__ != stated:
        pytest.skip(f"the table was made with onnx {stated}")
    check_table(DOCUMENT, as_markdown(), update=request.config.getoption("--update"))


def test_every_row_has_an_operator_that_can_be_told_from_others() -> None:
    names = [(row.domain, row.name) for row in rows()]
    assert len(names) == len(set(names)) > 200
    assert all(row.types for row in rows() if not row.domain and row.versions)
