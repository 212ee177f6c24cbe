"""A program has the same results without an optional pass."""

from __future__ import annotations

import numpy as np
import pytest

from relvm import vm
from relvm.compiler.build import assemble, lower
from relvm.compiler.target import Target
from relvm.errors import RelvmArgumentError
from relvm.frontend.text import parse_module
from relvm.ir.printer import print_module
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

OPTIONAL = [step.name for step in build_pipeline("bytecode") if step.optional]
# A program that each optional pass changes.
TEXT = f"""
private def _twice(x: f32[m, k]) -> f32[m, k] = add(x, x)

def main(q: f32[1, 2, 3, 4], x: f32[n, 4], xs: list[f32[n, 4]])
    -> (f32[1, 2, 3, 4], (f32[n, 4], f32[n, 4]), list[f32[n, 4]]) {{
  scores = multiply(matmul(q, q, transpose_b=true), const(f32[], 0.5))
  all_attended = matmul(softmax(scores), q)
  first = reshape(slice(q, begin=(0, 0, 0, 0), end=(1, 1, 1, 1)), shape())
  attended = if greater(first, const(f32[], 0)) then relu(all_attended) else all_attended
  w = add(const(f32[4, 4], [{", ".join(f"[{row}, 2, 3, 4]" for row in range(4))}]), const(f32[1], [1]))
  a = multiply(matmul(x, w), const(f32[], 2))
  b = softmax(relu(@_twice(a)), axis=1)
  c = softmax(relu(@_twice(a)), axis=1)
  dead = exp(a)
  gates = (multiply(tanh(a), const(f32[], 2)), multiply(tanh(c), const(f32[], 3)))
  same = transpose(transpose(b, perm=(1, 0)), perm=(1, 0))
  return (attended, gates, list_append(list_append(xs, same), c))
}}
"""
MODULE = parse_module(TEXT)
INPUTS = [np.linspace(-1, 1, size, dtype=np.float32) for size in (24, 12)]


def results(without: list[str]) -> list[np.ndarray]:
    steps = build_pipeline("bytecode", without=without)
    lir = lower(run_passes(MODULE, steps, verified=True))
    machine = vm.VirtualMachine(vm.Executable.from_program(assemble(lir, (), target=Target("bytecode"))))
    attended, gates, items = machine["main"](INPUTS[0].reshape(1, 2, 3, 4), INPUTS[1].reshape(3, 4), [])
    return [value.numpy() for value in (attended, *gates, *items)]


@pytest.mark.parametrize("names", [[name] for name in OPTIONAL] + [OPTIONAL], ids=[*OPTIONAL, "all"])
def test_results_are_the_same_without_an_optional_pass(names: list[str]) -> None:
    changed: set[str] = set()

    def observe(step, before, after, seconds) -> None:
        if print_module(before) != print_module(after):
            changed.add(step.name)

    run_passes(MODULE, build_pipeline("bytecode"), observer=observe)
    assert changed >= set(names)
    for got, expected in zip(results(names), results([]), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


def test_required_and_unknown_passes_cannot_be_left_out() -> None:
    for name in ("to_anf", "lower_shapes", "css"):
        with pytest.raises(RelvmArgumentError, match=f"without={name}: only optional passes can be left out: inline,"):
            build_pipeline("c", without=[name])


def test_a_pass_of_another_target_may_be_left_out() -> None:
    names, without = ([step.name for step in build_pipeline("numpy", without=each)] for each in ([], ["fuse_ops"]))
    assert names == without
