"""Constants are immutable copies of arrays, or the arrays themselves if these are new."""

from __future__ import annotations

import numpy as np
import pytest

from relvm.ir.expr import constant


def test_a_constant_is_a_copy() -> None:
    array = np.arange(4)
    kept = constant(array)
    array[0] = 9
    assert kept.value.tolist() == [0, 1, 2, 3] and not kept.value.flags.writeable


def test_a_new_array_is_not_copied() -> None:
    array = np.arange(4)
    assert constant(array, is_new=True).value is array
    assert not array.flags.writeable


@pytest.mark.parametrize("select", [lambda a: a[1:], lambda a: a.T, lambda a: a.reshape(-1)])
def test_views_are_copied(select) -> None:
    """A view would keep the whole array alive, and another view could change it."""
    array = np.arange(6).reshape(2, 3).copy()
    kept = constant(select(array), is_new=True)
    expected = select(array).tolist()
    array[:] = 0
    assert kept.value.tolist() == expected and kept.value.flags.c_contiguous and kept.value.base is None


def test_a_new_array_in_another_order_is_copied() -> None:
    kept = constant(np.asfortranarray(np.arange(6).reshape(2, 3)), is_new=True)
    assert kept.value.flags.c_contiguous and kept.value.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_dtype_of_a_new_array() -> None:
    assert constant(np.float64([1.5]), is_new=True).value.dtype == np.float64
    assert constant(np.float64([1.5]), "f32", is_new=True).value.dtype == np.float32
    assert constant(np.array(["a"]), is_new=True).value.dtype == object
