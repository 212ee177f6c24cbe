"""Tests of products whose tiles are full, narrow, or of any width: rows that are adjacent in memory or not."""

from __future__ import annotations

import numpy as np
import pytest
from support.aot_export import BOUND
from support.modes import machines, run_everywhere

from relvm import vm
from relvm.frontend.text import parse_module

COLUMNS = (1, 15, 16, 17, 47, 48, 63, 64, 65, 100)
RANDOM = np.random.default_rng(3)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.integers(-4, 5, shape).astype(np.float32)  # sums are exact in any order


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("rows", [1, 5, 13])
def test_a_product_of_any_width(columns: int, rows: int) -> None:
    """The bias is one number for each row, and is loaded with a step of 0 along the row."""
    x, w, b = numbers(rows, 9), numbers(9, columns), numbers(rows, 1)
    fixed = f"""def main(x: f32[{rows}, 9], w: f32[9, {columns}], b: f32[{rows}, 1]) -> f32[{rows}, {columns}] {{
      return relu(add(matmul(x, w), b)) }}"""
    any_size = "def main(x: f32[m, k], w: f32[k, n], b: f32[m, 1]) -> f32[m, n] { return relu(add(matmul(x, w), b)) }"
    for text in (fixed, any_size):
        result = run_everywhere(parse_module(text), x, w, b)
        assert np.array_equal(np.asarray(result), np.maximum(x @ w + b, 0))


@pytest.mark.parametrize(("depth", "columns"), [(3, 40), (4, 16), (7, 1030), (21, 515), (600, 17)])
def test_one_row_has_the_bits_of_a_row_in_a_batch(depth: int, columns: int) -> None:
    """A product of one row reads the matrix in memory order, and others copy it to panels."""
    x, w = RANDOM.standard_normal((2, depth), np.float32), RANDOM.standard_normal((3, depth, columns), np.float32)
    for batch, matrix in (("", w[0]), ("3, ", w)):
        first_rows = set()
        for rows in (1, 2):
            text = f"""def main(x: f32[{rows}, {depth}], w: f32[{batch}{depth}, {columns}]) ->
              f32[{batch}{rows}, {columns}] {{ return matmul(x, w) }}"""
            for machine in machines(parse_module(text), [("bytecode", "c"), ("bytecode", "bytecode")]).values():
                first_rows.add(machine["main"](x[:rows], matrix).numpy()[..., 0, :].tobytes())
        assert len(first_rows) == 1


@pytest.mark.parametrize("dtype", ["f32", "i32", "f64"])
@pytest.mark.parametrize(("depth", "columns"), [(16, 16), (15, 47), (37, 70), (600, 33)])
def test_a_transposed_matrix_of_any_size(depth: int, columns: int, dtype: str) -> None:
    """Blocks of 16 x 16 elements of 32 bits are transposed in registers, and the rest is copied in loops."""
    x, w = (numbers(rows, depth).astype(dtype.replace("i", "int").replace("f", "float")) for rows in (5, columns))
    fixed = f"def main(x: {dtype}[5, {depth}], w: {dtype}[{columns}, {depth}]) -> {dtype}[5, {columns}]"
    any_size = f"def main(x: {dtype}[m, k], w: {dtype}[n, k]) -> {dtype}[m, n]"
    for head in (fixed, any_size) if depth <= BOUND else (fixed,):  # sizes of exports
        result = run_everywhere(parse_module(f"{head} {{ return matmul(x, w, transpose_b=true) }}"), x, w)
        assert np.array_equal(np.asarray(result), x @ w.T)


@pytest.mark.parametrize("target", ["c", "bytecode"])
def test_products_of_bytes_of_any_size(target: str) -> None:
    """With AMX, a tile of enough rows and depth is computed in blocks of 16 rows, 64 columns and 64 bytes of depth."""
    for a_type, b_type in (("i8", "i8"), ("u8", "i8"), ("i8", "u8"), ("u8", "u8")):
        text = f"""def main(a: {a_type}[m, k], b: {b_type}[k, n], a_zero: {a_type}[], b_zero: {b_type}[]) {{
          return matmul_integer(a, b, a_zero, b_zero) }}"""
        machine = vm.VirtualMachine(vm.build(parse_module(text), target=target))
        for rows, depth, columns in (
            *((1, 2000, 64), (5, 311, 17), (6, 256, 100), (16, 96, 16), (17, 192, 33), (31, 64, 48), (48, 31, 65)),
            *((47, 66, 130), (48, 65, 64), (49, 200, 70), (100, 128, 200), (145, 643, 31), (23, 2500, 5)),
        ):
            a, b, a_zero, b_zero = (
                RANDOM.integers(0, 256, shape, np.uint8).view({"i8": "i1", "u8": "u1"}[dtype])
                for dtype, shape in ((a_type, (rows, depth)), (b_type, (depth, columns)), (a_type, ()), (b_type, ()))
            )
            expected = (a.astype(np.int32) - np.int32(a_zero)) @ (b.astype(np.int32) - np.int32(b_zero))
            found = machine["main"](a, b, a_zero, b_zero).numpy()
            assert np.array_equal(found, expected), (a_type, b_type, rows, depth, columns)


@pytest.mark.parametrize("size", [(1, 1), (8, 8), (5, 13), (16, 16)])
def test_a_convolution_of_any_size(size: tuple[int, int]) -> None:
    x, w, b = numbers(2, 5, *size), numbers(7, 5, 1, 1), numbers(1, 7, 1, 1)
    high, wide = size
    fixed = f"""
    def main(x: f32[2, 5, {high}, {wide}], w: f32[7, 5, 1, 1], b: f32[1, 7, 1, 1]) -> f32[2, 7, {high}, {wide}] {{
      return relu(add(conv(x, w), b)) }}"""
    any_size = """def main(x: f32[n, 5, h, v], w: f32[7, 5, 1, 1], b: f32[1, 7, 1, 1]) -> f32[n, 7, h, v] {
      return relu(add(conv(x, w), b)) }"""
    expected = np.maximum(np.einsum("nchw,fc->nfhw", x, w[:, :, 0, 0]) + b, 0)
    for text in (fixed, any_size):
        assert np.array_equal(np.asarray(run_everywhere(parse_module(text), x, w, b)), expected)
