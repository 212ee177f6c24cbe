"""Operators have the algebraic properties that they declare, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from ops.sample_values import NUMPY_NAMES, array

import relvm.ops  # noqa: F401 - declares the operators
from relvm.errors import RelvmTypeError
from relvm.ir.dtypes import ALL_DTYPES, dtype_of
from relvm.ir.operator import Operator, operators
from relvm.ir.types import TensorType

OPERATORS = list(operators().values())


def values(operator: Operator) -> Iterator[np.ndarray]:
    """Yield an array of each dtype that the operator accepts, including special values such as NaN."""
    for name in NUMPY_NAMES:
        dtype = ALL_DTYPES[name]
        type_ = TensorType(dtype, (64,))
        try:
            operator.infer((type_,) * len(operator.parameters), operator.bind((type_,) * len(operator.parameters), {}))
        except RelvmTypeError:
            continue
        yield array(dtype.name, 64)


def full(like: np.ndarray, number: complex) -> np.ndarray:
    return np.full(like.shape, number, like.dtype)


def assert_same(got: np.ndarray, wanted: np.ndarray) -> None:
    """Assert that two arrays are bit-identical, except that all NaNs count as equal."""
    assert got.dtype == wanted.dtype
    nan = wanted != wanted
    np.testing.assert_array_equal(got != got, nan)
    assert got[~nan].tobytes() == wanted[~nan].tobytes()


def declaring(trait: str) -> list[Operator]:
    return [operator for operator in OPERATORS if getattr(operator.traits, trait)]


@pytest.mark.parametrize("operator", declaring("commutative"), ids=repr)
def test_a_commutative_operator(operator: Operator) -> None:
    for x in values(operator):
        y = x[::-1].copy()
        if dtype_of(x.dtype).is_float and operator.name in ("maximum", "minimum"):
            y[y == 0] = 1  # the maximum of 0 and -0 may be either
        assert_same(operator.numpy(x, y), operator.numpy(y, x))


@pytest.mark.parametrize("operator", declaring("neutral"), ids=repr)
def test_a_neutral_element(operator: Operator) -> None:
    for x in values(operator):
        e = full(x, operator.traits.neutral(dtype_of(x.dtype)))
        assert_same(operator.numpy(x, e), x)
        if operator.traits.commutative:
            assert_same(operator.numpy(e, x), x)


@pytest.mark.parametrize("operator", declaring("involution"), ids=repr)
def test_an_involution(operator: Operator) -> None:
    for x in values(operator):
        assert_same(operator.numpy(operator.numpy(x)), x)


@pytest.mark.parametrize("operator", declaring("idempotent"), ids=repr)
def test_an_idempotent_operator(operator: Operator) -> None:
    for x in values(operator):
        once = operator.numpy(x)
        assert_same(operator.numpy(once), once)


def test_samples_have_special_values() -> None:
    found = [x for x in values(operators()["add"]) if dtype_of(x.dtype) == ALL_DTYPES["f32"]]
    assert len(found) == 1 and np.isnan(found[0]).any() and np.isinf(found[0]).any()
    assert {str(dtype_of(x.dtype)) for x in values(operators()["bitwise_and"])} >= {"i8", "u8", "i64", "u64"}
