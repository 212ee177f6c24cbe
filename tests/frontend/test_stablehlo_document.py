"""docs/stablehlo.md lists the supported operations."""

from __future__ import annotations

import pytest
from support.documented_table import check_table

from relvm.frontend.stablehlo.support_table import as_markdown


def test_the_table_is_that_of_the_declarations(request: pytest.FixtureRequest) -> None:
    check_table("stablehlo.md", as_markdown(), update=request.config.getoption("--update"))
