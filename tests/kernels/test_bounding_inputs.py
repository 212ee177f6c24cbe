"""The inputs of kernels that bound memory accesses, which C kernels protect against changes during a call."""

from __future__ import annotations

import re
from functools import cache

import pytest
from ops.test_operators import kernels

from relvm.codegen.c.kernel import print_kernel
from relvm.ir.dtypes import F32, I64
from relvm.ir.expr import Block, KernelCall
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar
from relvm.ir.symbolic import dim_var
from relvm.kernels.bounding_inputs import bounding_inputs
from relvm.kernels.kernel import Kernel
from relvm.kernels.kernel_builder import KernelBuilder

# The operands of operators whose elements can decide which memory a kernel accesses.
BOUNDING = {
    "argtopk": "x",
    "conv_integer": "x_zero",
    "gather": "indices",
    "gather_elements": "indices",
    "gather_nd": "indices",
    "grid_sample": "grid",
    "gru": "lengths",
    "interpolate": "indices",
    "lexsort_rows": "x",
    "lstm": "lengths",
    "non_max_suppression": "boxes scores limit overlap threshold",
    "nonzero": "cond",
    "pairwise_coupling": "x",
    "reverse_sequence": "lengths",
    "rnn": "lengths",
    "roi_align": "regions images",
    "roi_max_pool": "regions images",
    "row_echelon": "x",
    "scatter_elements": "indices",
    "scatter_nd": "indices",
    "tree_ensemble_compact": "children columns entry_targets roots starts thresholds x",
}
N, M = dim_var("n"), dim_var("m")


@cache
def operator_kernels() -> list[tuple[str, Kernel]]:
    """Return each kernel of the operator samples, with the name of the operator."""
    compiled, numbers = kernels()
    found, printed = [], dict(compiled.module.kernels)
    for (sample, _), number in numbers.items():
        body = compiled.module[f"case{number}"].body
        bindings = body.bindings if isinstance(body, Block) else ()
        found += [(sample.op, printed[b.value.kernel]) for b in bindings if isinstance(b.value, KernelCall)]
    return found


def test_the_bounding_operands_of_all_operators() -> None:
    found: dict[str, set[str]] = {}
    for op, kernel in operator_kernels():
        names = {kernel.inputs[i].name.rstrip("_") for i in bounding_inputs(kernel)}
        if names:
            found.setdefault(op, set()).update(names)
    assert found == {op: set(names.split()) for op, names in BOUNDING.items()}


def test_c_kernels_run_with_private_bounding_inputs() -> None:
    for _, kernel in operator_kernels():
        text, bounding = print_kernel(kernel, "k"), bounding_inputs(kernel)
        assert re.findall(r"inputs\[\] = {(.*)};", text) == ([", ".join(map(str, bounding))] if bounding else [])


def _bounding(build) -> list[str]:
    """Return the names of the bounding inputs of a kernel with inputs x (f32) and i (i64), and the output out (f32)."""
    k, x, i, out = KernelBuilder(), Buffer("x_", F32, (N,)), Buffer("i_", I64, (M,)), Buffer("out_", F32, (M,))
    build(k, x, i, out)
    kernel = Kernel("test", (x, i), (out,), k.finish(), "test")
    return [kernel.inputs[place].name.rstrip("_") for place in bounding_inputs(kernel)]


def _copy(k: KernelBuilder, x: Buffer, i: Buffer, out: Buffer) -> None:
    with k.loop(M) as n:
        k.store(out, (n,), x[n] + i[n].to(F32))


def _index(k: KernelBuilder, x: Buffer, i: Buffer, out: Buffer) -> None:
    with k.loop(M) as n:
        k.store(out, (n,), x[k.let("index", i[n])])


def _bound_of_a_loop(k: KernelBuilder, x: Buffer, i: Buffer, out: Buffer) -> None:
    with k.loop(i[0]) as n:
        k.store(out, (n,), x[n])


def _count_in_a_branch(k: KernelBuilder, x: Buffer, i: Buffer, out: Buffer) -> None:
    found = k.variable("found", Literal(0, I64))
    with k.loop(N) as n, k.branch(x[n] > 0.0):
        k.store(out, (found,), x[n])
        k.assign(found, found + 1)


def _through_an_array(k: KernelBuilder, x: Buffer, i: Buffer, out: Buffer) -> None:
    kept = k.allocate("kept", I64, (4,))
    with k.loop(4) as n:
        k.store(kept, (n,), i[n])
    k.store(out, (0,), x[kept[1]])


def _through_a_function(k: KernelBuilder, x: Buffer, i: Buffer, out: Buffer) -> None:
    kept, zero = k.allocate("kept", I64, (4,)), Literal(0, I64)
    k.invoke("rvm_copy_bytes", dst=Address(kept, zero), src=Address(i, zero), bytes=Literal(32, I64))
    k.store(out, (kept[0],), x[0])


def _assigned_after_its_use(k: KernelBuilder, x: Buffer, i: Buffer, out: Buffer) -> None:
    place: Scalar = k.variable("place", Literal(0, I64))
    with k.loop(M) as n:
        k.store(out, (n,), x[place])
        k.assign(place, i[n])


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (_copy, []),
        (_index, ["i"]),
        (_bound_of_a_loop, ["i"]),
        (_count_in_a_branch, ["x"]),
        (_through_an_array, ["i"]),
        (_through_a_function, ["i"]),
        (_assigned_after_its_use, ["i"]),
    ],
)
def test_elements_bound_an_access(build, expected: list[str]) -> None:
    assert _bounding(build) == expected
