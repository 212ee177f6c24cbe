"""Tests of the operations and bytes that profiles count for kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from relvm import vm
from relvm.frontend.text import parse_module
from relvm.ir.operator import operators
from relvm.kernels.lowering_rules import CustomKernel
from relvm.runtime.profiler import Profile, ProfileRow


def zeros(dtype: str, *shape: int) -> str:
    return f"const({dtype}[{', '.join(map(str, shape))}], {np.zeros(shape, int).tolist()})"


def profile(text: str, *shapes: tuple[int, ...], fused: bool = True, dtypes: Sequence[str] = ()) -> Profile:
    """Profile a run of main with inputs of zeros.  dtypes: the dtypes of the first inputs.  All others are f32."""
    machine = vm.VirtualMachine(vm.build(parse_module(text), target="bytecode", fused=fused))
    chosen = (*dtypes, *["float32"] * (len(shapes) - len(dtypes)))
    return machine.profile("main", *(np.zeros(shape, dtype) for shape, dtype in zip(shapes, chosen, strict=True)))


def the_kernel(ran: Profile) -> ProfileRow:
    (row,) = (row for row in ran.rows if row.kind == "kernel")
    return row


def operations(text: str, *shapes: tuple[int, ...], **options) -> int | None:
    """Return the number of operations of all kernels, or None if the operations of a kernel are not counted."""
    counts = [row.operations for row in profile(text, *shapes, **options).rows if row.kind == "kernel"]
    return None if None in counts else sum(counts)


# For each function, its signature and body, the shapes of its inputs, and the operations of all kernels.
FLOATS = [
    ("x: f32[m, k], y: f32[k, n]) -> f32[m, n] = matmul(x, y)", [(5, 7), (7, 3)], 2 * 5 * 7 * 3),
    ("x: f32[b, k, m], y: f32[k, n]) -> f32[b, m, n] = matmul(x, y, transpose_a=true)",
     [(2, 7, 5), (7, 3)], 2 * 2 * 5 * 7 * 3),
    ("x: f32[k], y: f32[k]) -> f32[] = matmul(x, y)", [(9,), (9,)], 2 * 9),
    (f"x: f32[m, 8]) -> f32[m, 6] = matmul(x, {zeros('f32', 8, 6)})", [(5, 8)], 2 * 5 * 8 * 6),
    ("x: f32[n, 4], y: f32[4]) -> f32[n, 4] = relu(add(x, y))", [(5, 4), (4,)], 2 * 5 * 4),
    ("x: f32[n]) -> f32[n] = exp(x)", [(11,)], 11),
    ("x: f32[n]) -> f32[n] = sigmoid(x)", [(11,)], 4 * 11),
    ("x: f32[n]) -> i32[n] = cast(x, to=\"i32\")", [(11,)], 0),
    ("x: f32[n, k]) -> f32[n] = sum(x, axes=(1,))", [(5, 7)], 35),
    ("x: f32[n, k]) -> f32[n] = mean(x, axes=(1,))", [(5, 7)], 35 + 5),
    ("x: f32[n, k]) -> f32[n, k] = softmax(x, axis=1)", [(5, 7)], 5 * 35),
    ("x: f32[n, k]) -> i64[n] = argmax(x, axis=1)", [(5, 7)], 35),
    ("x: f32[n]) -> f32[n] = cumsum(x, axis=0)", [(6,)], 6),
    ("x: f32[n, k]) -> f32[k, n] = transpose(x, perm=(1, 0))", [(5, 7)], 0),
    ("x: f32[n], y: f32[m]) -> f32[n + m] = concat(x, y, axis=0)", [(5,), (7,)], 0),
    ("x: f32[b, 8, h, h], w: f32[16, 4, 3, 5]) -> f32[b, 16, h - 2, h - 4] = conv(x, w, groups=2)",
     [(2, 8, 9, 9), (16, 4, 3, 5)], 2 * (2 * 16 * 7 * 5) * (4 * 3 * 5)),
    ("x: f32[b, 3, h, h]) -> f32[b, 3, h - 1, h - 1] = max_pool(x, kernel=(2, 2))", [(2, 3, 5, 5)], 2 * 3 * 16 * 4),
    ("x: f32[b, 3, h, h]) -> f32[b, 3, h - 1, h - 1] = average_pool(x, kernel=(2, 2))",
     [(2, 3, 5, 5)], 2 * 3 * 16 * (4 + 1)),
    ("x: f32[t, b, 12], r: f32[1, 4, 12], z: f32[1, 4], h: f32[1, b, 4], n: i32[0]) -> f32[t, 1, b, 4] {"
     " y = gru(x, r, z, h, n); return y.0 }",
     [(3, 2, 12), (1, 4, 12), (1, 4), (1, 2, 4)], 3 * 2 * 4 * (2 * 3 * 4 + 12)),
    ("x: f32[t, b, 4], r: f32[1, 4, 4], h: f32[1, b, 4], n: i32[0]) -> f32[t, 1, b, 4] {"
     " y = rnn(x, r, h, n); return y.0 }", [(3, 2, 4), (1, 4, 4), (1, 2, 4)], 3 * 2 * 4 * (2 * 4 + 2)),
    ("x: f32[t, b, 16], r: f32[1, 4, 16], p: f32[1, 0], h: f32[1, b, 4], n: i32[0]) -> f32[t, 1, b, 4] {"
     " y = lstm(x, r, p, h, h, n); return y.0 }",
     [(3, 2, 16), (1, 4, 16), (1, 0), (1, 2, 4)], 3 * 2 * 4 * (2 * 4 * 4 + 13)),
    ("x: f32[t, b, 16], r: f32[1, 4, 16], p: f32[1, 12], h: f32[1, b, 4], n: i32[0]) -> f32[t, 1, b, 4] {"
     " y = lstm(x, r, p, h, h, n); return y.0 }",
     [(3, 2, 16), (1, 4, 16), (1, 12), (1, 2, 4)], 3 * 2 * 4 * (2 * 4 * 4 + 13 + 6)),
    ("x: f32[t, b, 16], r: f32[1, 4, 16], p: f32[1, 12], h: f32[1, b, 4], n: i32[0]) -> f32[t, 1, b, 4] {"
     " y = lstm(x, r, p, h, h, n, coupled=true); return y.0 }",
     [(3, 2, 16), (1, 4, 16), (1, 12), (1, 2, 4)], 3 * 2 * 4 * (2 * 3 * 4 + 12 + 4)),
    ("x: f32[n, 4], i: i64[3, p], w: f32[3, p]) -> f32[p, 4] = interpolate(x, i, w, axis=0)",
     [(5, 4), (3, 7), (3, 7)], 2 * 3 * 7 * 4),
    ("x: f32[n]) -> (u8[n], f32[], u8[]) = dynamic_quantize(x)", [(9,)], 7 * 9),
]  # fmt: skip


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("text", "shapes", "count"), FLOATS, ids=[text[-60:] for text, *_ in FLOATS])
def test_operations_are_those_of_the_definition(text: str, shapes: list, count: int, fused: bool) -> None:
    if "n: i32[0]" in text:
        shapes = [*shapes, (0,)]
    given = {"i64": "int64", "i32": "int32"}
    dtypes = [given.get(dtype, "float32") for dtype in re.findall(r"\w+: (\w+)\[", text)]
    assert operations(f"def main({text}", *shapes, fused=fused, dtypes=dtypes) == count


def test_a_convolution_on_tiles_counts_as_one_without_them() -> None:
    weights = zeros("f32", 64, 64, 3, 3)
    text = f"def main(x: f32[n, 64, 32, 32]) -> f32[n, 64, 30, 30] = conv(x, {weights})"
    ran = profile(text, (2, 64, 32, 32))
    assert the_kernel(ran).name == "conv_winograd_f32"
    assert the_kernel(ran).operations == 2 * (2 * 64 * 30 * 30) * (64 * 9)


def test_products_of_bytes_count_as_others() -> None:
    text = "def main(a: u8[m, k], b: i8[k, n]) -> i32[m, n] = matmul_integer(a, b, const(u8[], 3), const(i8[], 0))"
    assert operations(text, (5, 7), (7, 3), dtypes=["uint8", "int8"]) == 2 * 5 * 7 * 3
    text = (
        f"def main(a: u8[m, 9]) -> i32[m, 6] = matmul_integer(a, {zeros('i8', 9, 6)}, const(u8[], 3), const(i8[], 0))"
    )
    ran = profile(text, (5, 9), dtypes=["uint8"])
    assert the_kernel(ran).name == "matmul_integer_packed_i32"
    assert the_kernel(ran).operations == 2 * 5 * 9 * 6
    weights = zeros("i8", 8, 6, 3, 3)
    text = f"def main(x: u8[n, 6, 8, 8]) -> i32[n, 8, 6, 6] = conv_integer(x, {weights}, const(u8[], 3))"
    assert operations(text, (2, 6, 8, 8), dtypes=["uint8"]) == 2 * (2 * 8 * 36) * (6 * 9)


def test_attention_counts_both_products_and_the_softmax() -> None:
    text = """
    def main(q: f32[h, m, 16], k: f32[h, n, 16], v: f32[h, n, 8]) -> f32[h, m, 8] {
      shares = softmax(multiply(matmul(q, k, transpose_b=true), const(f32[], 0.25)), axis=2)
      return matmul(shares, v)
    }"""
    ran = profile(text, (2, 5, 16), (2, 7, 16), (2, 7, 8))
    assert the_kernel(ran).name == "attention_f32"
    assert the_kernel(ran).operations == 2 * 5 * 7 * (2 * 16 + 2 * 8 + 8)


def test_what_depends_on_elements_is_not_counted() -> None:
    gru = "gru(x, r, z, h, n); return y.0 }"
    text = "def main(x: f32[t, b, 12], r: f32[1, 4, 12], z: f32[1, 4], h: f32[1, b, 4], n: i32[b]) -> f32[t, 1, b, 4] {"
    shapes = [(3, 2, 12), (1, 4, 12), (1, 4), (1, 2, 4), (2,)]
    assert operations(f"{text} y = {gru}", *shapes, dtypes=["float32"] * 4 + ["int32"]) is None


def test_these_operators_are_not_counted() -> None:
    uncounted = {
        op.name
        for op in operators().values()
        if isinstance(op.lower, CustomKernel) and not op.moves and op.lower.operations is None
    }
    assert uncounted == {
        "roi_align",
        "pairwise_coupling",
        "roi_max_pool",
        "lexsort_rows",
        "grid_sample",
        "scatter_elements",
        "scatter_nd",
        "non_max_suppression",
        "argtopk",
        "tree_ensemble",
        "tree_ensemble_compact",
        "row_echelon",
        "nonzero",
    }


def test_of_a_table_only_what_is_looked_up_is_read() -> None:
    text = "def main(x: f32[rows, 8], i: i64[n]) -> f32[n, 8] = exp(gather(x, i, axis=0))"
    ran = profile(text, (1000, 8), (3,), dtypes=["float32", "int64"])
    assert the_kernel(ran).bytes == 3 * 8 * 4 + 3 * 8 + 3 * 8 * 4
    assert the_kernel(ran).operations == 3 * 8
    ran = profile(text, (2, 8), (30,), dtypes=["float32", "int64"])
    assert the_kernel(ran).bytes == 2 * 8 * 4 + 30 * 8 + 30 * 8 * 4  # at most the bytes of the whole tensor


def test_a_loop_counts_every_round() -> None:
    text = """
    def main(x: f32[n], i: i64) -> f32[n] { return @more(x, i) }
    private def more(x: f32[n], i: i64) -> f32[n] { return if i == 0 then x else @more(exp(x), i - 1) }"""
    ran = vm.VirtualMachine(vm.build(parse_module(text))).profile("main", np.zeros(10, np.float32), 4)
    assert [(row.count, row.operations, row.bytes) for row in ran.rows if row.kind == "kernel"] == [(4, 40, 320)]


def test_a_saved_executable_counts_too(tmp_path) -> None:
    vm.build(parse_module("def main(x: f32[n]) -> f32[n] = exp(x)")).save(tmp_path / "model.rvm")
    machine = vm.VirtualMachine(vm.load(tmp_path / "model.rvm"))
    assert the_kernel(machine.profile("main", np.zeros(10, np.float32))).operations == 10


@pytest.mark.parametrize(
    "terms",
    [
        None,
        3,
        [3],
        [[]],
        [["1"]],
        [[True]],
        [[2**63]],
        [[1, 0]],
        [[1, [0]]],
        [[1, [0, 0, 0]]],
        [[1, [0, "n"]]],
        [[1, [9, 0]]],
    ],
)
def test_a_count_that_is_none_is_not_known(terms) -> None:
    program = vm.build(parse_module("def main(x: f32[n]) -> f32[n] = exp(x)")).program
    (kernel,) = (entry.name for entry in program.functions if entry.kind == "kernel")
    changed = replace(program, debug={kernel: {"operations": terms, "reads": [terms]}})
    row = the_kernel(vm.VirtualMachine(vm.Executable.from_program(changed)).profile("main", np.zeros(10, np.float32)))
    assert (row.operations, row.bytes) == (None, 80)


def test_packed_functions_are_not_counted() -> None:
    text = "def main(x: f32[n]) -> f32[n] = exp(x)"
    machine = vm.VirtualMachine(vm.build(parse_module(text), target="numpy"))
    rows = {row.kind: row.operations for row in machine.profile("main", np.zeros(10, np.float32)).rows}
    assert rows == {"packed": None, "builtin": 0}
