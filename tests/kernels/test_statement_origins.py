"""The operators that each statement of a kernel computes."""

from __future__ import annotations

import pytest

from relvm.codegen.c.kernel import kernel_lines
from relvm.frontend.text import parse_module
from relvm.kernels.kernel import Kernel
from relvm.kernels.statement_origins import statement_origins
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline


def lit(body: str, result: str = "f32[n, 4]") -> dict[str, set[int]]:
    """Return, for each line of C code of the only kernel, the lines of `body` from which its statement was compiled.

    body: the body of a function of x, y, w and i.  Its lines are counted from 0.
    """
    text = f"def main(x: f32[n, 4], y: f32[n, 4], w: f32[4, 4], i: i64[n]) -> {result} {{\n{body}\n}}"
    module = run_passes(parse_module(text, "m.relvm"), build_pipeline("c"))
    ((_, kernel),) = module.kernels
    assert isinstance(kernel, Kernel)
    origins = statement_origins(kernel)
    found = {}
    for line, statement in kernel_lines(kernel, "kernel"):
        if statement is not None:
            found[line.strip()] = {int(origin.split(":")[1]) - 2 for origin in origins[statement]}
    return found


def of(found: dict[str, set[int]], words: str) -> set[int]:
    """Return the lines of the body for the first line of C code that contains `words`."""
    return next(lines for text, lines in found.items() if words in text)


def test_an_operator_is_lit_only_where_it_is_computed() -> None:
    found = lit("a = multiply(x, y)\nb = add(a, x)\nc = relu(b)\nreturn c")
    assert of(found, "v_a = ") == {0} and of(found, "v_b = ") == {1}
    assert of(found, "v_c = ") == of(found, "out_[") == {2}
    assert of(found, "for (") == {0, 1, 2}  # a loop has the origins of everything computed in it


def test_the_parts_of_a_reduction_come_from_it() -> None:
    found = lit("a = multiply(x, y)\nb = max(a, axes=(1,))\nreturn b", "f32[n]")
    assert of(found, "v_a = ") == {0}
    assert [of(found, words) for words in ("v_b = -INFINITY", "unordered = 0", "v_b = (v_a", "unordered = (v_a")] == [
        {1}
    ] * 4
    assert of(found, "x_at = ") == {0}  # an index has the origins of the values loaded with it
    found = lit("a = multiply(x, y)\nb = sum(a, axes=(0,))\nreturn b", "f32[4]")  # column sums, in an array
    assert of(found, "v_a = ") == {0} and of(found, "v_b[l] = 0.0f") == of(found, "v_b[l1] = v_b[l1] + v_a") == {1}
    assert of(found, "out_[") == {1}


def test_what_only_moves_elements_is_lit_where_they_are_used() -> None:
    found = lit("a = slice(x, begin=(1,), end=(3,))\nb = relu(a)\nreturn exp(b)", "f32[2, 4]")
    assert of(found, "v_b = ") == {0, 1} and of(found, "rvm_exp_f32") == {2}
    found = lit("a = exp(x)\nb = transpose(a, perm=(1, 0))\nreturn b", "f32[4, n]")
    assert of(found, "rvm_exp_f32") == {0} and of(found, "out_[") == {0, 1}


def test_an_epilogue_is_told_from_its_product() -> None:
    found = lit("a = matmul(x, w)\nb = relu(a)\nreturn b")
    assert of(found, "out_[") == {1}
    assert {0} in found.values()
    assert all(lines in ({0}, {1}, {0, 1}) for lines in found.values())


def test_a_kernel_of_several_calls_comes_from_all() -> None:
    found = lit('a = relu(x)\nb = exp(a)\nc = packed_pure("host.f", b) : f32[n, 4]\nd = relu(c)\nreturn exp(d)')
    assert of(found, "rvm_exp_f32") == {1, 4}
    assert {0, 3} in found.values()


@pytest.mark.parametrize("body", ["a = gather(x, i, axis=0)\nreturn relu(a)", "return softmax(x, axis=1)"])
def test_every_statement_that_has_an_effect_comes_from_something(body: str) -> None:
    found = lit(body)
    assert all(lines for text, lines in found.items() if "=" not in text or "out_" in text)
