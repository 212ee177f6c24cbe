"""Tests of the proofs that the iterations of a loop write different elements."""

from __future__ import annotations

import re

import numpy as np
import pytest

from relvm import vm
from relvm.errors import RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.ir.kernel_def_interpreter import evaluate_kernel
from relvm.ir.symbolic import as_var

# name -> whether the iterations of the parallel loop over i are independent, and its body; `n` is a size
STORES = {
    "a row": (True, "for j in range(4) { out[4 * i + j] = x[i] }"),
    "a row that begins before the position": (True, "for j in range(4) { out[4 * i + j + 3] = x[i] }"),
    "a row backward": (True, "for j in range(4) { out[4 * i + (3 - j)] = x[i] }"),
    "a row of unknown length": (True, "for j in range(n) { out[n * i + j] = x[i] }"),
    "a row with the next one's first element": (False, "for j in range(5) { out[4 * i + j] = x[i] }"),
    "a row of unknown length with the next one's first element": (
        False,
        "for j in range(n + 1) { out[n * i + j] = x[i] }",
    ),
    "two parts of a row": (
        True,
        "for j in range(2) { out[4 * i + j] = x[i] }; for k in range(2) { out[4 * i + k + 2] = x[i] }",
    ),
    "two parts of different rows": (
        True,
        "for j in range(2) { out[4 * i + j] = x[i] }; for k in range(2) { out[4 * i + k + 6] = x[i] }",
    ),
    "two parts that meet in the next row": (
        False,
        "for j in range(2) { out[4 * i + j] = x[i] }; for k in range(2) { out[4 * i + k + 3] = x[i] }",
    ),
    "a row whose place depends on the iteration": (False, "for j in range(-i, 4 - i) { out[4 * i + j + 8] = x[i] }"),
    "copies beyond the last iteration": (True, "out[2 * i] = x[i]; out[2 * i + 18] = x[i]"),
    "copies in the last iteration": (False, "out[2 * i] = x[i]; out[2 * i + 16] = x[i]"),
}


@pytest.mark.parametrize("name", STORES)
def test_iterations_that_write_different_elements_are_independent(name: str) -> None:
    is_independent, body = STORES[name]
    signature = "x: f32[9], size: f32[n]) -> "
    # each store is in bounds, so that only the independence of the iterations decides
    guarded = re.sub(r"out\[(.*?)\] = x\[i\]", r"if 0 <= \1 and \1 < 4096 { out[\1] = x[i] }", body)
    text = (
        f"kernel k({signature}(out: f32[4096]) {{ for i in parallel(9) {{ {guarded} }} }}\n"
        f"def main({signature}f32[4096] = kernel k(x, size)"
    )
    if not is_independent:
        with pytest.raises(RelvmTypeError, match="the iterations of a parallel loop must be independent"):
            vm.build(parse_module(text), target="bytecode")
        return
    module = parse_module(text)
    x, size = np.arange(1, 10, dtype=np.float32), np.zeros(5, np.float32)
    ((_, definition),) = module.kernels
    n = as_var(definition.inputs[1].shape[0])
    assert n is not None
    (expected,) = evaluate_kernel(definition, {n: len(size)}, (x, size))
    found = vm.VirtualMachine(vm.build(module, target="bytecode"))["main"](x, size)
    np.testing.assert_array_equal(found.numpy(), expected)


def test_the_stores_of_a_simd_loop_must_be_apart() -> None:
    body = "for q in simd(9) { out[q] = x[q]; out[q + 8] = x[q] }"
    with pytest.raises(RelvmTypeError, match="the iterations of a simd loop must be independent"):
        vm.build(
            parse_module(
                f"kernel k(x: f32[9]) -> (out: f32[17]) {{ {body} }}\ndef main(x: f32[9]) -> f32[17] = kernel k(x)"
            ),
            target="bytecode",
        )
