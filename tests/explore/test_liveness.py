"""Tests of the pictures of register liveness."""

from __future__ import annotations

import pytest

from relvm.errors import RelvmArgumentError, RelvmNameError
from relvm.explore import draw_liveness, explore, format_liveness, liveness
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module

TEXT = """
private def count(i: i64, s: i64) -> i64 with (inline=false) {
  return if i > 3 then s else @count(i + 1, s + i)
}
def main(x: f32[4], c: bool) -> f32[4] {
  y = exp(x)
  z = if c then add(y, x) else multiply(x, x)
  return matmul(z, const(f32[4, 4], [[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4], [5, 6, 7, 8]]))
}
def number(i: i64) -> i64 { return @count(i, 0) }
"""

RESULT = 2  # index of the register with the result of main

# Statements: 1, 2: checks; 3: i > 3; 4: if; 5: a copy; 6, 7: both sums, written to the parameters; 8: recursive call.
COUNT = """\
count: 8 statements, 4 registers; at once 4 hold a value, 3 are needed
  r[0]  i       needed 1-4, 6-8  held 1-8
  r[1]  s       needed 1-8       held 1-8
  r[2]  result  needed 5         held 5
  r[3]  cond    needed 3-4       held 3-8
"""


@pytest.fixture(scope="module")
def module() -> Module:
    return parse_module(TEXT)


def listing(module: Module, name: str) -> list[str]:
    """Return the statements of a routine in printed order."""
    lines = [line.strip() for line in explore(module)["routine"].text.split("\n\n") for line in line.split("\n")]
    start = next(i for i, line in enumerate(lines) if line.startswith(f"__vmtir__{name}("))
    end = next((i for i, line in enumerate(lines[start + 1 :], start + 1) if line.startswith("__vmtir__")), len(lines))
    return [line for line in lines[start + 1 : end] if line and line != "else:"]


def test_registers_are_held_from_their_first_value_to_their_release(module: Module) -> None:
    statements = listing(module, "main")
    for life in liveness(module):
        puts = [i for i, line in enumerate(statements, 1) if f"(r, {life.index}, " in line and "setitem" in line]
        releases = [i for i, line in enumerate(statements, 1) if line == f"anylist_resetitem(r, {life.index})"]
        assert life.held[0] == (puts[0] if puts else 1)
        assert not releases or life.held[-1] == releases[-1]


def test_registers_are_needed_until_they_are_last_read(module: Module) -> None:
    statements = listing(module, "main")
    for life in liveness(module):
        reads = [i for i, line in enumerate(statements, 1) if f"anylist_getitem(r, {life.index})" in line]
        expected = len(statements) if life.index == RESULT else reads[-1]
        assert life.needed[-1] == expected
        assert set(reads) <= set(life.needed) <= set(life.held)


def test_what_one_branch_needs_the_other_does_not(module: Module) -> None:
    statements = listing(module, "main")
    y = next(life for life in liveness(module) if life.name == "y")
    add = next(i for i, line in enumerate(statements, 1) if '"add_f32"' in line)
    multiply = next(i for i, line in enumerate(statements, 1) if '"multiply_f32"' in line)
    assert add in y.needed and multiply not in y.needed and multiply in y.held


def test_a_call_in_place_of_the_routine_ends_all(module: Module) -> None:
    assert len(listing(module, "count")) == 8
    assert format_liveness(module, "count") == COUNT


def test_the_bars_are_what_is_held_and_needed(module: Module) -> None:
    above, below = draw_liveness(module).axes
    drawn = {bars.get_gid(): [path.get_extents() for path in bars.get_paths()] for bars in above.collections}
    lives = liveness(module)
    for row, life in enumerate(lives):
        for what in ("held", "needed"):
            bars = drawn[f"r[{life.index}] {what}"]
            numbers = [n for bar in bars for n in range(round(bar.x0 + 0.5), round(bar.x1 + 0.5))]
            assert tuple(numbers) == getattr(life, what)
            assert all(bar.y0 < row < bar.y1 for bar in bars)
    assert len(drawn) == 2 * len(lives)
    assert [label.get_text() for label in above.get_yticklabels()][:2] == ["x r[0]", "c r[1]"]
    for line, what in zip(below.lines, ("held", "needed"), strict=True):
        assert list(line.get_ydata()) == [sum(n in getattr(life, what) for life in lives) for n in line.get_xdata()]


@pytest.mark.parametrize("show", [liveness, draw_liveness, format_liveness])
def test_names_that_are_not_there_are_errors(module: Module, show) -> None:
    with pytest.raises(RelvmNameError, match="no function mian in the built module; did you mean main"):
        show(module, "mian")
    with pytest.raises(RelvmArgumentError, match="target='d'"):
        show(module, target="d")
