"""Tests of interval arithmetic on dimensions, and of declared bounds of functions."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relvm.errors import RelvmNameError, RelvmShapeError, RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.ir.symbolic import AnyDim, as_var, dim_op, dim_var, evaluate_with
from relvm.ir.value_ranges import Range, declared_ranges, range_of

N, M = dim_var("n"), dim_var("m")
OPERATORS = ("add", "sub", "mul", "floordiv", "mod", "min", "max")


@st.composite
def dims(draw: st.DrawFn, depth: int = 3) -> AnyDim:
    if depth == 0 or draw(st.booleans()):
        return draw(st.one_of(st.sampled_from((N, M)), st.integers(-4, 9)))
    left, right = draw(dims(depth=depth - 1)), draw(dims(depth=depth - 1))
    function = draw(st.sampled_from(OPERATORS))
    if function in ("floordiv", "mod") and right == 0:
        return left
    try:
        return dim_op(function, left, right)
    except ZeroDivisionError:
        return left


@given(dims(), st.integers(0, 6), st.integers(0, 6), st.integers(0, 6), st.integers(0, 6))
@settings(max_examples=500)
def test_a_range_holds_every_value(dim: AnyDim, n: int, more_n: int, m: int, more_m: int) -> None:
    found = range_of(dim, {as_var(N): Range(n, n + more_n), as_var(M): Range(m)})
    for i in range(n, n + more_n + 1):
        for j in range(m, m + more_m + 1):
            values = {as_var(N): i, as_var(M): j}
            try:
                value = evaluate_with(dim, values.get)
            except ZeroDivisionError:
                continue
            assert found.low <= value <= found.high


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        (N * 2 + 1, Range(9, 65)),
        (40 - N, Range(8, 36)),
        (N * M, Range(0, inf)),
        (N // 3, Range(1, 10)),
        (100 // N, Range(3, 25)),
        (N % 8, Range(0, 7)),
        (dim_op("min", M, N), Range(0, 32)),
        (dim_op("max", M, N), Range(4, inf)),
        (N - M, Range(-inf, 32)),
    ],
    ids=str,
)
def test_ranges_for_n_from_4_to_32(dim: AnyDim, expected: Range) -> None:
    assert range_of(dim, {as_var(N): Range(4, 32)}) == expected


def stated(**attributes: object) -> dict[str, Range]:
    main = parse_module("def main(x: f32[n, m], s: shape[k]) -> f32[n, m] = x")["main"]
    ranges = declared_ranges(replace(main, attributes=tuple(attributes.items())))
    return {var.name: range_ for var, range_ in ranges.items()}


def test_bounds_are_stated_by_attributes() -> None:
    assert stated() == {}
    assert stated(upper_bounds=(("n", 32), ("k", 0))) == {"n": Range(0, 32), "k": Range(0, 0)}
    assert stated(upper_bounds=(("n", 32),), lower_bounds=(("n", 32), ("m", 2))) == {
        "n": Range(32, 32),
        "m": Range(2, inf),
    }


@pytest.mark.parametrize(
    ("attributes", "error", "words"),
    [
        (
            {"upper_bounds": (("n", -1),)},
            RelvmShapeError,
            "main: upper_bounds: expected a bound of at least 0 .* n, got -1",
        ),
        ({"lower_bounds": (("m", -2),)}, RelvmShapeError, "main: lower_bounds: .* dimension m, got -2"),
        ({"upper_bounds": (("n", 3.0),)}, RelvmTypeError, "expected an integer for dimension n, got 3.0"),
        ({"upper_bounds": (("n", True),)}, RelvmTypeError, "expected an integer for dimension n, got True"),
        (
            {"upper_bounds": (("n", 4),), "lower_bounds": (("n", 5),)},
            RelvmShapeError,
            "main: dimension n: lower bound 5 exceeds upper bound 4",
        ),
        ({"upper_bounds": (("nn", 4),)}, RelvmNameError, "no parameter's type has a dimension nn; did you mean n"),
        ({"upper_bounds": (("n", 4), ("n", 5))}, RelvmShapeError, "dimension n has two bounds"),
        ({"upper_bounds": ("n", 4)}, RelvmTypeError, "expected pairs of a dimension and its bound"),
        ({"upper_bounds": 4}, RelvmTypeError, "expected pairs of a dimension and its bound, got 4"),
    ],
    ids=lambda value: "",
)
def test_bounds_that_are_invalid(attributes: dict, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        stated(**attributes)
