"""Dimension arithmetic in canonical form agrees with arithmetic on Python integers, and proofs are correct."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relvm.frontend.text.lexer import Source
from relvm.frontend.text.types import TypeReader
from relvm.ir.symbolic import (
    DimVar,
    as_var,
    difference,
    dim_op,
    dim_var,
    dim_vars,
    evaluate_with,
    exact_quotient,
    format_dim,
    product,
    substitute,
    var_dim,
)

VARS = tuple(DimVar(name) for name in "abc")
FUNCTIONS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "min": min,
    "max": max,
}
SIZES = st.lists(st.integers(0, 9), min_size=3, max_size=3)


def trees(depth: int = 3) -> st.SearchStrategy:
    """Generate expressions: variables, integers, and tuples (function, left, right)."""
    leaf = st.one_of(st.sampled_from(VARS), st.integers(-4, 6))
    inner = lambda part: st.tuples(st.sampled_from(sorted(FUNCTIONS)), part, part)  # noqa: E731
    return st.recursive(leaf, inner, max_leaves=2**depth)


def build(tree):
    match tree:
        case DimVar():
            return var_dim(tree)
        case int():
            return tree
        case function, left, right:
            return dim_op(function, build(left), build(right))


def compute(tree, values):
    match tree:
        case DimVar():
            return values[tree]
        case int():
            return tree
        case function, left, right:
            return FUNCTIONS[function](compute(left, values), compute(right, values))


def attempt(action, *args):
    try:
        return action(*args)
    except ZeroDivisionError:
        return None


@given(trees(), SIZES)
def test_the_canonical_form_has_the_value_of_the_expression(tree, sizes):
    values = dict(zip(VARS, sizes, strict=True))
    dim, expected = attempt(build, tree), attempt(compute, tree, values)
    if dim is None or expected is None:
        return
    assert attempt(evaluate_with, dim, values.get) == expected


@given(trees(), trees(), SIZES)
def test_a_proven_difference_is_the_difference(first, second, sizes):
    values = dict(zip(VARS, sizes, strict=True))
    left, right = attempt(build, first), attempt(build, second)
    if left is None or right is None or (apart := difference(left, right)) is None:
        return
    x, y = attempt(evaluate_with, left, values.get), attempt(evaluate_with, right, values.get)
    if x is not None and y is not None:
        assert x - y == apart


@given(trees(2), trees(2), SIZES)
def test_an_exact_quotient_times_the_divisor_is_the_dividend(first, second, sizes):
    values = dict(zip(VARS, sizes, strict=True))
    left, right = attempt(build, first), attempt(build, second)
    if left is None or right is None or (quotient := exact_quotient(left, right)) is None:
        return
    x, y, q = (attempt(evaluate_with, dim, values.get) for dim in (left, right, quotient))
    if None not in (x, y, q):
        assert q * y == x


@given(trees())
def test_text_and_back_is_the_same_dimension(tree):
    dim = attempt(build, tree)
    if dim is None:
        return
    names = {var.name: var_dim(var) for var in VARS}
    reader = TypeReader(Source(format_dim(dim), "<dim>"), names)
    assert reader.dim() == dim
    reader.end()


@given(trees(), trees())
def test_equal_polynomials_are_equal_however_they_are_written(first, second):
    left, right = attempt(build, first), attempt(build, second)
    if left is None or right is None:
        return
    assert left + right == right + left
    assert left * right == right * left
    assert (left + right) * 2 - right == left * 2 + right
    assert left - left == 0


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (lambda n, m: n + 1, "n + 1"),
        (lambda n, m: m + n, "m + n"),
        (lambda n, m: n + m, "m + n"),
        (lambda n, m: 2 * n * m - 3, "m * n * 2 - 3"),
        (lambda n, m: (n + 1) // 2, "((n + 1) // 2)"),
        (lambda n, m: (4 * n + 3) // 2, "n * 2 + 1"),
        (lambda n, m: (n - 1) // 2 + 1, "((n + 1) // 2)"),
        (lambda n, m: ((n - 1) // 2 + 1) // 2, "((n + 1) // 4)"),
        (lambda n, m: (n // 3 * 2 + 1) // 2, "(n // 3)"),
        (lambda n, m: (n // 3 + m // 2) // 2, "(((m // 2) + (n // 3)) // 2)"),
        (lambda n, m: (n * 4) % 4, "0"),
        (lambda n, m: dim_op("max", n, 1), "max(1, n)"),
        (lambda n, m: dim_op("min", n, n + 1), "n"),
        (lambda n, m: dim_op("max", 0, n * m + m // 2), "m * n + (m // 2)"),
        (lambda n, m: dim_op("max", 0, n - 1), "max(0, n - 1)"),
        (lambda n, m: dim_op("min", n + dim_op("max", m - 1, 0), n), "n"),
        (lambda n, m: dim_op("min", n + dim_op("min", m - 1, 0), n), "min(n, n + min(0, m - 1))"),
        (lambda n, m: dim_op("max", m % (n + 1), 0), "(m % (n + 1))"),
        (lambda n, m: 0 - n, "-n"),
    ],
)
def test_canonical_forms(dim, text):
    n, m = dim_var("n"), dim_var("m")
    assert format_dim(dim(n, m)) == text


def test_two_variables_of_one_name_are_not_equal():
    assert dim_var("n") != dim_var("n")
    assert difference(dim_var("n"), dim_var("n")) is None


def test_substitution_of_a_variable_inside_an_operation():
    n, m = dim_var("n"), dim_var("m")
    dim = (n + m) // 2
    assert substitute(dim, {as_var(n): 3, as_var(m): 4}) == 3
    assert substitute(dim, {as_var(m): n}) == n
    assert set(dim_vars(dim)) == {as_var(n), as_var(m)}


def test_a_product_of_nothing_is_one():
    n = dim_var("n")
    assert product(()) == 1
    assert product((n, 2, n)) == n * n * 2


@pytest.mark.parametrize("function", ["floordiv", "mod"])
def test_division_by_a_constant_zero_is_an_error(function):
    with pytest.raises(ZeroDivisionError, match="0"):
        dim_op(function, dim_var("n"), 0)
