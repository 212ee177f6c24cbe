"""Tests of scalar arithmetic.

The reference interpreter, bytecode and compiled code agree on every operator in scalar_operators.def.
"""

from __future__ import annotations

import itertools
import math
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.modes import MODES, assert_same_bits

from relvm import vm
from relvm.errors import RelvmArithmeticError, RelvmError, RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.ir.dtypes import BOOL, F64, I64
from relvm.ir.expr import Block, Function, Module, PrimCall, Var
from relvm.ir.scalar_ops import DTYPE_OF_LETTER, evaluate_row, find_row
from relvm.ir.types import PrimType
from relvm.tables import PRIM_OPERATORS

SMALLEST, LARGEST = -(2**63), 2**63 - 1
INTEGERS = (SMALLEST, SMALLEST + 1, -(2**53) - 1, -7, -2, -1, 0, 1, 2, 3, 7, 63, 64, 2**53 + 1, LARGEST)
FLOATS = (
    -math.inf,
    -1e308,
    -(2.0**63),
    -7.5,
    -1.0,
    -5e-324,
    -0.0,
    0.0,
    5e-324,
    0.1,
    1.0,
    3.0,
    2.0**63,
    1e308,
    math.inf,
)
VALUES = {"i": INTEGERS, "f": (*FLOATS, math.nan), "b": (False, True)}
ANY = {"i": st.integers(SMALLEST, LARGEST), "f": st.floats(), "b": st.booleans()}


@cache
def machines() -> list[vm.VirtualMachine]:
    """Return a machine for each mode, with a function for each scalar operator."""
    functions = []
    for row in PRIM_OPERATORS:
        params = tuple(Var(f"x{i}", type=PrimType(DTYPE_OF_LETTER[each])) for i, each in enumerate(row.operands))
        functions.append(Function(row.name, params, Block((), PrimCall(row.function, params))))
    module = Module(tuple(functions))
    return [vm.VirtualMachine(vm.build(module, mode, "numpy", verified=True)) for mode in MODES]


def outcome(run, *operands):
    """Return the result of run(*operands), or the class and the message of the error that it raises."""
    try:
        return run(*operands)
    except RelvmError as error:
        return f"{type(error).__name__}: {error}"


def check(row, operands) -> None:
    expected = outcome(lambda: evaluate_row(row, *operands))
    for machine in machines():
        assert_same_bits(outcome(machine[row.name], *operands), expected)


@pytest.mark.parametrize("row", PRIM_OPERATORS, ids=lambda row: row.name)
def test_a_row_at_the_edges(row) -> None:
    for operands in itertools.product(*(VALUES[letter] for letter in row.operands)):
        check(row, operands)


@given(st.sampled_from(PRIM_OPERATORS), st.data())
def test_a_row_anywhere(row, data) -> None:
    check(row, [data.draw(ANY[letter]) for letter in row.operands])


def test_zero_signs_are_kept() -> None:
    for machine in machines():
        assert math.copysign(1, machine["neg_f64"](0.0)) == -1
        assert math.copysign(1, machine["mod_f64"](-0.0, 3.0)) == 1
        assert math.copysign(1, machine["floordiv_f64"](0.0, -3.0)) == -1


@pytest.mark.parametrize(
    ("row", "operands", "value"),
    [
        ("add_i64", (LARGEST, 1), SMALLEST),
        ("mul_i64", (2**62, 4), 0),
        ("neg_i64", (SMALLEST,), SMALLEST),
        ("floordiv_i64", (SMALLEST, -1), SMALLEST),
        ("mod_i64", (SMALLEST, -1), 0),
        ("floordiv_i64", (-7, 2), -4),
        ("mod_i64", (-7, 2), 1),
        ("mod_i64", (7, -2), -1),
        ("shr_i64", (-5, 1), -3),
        ("shl_i64", (1, 63), SMALLEST),
        ("div_i64", (1, 0), math.inf),
        ("div_i64", (7, 2), 3.5),
        ("div_f64", (1.0, 0.0), math.inf),
        ("f64_of_i64", (2**53 + 1,), float(2**53)),
        ("i64_of_f64", (-2.9,), -2),
        ("bool_of_f64", (math.nan,), True),
    ],
)
def test_what_a_row_means(row, operands, value) -> None:
    assert [machine[row](*operands) for machine in machines()] == [value, value]


@pytest.mark.parametrize(
    ("row", "operands", "message"),
    [
        ("floordiv_i64", (1, 0), "floordiv_i64(1, 0): integer division by zero"),
        ("mod_i64", (1, 0), "mod_i64(1, 0): integer division by zero"),
        ("shl_i64", (1, 64), "shl_i64(1, 64): shift by less than 0 or more than 63"),
        ("shr_i64", (1, -1), "shr_i64(1, -1): shift by less than 0 or more than 63"),
        ("i64_of_f64", (math.nan,), "i64_of_f64(nan): a NaN, or outside the range of i64"),
        ("i64_of_f64", (2.0**63,), "i64_of_f64(9.223372036854776e+18): a NaN, or outside the range of i64"),
    ],
)
def test_a_row_without_a_value_is_an_error_and_the_machine_runs_on(row, operands, message) -> None:
    for machine in machines():
        with pytest.raises(RelvmArithmeticError) as caught:
            machine[row](*operands)
        assert str(caught.value) == message
        assert machine["add_i64"](2, 3) == 5


def test_rows_are_found_by_their_operands() -> None:
    assert find_row("add", (F64, F64)).name == "add_f64"
    with pytest.raises(RelvmTypeError, match=r"scalar add: expected \(i64, i64\), \(f64, f64\), got \(i64, f64\)"):
        find_row("add", (I64, F64))
    with pytest.raises(RelvmTypeError, match="no scalar function ad; did you mean"):
        find_row("ad", (BOOL, BOOL))


def test_an_error_of_a_value_that_nothing_uses_is_not_lost() -> None:
    module = parse_module("def main(i: i64, j: i64) -> i64 {\n  unused = i // j\n  fine = i // 2\n  return i\n}")
    for mode in MODES:
        machine = vm.VirtualMachine(vm.build(module, mode, "numpy"))
        assert machine["main"](1, 1) == 1
        with pytest.raises(RelvmArithmeticError):
            machine["main"](1, 0)
    assert "fine" not in vm.build(module, "bytecode", "numpy").as_text()


@pytest.mark.parametrize("mode", MODES)
def test_a_value_of_unknown_type_is_a_scalar_after_its_check(mode) -> None:
    module = parse_module("""
    private def _half(x: f64) -> f64 = x / 2.0
    def add(x: object) -> i64 { y = match_cast(x, i64)
                                return y + 1 }
    def half(x: object) -> f64 = @_half(x)
    def sized(x: object) -> i64 { y = match_cast(x, i64(n))
                                  return y * 2 + dim(n) }
    def item(x: object) -> i64 { y = match_cast(x, (i64, f64))
                                 return y.0 - 1 }
    """)
    machine = vm.VirtualMachine(vm.build(module, mode, "numpy", verified=True))
    assert (machine["add"](2), machine["half"](3.0), machine["sized"](5), machine["item"]((5, 1.0))) == (3, 1.5, 15, 4)
    for name, wrong in [("add", 2.0), ("add", True), ("half", 3), ("sized", "5"), ("item", (5.0, 1.0))]:
        with pytest.raises(RelvmTypeError):
            machine[name](wrong)
