"""Tests of the simplifications when kernels are built: their values must be those of the expressions as written."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from relvm.ir.dtypes import BOOL, F32, I32, I64
from relvm.ir.kernel_def_interpreter import evaluate_scalar
from relvm.ir.loop_ir import (
    Fail,
    IfThen,
    Let,
    Literal,
    Local,
    Loop,
    Operation,
    Scalar,
    constant_value,
    maximum,
    minimum,
    select,
)
from relvm.ir.scalar_ops import COMPARISONS
from relvm.kernels.kernel_builder import KernelBuilder

X, B = Local("x", I64), Local("b", BOOL)
NUMBERS = (0, 1, 2, 7, -1, -7, 2**31, -(2**62), 2**62, 2**63 - 1, -(2**63))


def evaluate(scalar: Scalar, x: int, b: bool) -> int | bool:
    return evaluate_scalar(scalar, {X: np.int64(x), B: np.bool_(b)})


@pytest.mark.parametrize("function", ["add", "sub", "mul", "div", "rem", *sorted(COMPARISONS)])
def test_operations_of_integers_have_the_value_of_c(function: str) -> None:
    simplified = 0
    for a, b in itertools.product((*NUMBERS, None), repeat=2):
        if function in ("div", "rem") and (b == 0 or (a, b) == (-(2**63), -1)):
            continue  # C does not define the result
        left, right = (X if value is None else Literal(value, I64) for value in (a, b))
        built = left._binary(function, right)
        simplified += not isinstance(built, Operation)
        for x in NUMBERS:
            if function in ("div", "rem") and b is None and (x == 0 or (x == -1 and a == -(2**63))):
                continue
            expected = evaluate(Operation(function, (left, right), I64), x, False)
            assert evaluate(built, x, False) == expected, (a, function, b, x)
            assert built.dtype == (BOOL if function in COMPARISONS else I64)
    assert simplified > 8


def test_a_division_by_zero_is_left_to_the_run_time() -> None:
    for function in ("div", "rem"):
        assert isinstance(Literal(7, I64)._binary(function, Literal(0, I64)), Operation)
        assert isinstance(X._binary(function, Literal(0, I64)), Operation)


def test_logical_operators_and_selections() -> None:
    for value, known, x in itertools.product((False, True), repeat=3):
        literal = Literal(known, BOOL)
        assert evaluate(B.logical_and(literal), 0, value) == (value and known)
        assert evaluate(literal.logical_and(B), 0, value) == (known and value)
        assert evaluate(B.logical_or(literal), 0, value) == (value or known)
        assert evaluate(literal.logical_or(B), 0, value) == (known or value)
        assert select(literal, X, Literal(5, I64)) is X or not known
        assert evaluate(select(B, X, Literal(5, I64)), x, value) == (x if value else 5)
    for a, b in itertools.product((0, 3, -4), repeat=2):
        assert evaluate(minimum(Literal(a, I64), b), 0, False) == min(a, b)
        assert evaluate(maximum(Literal(a, I64), b), 0, False) == max(a, b)


@pytest.mark.parametrize("dtype", [F32, I32])
def test_other_dtypes_are_not_simplified(dtype) -> None:
    """-0.0 + 0 is 0.0, and x * 0 is NaN for an infinite x."""
    x = Local("x", dtype)
    for function in ("add", "sub", "mul", "div"):
        assert isinstance(x._binary(function, Literal(0, dtype)), Operation)
        assert isinstance(x._binary(function, Literal(1, dtype)), Operation)


def test_branches_and_loops_with_literal_bounds() -> None:
    k = KernelBuilder()
    with k.branch(Literal(True, BOOL)):
        k.variable("always", X)
    with k.branch(Literal(False, BOOL)):
        k.variable("never", X)
    k.fail(Literal(False, BOOL), "SHAPE_ERROR", "never")
    k.fail(Literal(True, BOOL), "SHAPE_ERROR", "always")
    k.fail(B, "SHAPE_ERROR", "sometimes")
    with k.loop(4, start=3) as i:
        assert isinstance(i, Literal) and i.value == 3
    with k.loop(1, simd=True) as i:
        assert isinstance(i, Local)
    total = k.variable("total", Literal(0, I64))
    with k.loop(1, reduce=(("add", total),)) as i:
        assert isinstance(i, Local)
    with k.loop(0) as i:
        assert isinstance(i, Local)
    statements = k.finish()
    assert [type(item) for item in statements] == [Let, Fail, IfThen, Loop, Let, Loop, Loop]
    assert statements[0].local.name == "always" and statements[1].message == "always"


def test_a_bound_that_wraps_around_is_not_a_constant() -> None:
    largest = Literal(2**63 - 1, I64)
    wrapped = largest + Literal(2**62, I64) + 1
    assert constant_value(wrapped) is None and constant_value(largest) == 2**63 - 1
    k = KernelBuilder()
    with k.loop(wrapped, start=largest + Literal(2**62, I64)) as i:
        assert isinstance(i, Local)


def test_a_variable_is_not_replaced_by_its_first_value() -> None:
    k = KernelBuilder()
    assert k.let("size", Literal(3, I64)).value == 3
    assert isinstance(k.let("factor", Literal(3.0, F32)), Local)
    count = k.variable("count", Literal(3, I64))
    k.assign(count, count + 1)
    assert len(k.finish()) == 3
