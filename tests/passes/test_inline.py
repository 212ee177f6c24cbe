"""Tests of inlining that golden cases cannot cover: its limits, and unchanged behavior."""

from __future__ import annotations

import numpy as np
import pytest
from support.modes import machines, run_everywhere
from support.pipeline_parts import module_after

from relvm import vm
from relvm.errors import RelvmShapeError, RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.ir.expr import Block, If, Module
from relvm.ir.node import children
from relvm.passes.inline import DEEPEST, SMALL

X = np.arange(4, dtype=np.float32)


def inlined(text: str) -> Module:
    return module_after("inline", parse_module(text))


def depth(block: Block) -> int:
    inner = [part for b in block.bindings if isinstance(b.value, If) for part in children(b.value)]
    return 1 + max((depth(part) for part in inner if isinstance(part, Block)), default=0)


def test_a_long_chain_of_calls_needs_no_recursion() -> None:
    count = 3000
    text = "private def _f0(x: f32[n]) -> f32[n] = relu(x)\n" + "\n".join(
        f"private def _f{i}(x: f32[n]) -> f32[n] = @_f{i - 1}(x)" for i in reversed(range(1, count))
    )
    module = inlined(f"{text}\ndef main(x: f32[n]) -> f32[n] = @_f{count - 1}(x)")
    assert len(module["main"].body.bindings) == 1


def test_calls_in_branches_nest_no_deeper_than_the_limit() -> None:
    count = 300
    text = "private def _f0(x: f32[n], c: bool) -> f32[n] = relu(x)\n" + "\n".join(
        f"private def _f{i}(x: f32[n], c: bool) -> f32[n] {{ return if c then @_f{i - 1}(x, c) else x }}"
        for i in range(1, count)
    )
    module = inlined(f"{text}\ndef main(x: f32[n], c: bool) -> f32[n] = @_f{count - 1}(x, c)")
    assert max(depth(f.body) for f in module.functions) == DEEPEST
    run_everywhere(module, X - 2, True)


def test_a_module_grows_by_no_more_than_the_calls_times_the_limit() -> None:
    count = 40  # inlining all calls would result in 2 ** 40 operators
    text = "private def _f0(x: f32[n]) -> f32[n] = relu(x)\n" + "\n".join(
        f"private def _f{i}(x: f32[n]) -> f32[n] = @_f{i - 1}(@_f{i - 1}(x))" for i in range(1, count)
    )
    module = inlined(f"{text}\ndef main(x: f32[n]) -> f32[n] = @_f{count - 1}(x)")
    assert sum(len(f.body.bindings) for f in module.functions) <= 2 * SMALL * count


CHECKED = """
private def _f(a: f32[n], b: f32[n, 2]) -> f32[n, 2] = add(b, reshape(a, shape(n, 1)))
def main(x: object, y: object) -> object = @_f(x, y)
"""


@pytest.mark.parametrize("attribute", ["", "with (inline=false)"], ids=["inlined", "called"])
@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        ((3, X), RelvmTypeError, "_f: argument a: expected a tensor"),
        (
            (X.reshape(2, 2), X),
            RelvmTypeError,
            "_f: argument a: expected a tensor of rank 1 and dtype f32, got .* rank 2",
        ),
        ((X, X.reshape(2, 2)), RelvmShapeError, "_f: argument b: expected dimension 0 to be 4, got 2"),
        ((X[:2], np.zeros((2, 3), np.float32)), RelvmShapeError, "_f: argument b: expected dimension 1 to be 2, got 3"),
    ],
)
def test_arguments_are_checked_as_by_the_call(attribute, args, error, message) -> None:
    module = parse_module(CHECKED.replace("-> f32[n, 2] =", f"-> f32[n, 2] {attribute} ="))
    run_everywhere(module, X[:2], X.reshape(2, 2))
    for machine in machines(module).values():
        with pytest.raises(error, match=message):
            machine["main"](*args)


def test_a_local_function_that_one_before_it_calls_once_stays() -> None:
    module = parse_module("""
    def main(n: i64) -> i64 {
      first = fn first(a: i64) -> i64 { return if a == 0 then 0 else second(a) + 1 }
      second = fn second(a: i64) -> i64 = third(a) + n
      third = fn third(a: i64) -> i64 = first(a - 1) * 2
      return first(n)
    }
    """)
    assert run_everywhere(module, 3) == 28


def test_effects_keep_their_order() -> None:
    seen: list[float] = []
    vm.register_func("test.inline.note", lambda t: seen.append(float(t.numpy().sum())), override=True)
    text = """
    private def _note(x: f32[n]) => object {
      _ = packed("test.inline.note", x)
      return packed("test.inline.note", add(x, x))
    }
    def main(x: f32[n]) => f32[n] {
      _ = packed("test.inline.note", exp(x))
      unused = @_note(x)
      _ = @_note(add(x, const(f32[], 1)))
      return x
    }"""
    for machine in machines(parse_module(text)).values():
        seen.clear()
        machine["main"](np.zeros(2, np.float32))
        assert seen == [2.0, 0.0, 0.0, 2.0, 4.0]


def test_a_private_function_that_was_inlined_is_gone() -> None:
    executable = vm.build(parse_module(CHECKED))
    assert "_f" not in executable.functions
