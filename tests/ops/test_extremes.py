"""`maximum` and `minimum` of a constant: a simpler kernel, with the bits of the general one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.modes import assert_same_bits, machines

from relvm.ir.builder import Builder
from relvm.ir.dtypes import F32
from relvm.ir.expr import Module
from relvm.ir.symbolic import dim_var
from relvm.ir.types import TensorType

VALUES = np.array([np.nan, -np.inf, -2, -1, -0.0, 0, 0.5, 1, 2, np.inf], np.float32)
CONSTANTS = [np.float32(number) for number in (0, -0.0, 1, -2, np.inf, -np.inf, np.nan)]


def module(op: str, *, constant_first: bool) -> Module:
    """A function that returns the results for each constant, and for a tensor with each constant."""
    b = Builder()
    vector, scalars = TensorType(F32, (dim_var("n"),)), [(f"c{i}", TensorType(F32, ())) for i in range(len(CONSTANTS))]
    with b.function("main", [("x", vector), *scalars]) as (x, *variables):
        pairs = ((x, other) if not constant_first else (other, x) for other in (*CONSTANTS, *variables))
        b.ret(b.tuple_(*itertools.starmap(lambda left, right: b.op(op, left, right), pairs)))
    return b.module()


@pytest.mark.parametrize("constant_first", [False, True])
@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_constants_give_the_bits_of_variables(op: str, *, constant_first: bool) -> None:
    for machine in machines(module(op, constant_first=constant_first)).values():
        results = [result.numpy() for result in machine["main"](VALUES, *CONSTANTS)]
        of_constants, of_variables = results[: len(CONSTANTS)], results[len(CONSTANTS) :]
        for constant, got, expected in zip(CONSTANTS, of_constants, of_variables, strict=True):
            assert_same_bits(np.where(np.isnan(got), np.nan, got), np.where(np.isnan(expected), np.nan, expected))
            np.testing.assert_array_equal(got, getattr(np, op)(VALUES, constant))
