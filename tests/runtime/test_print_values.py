"""Limits on the text of `vm.builtin.print` and of the `repr` of tensors."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.assembly_programs import machine_of

from relvm.bytecode.program import Shape
from relvm.runtime.print_values import MAX_CHARACTERS

PRINTING = "f13 = bytecode main(x) registers 1\n  0: call vm.builtin.print(ctx, r0, r0)\n  1: ret r0"
COPYING = "f13 = bytecode main(x) registers 1\n  0: call r0 = vm.builtin.copy(r0)\n  1: ret r0"
DOUBLING = """
f13 = bytecode main(n, value) registers 3
  0: call r1 = vm.builtin.make_tuple(r1, r1)
  1: prim r0 = sub_i64(r0, 1)
  2: prim r2 = le_i64(r0, 0)
  3: if r2 -> 0
  4: call vm.builtin.print(ctx, r1)
  5: ret r0
"""


def test_values_are_printed_side_by_side(capsys: pytest.CaptureFixture) -> None:
    machine = machine_of(PRINTING)
    printed = {
        "a\x1b": "a\\x1b a\\x1b\n",
        ((1.5, "a\x1b"), ()): "((1.5, 'a\\x1b'), ()) ((1.5, 'a\\x1b'), ())\n",
        (Shape((2, 3)),): "(Shape(2, 3),) (Shape(2, 3),)\n",
    }
    for value, expected in printed.items():
        machine["main"](value)
        assert capsys.readouterr().out == expected


def test_a_tuple_that_expands_without_end_is_printed_in_part(capsys: pytest.CaptureFixture) -> None:
    machine = machine_of(DOUBLING)
    machine["main"](1, [(1,), "a"])
    assert capsys.readouterr().out == "([(1,), 'a'], [(1,), 'a'])\n"
    for depth in (40, 100):
        machine["main"](depth, [(1,), "a"])
        printed = capsys.readouterr().out
        assert printed.count(")") > 30 and printed.endswith("...\n") and len(printed) == MAX_CHARACTERS + 4


LONG = "x" * (MAX_CHARACTERS + 1)
LARGE = {
    "a string": LONG,
    "escapes": "\x1b" * MAX_CHARACTERS,
    "a string in many places": [LONG],
    "a shape": Shape(range(1_000_000)),
    "a tensor in many places": [np.arange(100.0)],
    "lists without items": [[]],
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_value_is_printed_in_part(name: str, capsys: pytest.CaptureFixture) -> None:
    value = LARGE[name]
    if isinstance(value, list):
        machine_of(DOUBLING)["main"](20, value)
    else:
        machine_of(PRINTING)["main"](value)
    printed = capsys.readouterr().out
    assert printed.endswith("...\n") and len(printed) == MAX_CHARACTERS + 4


TENSORS = {
    "one axis": (
        np.zeros(1_000_000),
        r"Tensor\(\[0., 0., 0., \.\.\., 0., 0., 0.\], shape=\(1000000,\), dtype=float64\)",
    ),
    "few axes": (np.zeros((9, 9, 9, 9)), r"Tensor\(\[\[\[\[0., 0., 0., \.\.\."),
    "few elements": (np.zeros((1,) * 6), r"Tensor\(\[\[\[\[\[\[0.\]\]\]\]\]\], shape"),
    "many axes": (np.zeros((2,) * 24, np.int8), r"Tensor\(\[0, 0, 0, \.\.\., 0, 0, 0\], shape=\(2, 2"),
    "long strings": (np.array(["x" * 1_000_001] * 3, object), r"Tensor\(\.\.\., shape=\(3,\), dtype=object\)$"),
    "short strings": (np.array(["a", "b"], object), r"Tensor\(\['a', 'b'\], shape=\(2,\), dtype=object\)$"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_a_large_tensor_is_shown_in_short(name: str) -> None:
    elements, expected = TENSORS[name]
    shown = repr(machine_of(COPYING)["main"](elements))
    assert len(shown) < 10_000 and re.match(expected, shown), shown[:1000]
