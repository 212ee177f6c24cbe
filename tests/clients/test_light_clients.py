"""Clients that are quick to install and to run.  CI runs them; test_clients.py runs all."""

from __future__ import annotations

import pytest
from clients.catalogue import LIGHT
from clients.comparison import difference
from clients.running import expect_equal_results


@pytest.mark.parametrize("name", LIGHT)
def test_results_are_equal(name: str) -> None:
    expect_equal_results(name)


@pytest.mark.parametrize(
    ("ours", "theirs", "where"),
    [
        ([1.0, "a", None], [1.00001, "a", None], ""),
        (float("nan"), float("nan"), ""),
        (2000.0, 2000.1, ""),
        ({"a": [1, 2]}, {"a": [1, 3]}, "result['a'][1]: 2 instead of 3"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "result: keys ['a', 'b'] instead of ['b', 'a']"),
        ([1], [1, 2], "result: 1 items instead of 2"),
        (1, 1.0, "result: 1 instead of 1.0"),
        (True, 1, "result: True instead of 1"),
        (0.5, 0.501, "result: 0.5 instead of 0.501"),
        (float("inf"), 1e9, "result: inf instead of 1000000000.0"),
        (float("nan"), 1.0, "result: nan instead of 1.0"),
    ],
)
def test_difference_states_the_place(ours: object, theirs: object, where: str) -> None:
    assert difference(ours, theirs, 1e-4) == where
