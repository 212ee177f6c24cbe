"""Slices of axes that are too long to have memory in a test: the type rule."""

from __future__ import annotations

import pytest

from relvm import ops
from relvm.ir.dtypes import U8
from relvm.ir.expr import Var
from relvm.ir.types import TensorType

LONG = 1 << 33


@pytest.mark.parametrize(
    ("begin", "end", "step", "expected"),
    [
        (0, 2**63 - 1, 1, LONG),
        (7, 1 << 31, 1, LONG - 7),
        (-(2**31), -1, 1, LONG - 1),
        (2**63 - 1, -(2**63), -2, LONG // 2),
        (1 << 31, 2**63 - 1, 1, 0),
    ],
)
def test_a_far_bound_stands_for_an_end_of_a_long_axis(begin: int, end: int, step: int, expected: int) -> None:
    x = Var("x", type=TensorType(U8, (LONG,)))
    call = ops.slice(x, begin=(begin,), end=(end,), steps=(step,))
    assert call.type == TensorType(U8, (expected,))
