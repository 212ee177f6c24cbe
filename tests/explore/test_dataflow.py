"""Tests of the dataflow graph of a function."""

from __future__ import annotations

import pytest
from explore.drawn import arrows, is_inside, rectangles

from relvm.errors import RelvmArgumentError, RelvmNameError
from relvm.explore import draw_dataflow, explore, format_dataflow
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module

TEXT = """
def main(x: f32[n, 64], w: f32[64, 64], c: bool) -> f32[n, 64] {
  a = relu(add(matmul(x, w), const(f32[], 1.0)))
  b = if c then { d = exp(a); return matmul(d, w) } else a
  return add(b, x)
}
def rest(x: f32[4], i: i64) => (f32[4], i64) {
  p = packed("host.pair", x) : (f32[4], i64)
  q = match_cast(packed("host.any", p.0), f32[4])
  return (q, p.1 + i)
}
"""

ALL = """\
x: f32[n, 64]
w: f32[64, 64]
c: bool
a = matmul add relu: f32[n, 64]
  value = matmul: f32[n, 64]  <- x, w
  value_1 = add: f32[n, 64]  <- value
  a_1 = relu: f32[n, 64]  <- value_1
b = if: f32[n, 64]
  if c  <- c
  then  <- if c
    d = exp: f32[n, 64]  <- a
    result = matmul: f32[n, 64]  <- d, w
    return result  <- result
  else  <- if c
    return a  <- a
  b: f32[n, 64]  <- return result, return a
result_1 = add: f32[n, 64]  <- b, x
return result_1  <- result_1
"""

CLOSED = """\
x: f32[n, 64]
w: f32[64, 64]
c: bool
a = matmul add relu: f32[n, 64]  <- x, w
b = if: f32[n, 64]  <- c, a, w
result_1 = add: f32[n, 64]  <- b, x
return result_1  <- result_1
"""


@pytest.fixture(scope="module")
def module() -> Module:
    return parse_module(TEXT)


def test_the_text_has_groups_and_branches(module: Module) -> None:
    assert format_dataflow(module) == ALL


def test_names_are_those_of_the_stage(module: Module) -> None:
    stage = explore(module)["fuse_ops"].text
    for name in ("value_1: f32[n, 64] = add", "a_1: f32[n, 64] = relu", "result_1: f32[n, 64] = add"):
        assert name in stage


def test_boxes_are_closed_below_the_depth(module: Module) -> None:
    assert format_dataflow(module, depth=0) == CLOSED
    one = format_dataflow(module, depth=1)
    assert "  then  <- a, w, if c\n  else  <- a, if c\n  b: f32[n, 64]  <- then, else\n" in one
    assert "value_1 = add" in one and "d = exp" not in one
    assert format_dataflow(module, depth=2) == ALL


def test_members_are_inside_their_boxes_and_others_are_not(module: Module) -> None:
    (axes,) = draw_dataflow(module).axes
    placed = rectangles(axes)
    inside = {
        "a = matmul add relu": {"value = matmul", "value_1 = add", "a_1 = relu"},
        "then": {"d = exp", "result = matmul", "return result"},
        "else": {"return a"},
        "b = if": {"if c", "then", "else", "b", "d = exp", "result = matmul", "return result", "return a"},
    }
    for box, members in inside.items():
        assert {title for title, place in placed.items() if is_inside(place, placed[box])} == members


def test_what_is_computed_from_a_value_is_below_it(module: Module) -> None:
    (axes,) = draw_dataflow(module).axes
    placed = rectangles(axes)
    drawn = arrows(axes)
    assert set(drawn) == {
        "x -> value = matmul",
        "w -> value = matmul",
        "value = matmul -> value_1 = add",
        "value_1 = add -> a_1 = relu",
        "c -> if c",
        "if c -> then",
        "if c -> else",
        "a = matmul add relu -> d = exp",
        "d = exp -> result = matmul",
        "w -> result = matmul",
        "result = matmul -> return result",
        "a = matmul add relu -> return a",
        "return result -> b",
        "return a -> b",
        "b -> result_1 = add",
        "x -> result_1 = add",
        "result_1 = add -> return result_1",
    }
    assert len(drawn) == len(set(drawn))
    for arrow in drawn:
        source, target = (placed[end] for end in arrow.split(" -> "))
        assert source[3] < target[2], arrow


def test_every_kind_of_value_has_a_node(module: Module) -> None:
    text = format_dataflow(module, "rest", target="numpy")
    assert text.splitlines()[2:] == [
        "p = packed host.pair: (f32[4], i64)  <- x",
        "value = item 0: f32[4]  <- p",
        "q = packed host.any: object  <- value",
        "q_1 = match_cast: f32[4]  <- q",
        "value_1 = item 1: i64  <- p",
        "value_2 = prim add: i64  <- value_1, i",
        "result = tuple: (f32[4], i64)  <- q_1, value_2",
        "return result  <- result",
    ]


def test_what_cannot_be_drawn_is_an_error(module: Module) -> None:
    with pytest.raises(RelvmNameError, match="no function rset in the built module; did you mean rest"):
        draw_dataflow(module, "rset")
    with pytest.raises(RelvmArgumentError, match="depth=-1: expected an integer of at least 0"):
        draw_dataflow(module, depth=-1)
