"""Tests of the call graph of a module."""

from __future__ import annotations

import pytest
from explore.drawn import arrows, rectangles
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch

from relvm.errors import RelvmArgumentError
from relvm.explore import call_graph, draw_calls, format_calls
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module

TEXT = """
def main(x: f32[4], k: i64) => f32[4] {
  a = @even(x, k)
  b = @more(a)
  again = fn (y: f32[4], i: i64) -> f32[4] { return if i > 3 then y else again(exp(y), i + 1) }
  c = packed("host.log", b) : f32[4]
  return again(@more(c), 0)
}
private def even(x: f32[4], k: i64) -> f32[4] with (inline=false) { return if k == 0 then x else @odd(relu(x), k - 1) }
private def odd(x: f32[4], k: i64) -> f32[4] with (inline=false) { return if k == 0 then x else @even(exp(x), k - 1) }
private def more(x: f32[4]) -> f32[4] with (inline=false) { return relu(x) }
def alone(x: f32[4]) -> f32[4] { return x }
"""


@pytest.fixture(scope="module")
def module() -> Module:
    return parse_module(TEXT)


def marked(axes: Axes) -> set[str]:
    """Return the red arrows."""
    found = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    return {patch.get_gid() for patch in found if to_hex(patch.get_edgecolor()) == "#cc0000"}


def test_the_text_says_who_calls_whom(module: Module) -> None:
    assert format_calls(module) == (
        "main: even, more x 2, packed host.log, main_again\n"
        "even (private, recursive): odd\n"
        "odd (private, recursive): even\n"
        "more (private): calls nothing\n"
        "alone: calls nothing\n"
        "main_again (private, recursive): main_again\n"
    )


def test_functions_are_above_those_they_call_and_recursion_is_red(module: Module) -> None:
    (axes,) = draw_calls(module).axes
    placed = rectangles(axes)
    assert set(placed) == {"main", "even", "odd", "more", "alone", "main_again", "packed host.log"}
    assert sorted(arrows(axes)) == sorted(
        [
            *(f"main -> {name}" for name in ("even", "more", "packed host.log", "main_again")),
            "even -> odd",
            "odd -> even",
            "main_again -> main_again",
        ]
    )
    assert marked(axes) == {"even -> odd", "odd -> even", "main_again -> main_again"}
    _, _, _, main_bottom = placed["main"]
    assert all(placed[name][2] > main_bottom for name in ("even", "more", "packed host.log", "main_again"))
    shown = {text.get_text() for text in axes.texts}
    assert "even\nrecursive" in shown and "more" in shown


def test_kernels_are_shown_when_asked_for(module: Module) -> None:
    (axes,) = draw_calls(module, kernels=True).axes
    assert {"more -> kernel relu_f32", "even -> kernel relu_f32"} < set(arrows(axes))
    assert "more (private): kernel relu_f32\n" in format_calls(module, kernels=True)


def test_a_function_that_is_a_value_is_used() -> None:
    graph = call_graph(
        parse_module("""
        def main(x: f32[4]) -> f32[4] { return @apply(@twice, x) }
        private def apply(f: (f32[4]) -> f32[4], x: f32[4]) -> f32[4] with (inline=false) { return f(x) }
        private def twice(x: f32[4]) -> f32[4] with (inline=false) { return add(x, x) }""")
    )
    assert set(graph.edges) == {(("function", "main"), ("function", name)) for name in ("apply", "twice")}
    assert not any(cycle for *_, cycle in graph.edges(data="cycle"))


def test_a_target_that_is_not_there_is_an_error(module: Module) -> None:
    with pytest.raises(RelvmArgumentError, match=r"target='numpi': .*did you mean numpy"):
        draw_calls(module, target="numpi")
