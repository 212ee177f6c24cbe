"""Tests of products whose tiles are full, narrow, or of any width: rows that are adjacent in memory or not."""

from __future__ import annotations

import numpy as np
import pytest
from support.modes import run_everywhere

from relvm.frontend.text import parse_module

COLUMNS = (1, 15, 16, 17, 47, 48, 63, 64, 65, 100)
RANDOM = np.random.default_rng(3)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.integers(-4, 5, shape).astype(np.float32)  # sums are exact in any order


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("rows", [5, 13])
def test_a_product_of_any_width(columns: int, rows: int) -> None:
    """The bias is one number for each row, and is loaded with a step of 0 along the row."""
    x, w, b = numbers(rows, 9), numbers(9, columns), numbers(rows, 1)
    fixed = f"""def main(x: f32[{rows}, 9], w: f32[9, {columns}], b: f32[{rows}, 1]) -> f32[{rows}, {columns}] {{
      return relu(add(matmul(x, w), b)) }}"""
    any_size = "def main(x: f32[m, k], w: f32[k, n], b: f32[m, 1]) -> f32[m, n] { return relu(add(matmul(x, w), b)) }"
    for text in (fixed, any_size):
        result = run_everywhere(parse_module(text), x, w, b)
        assert np.array_equal(np.asarray(result), np.maximum(x @ w + b, 0))


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
