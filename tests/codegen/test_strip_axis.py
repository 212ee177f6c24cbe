"""Test of kernel bytecode whose loops are split, interchanged, or vectorized across the loops inside them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from relvm import vm
from relvm.bytecode.kernel_printer import kernel_listing
from relvm.codegen.kernel_bytecode import print_kernel_bytecode
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module
from relvm.ir.kernel_def_interpreter import evaluate_kernel
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

# name -> the shapes of x and out, and the statements, which leave some elements of `out` 0
KERNELS = {
    "rows that overlap": ((32, 4), (35,), "for r in range(32) { for q in range(4) { out[r + q] = x[r, q] } }"),
    "rows that overlap with a stride": (
        (32, 4),
        (67,),
        "for r in range(32) { for q in range(4) { out[2 * r + q] = x[r, q] } }",
    ),
    "rows that do not overlap": (
        (32, 4),
        (160,),
        "for r in range(32) { for q in range(4) { out[5 * r + q] = x[r, q] } }",
    ),
    "rows that begin at other positions and overlap": (
        (40, 4),
        (43,),
        "for r in range(40) { for q in range(-3 * r, 4 - 3 * r) { out[4 * r + q] = x[r, q + 3 * r] } }",
    ),
    "blocks that overlap": (
        (40, 3, 8),
        (3, 47),
        "for r in range(40) { for q in range(3) { for j in simd(8) { out[q, r + j] = x[r, q, j] } } }",
    ),
    "blocks that do not overlap": (
        (40, 3, 8),
        (3, 40, 8),
        "for r in range(40) { for q in range(3) { for j in simd(8) { out[q, r, j] = x[r, q, j] } } }",
    ),
    "two parts of a row": (
        (50, 9),
        (50, 16),
        "for r in range(50) { for j in simd(9) { out[r, j] = x[r, j] }; for i in simd(7) { out[r, i + 9] = x[r, i] } }",
    ),
    "two parts of a row that overlap": (
        (50, 9),
        (50, 16),
        "for r in range(50) { for j in simd(9) { out[r, j] = x[r, j] }; for i in simd(9) { out[r, i + 7] = x[r, i] } }",
    ),
    "parts of rows that overlap": (
        (50, 9),
        (51, 9),
        "for r in range(50) { for j in simd(9) { out[r, j] = x[r, j] }; for i in simd(9) { out[r + 1, i] = 2.0 } }",
    ),
    "three stores": (
        (40, 6),
        (40, 6, 3),
        "for r in range(40) { for j in range(6) { out[r, j, 2] = x[r, j]; out[r, j, 0] = -x[r, j] } }",
    ),
    "passes of a Fourier transform": (
        (40, 8),
        (40 * 16,),
        "for p in range(40) { for q in simd(8) { out[16 * p + q] = x[p, q]; out[16 * p + q + 8] = -x[p, q] } }",
    ),
    "a definition that an inner loop of a part needs": (
        (50, 9),
        (50, 3, 8),
        "for r in range(50) { let first = x[r, 0]; for j in simd(8) { out[r, 0, j] = x[r, j] }; "
        "for i in simd(8) { for t in range(2) { out[r, 1 + t, i] = first + x[r, i + t] } } }",
    ),
    "a sum that another part of the row needs": (
        (50, 9),
        (50, 8),
        "for r in range(50) { let sum = f32(0); for j in simd(9) { sum += x[r, j] }; "
        "for i in simd(8) { out[r, i] = sum + x[r, i] } }",
    ),
    "rows of a block in another order": (
        (40, 4, 3),
        (480,),
        "for r in range(40) { for j in range(4) { for c in range(3) { out[12 * r + 4 * c + j] = x[r, j, c] } } }",
    ),
    "two stores that overlap": (
        (40, 6),
        (40, 7),
        "for r in range(40) { for j in range(6) { out[r, j] = x[r, j]; out[r, j + 1] = -x[r, j] } }",
    ),
}


def module_of(name: str) -> Module:
    shape, out_shape, body = KERNELS[name]
    x, out = (f"f32[{', '.join(map(str, dims))}]" for dims in (shape, out_shape))
    return parse_module(f"kernel k(x: {x}) -> (out: {out}) {{ {body} }}\ndef main(x: {x}) -> {out} = kernel k(x)")


@pytest.mark.parametrize("name", KERNELS)
def test_the_result_is_that_of_the_loops_in_order(name: str) -> None:
    module = module_of(name)
    shape = KERNELS[name][0]
    x = np.arange(1, 1 + math.prod(shape), dtype=np.float32).reshape(shape)
    ((_, definition),) = module.kernels
    (expected,) = evaluate_kernel(definition, {}, (x,))
    found = vm.VirtualMachine(vm.build(module, target="bytecode"))["main"](x)
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize(
    ("name", "has_strips"),
    [
        ("rows that overlap", False),
        ("rows that overlap with a stride", False),
        ("rows that do not overlap", True),
        ("blocks that do not overlap", True),
        ("two parts of a row", True),
    ],
)
def test_strips_consist_of_several_rows_if_the_order_of_stores_does_not_matter(name: str, has_strips: bool) -> None:
    module = run_passes(module_of(name), build_pipeline("c"))
    ((_, kernel),) = module.kernels
    listing = kernel_listing(print_kernel_bytecode(kernel))
    loads_single_elements = any(" load s" in line for line in listing.splitlines())
    assert loads_single_elements != has_strips
