"""The ONNX suite's cases of what takes parts, positions, sizes and bits, in both modes."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")
from frontend.node_cases import INDEXING_OPERATORS, Suite

from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx

SUITE = Suite(INDEXING_OPERATORS)


@pytest.mark.parametrize("name", SUITE.running)
def test_case(name: str) -> None:
    SUITE.check(name)


@pytest.mark.parametrize("name", SUITE.skipped)
def test_what_is_left_out_is_refused(name: str) -> None:
    with pytest.raises(RelvmUnsupportedError, match=SUITE.skipped[name]):
        from_onnx(SUITE.model_and_inputs(name)[0])
