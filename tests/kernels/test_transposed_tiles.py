"""Kernels with transposed operands or results: tiles that are full, and tiles at the edges."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from relvm import vm
from relvm.frontend.text import parse_module
from relvm.tables import kernel_constant

TILE = kernel_constant("TRANSPOSED_TILE")
DTYPES = {"bool": np.bool_, "u8": np.uint8, "i16": np.int16, "f32": np.float32, "i64": np.int64}  # of each size
SIZES = (1, TILE - 1, TILE, TILE + 1, 2 * TILE, 2 * TILE + 1)


def test_every_element_of_every_tile_is_computed() -> None:
    functions = [
        "def any(x: f32[a, b], y: f32[b, a]) -> f32[b, a] = subtract(transpose(x), y)",
        "def deep(x: f32[c, a, b], y: f32[c, b, a]) -> f32[c, b, a] = subtract(transpose(x, perm=[0, 2, 1]), y)",
        *(
            f"def f{a}x{b}(x: f32[{a}, {b}], y: f32[{b}, {a}]) -> f32[{b}, {a}] = subtract(transpose(x), y)"
            for a, b in itertools.product(SIZES, repeat=2)
        ),
    ]
    machine = vm.VirtualMachine(vm.build(parse_module("\n".join(functions)), target="bytecode"))
    for a, b in itertools.product(SIZES, repeat=2):
        x, y = np.arange(a * b, dtype=np.float32).reshape(a, b), np.ones((b, a), np.float32)
        for name in ("any", f"f{a}x{b}"):
            np.testing.assert_array_equal(machine[name](x, y).numpy(), x.T - y)
        three = np.stack((x, -x, x + 1))
        expected = three.transpose(0, 2, 1) - y
        np.testing.assert_array_equal(machine["deep"](three, np.stack((y, y, y))).numpy(), expected)


def test_every_element_of_a_transposed_gather_is_computed() -> None:
    functions = [
        f"def of_{dtype}(x: {dtype}[7, a], i: i64[b]) -> {dtype}[a, b] = transpose(gather(x, i))" for dtype in DTYPES
    ]
    machine = vm.VirtualMachine(vm.build(parse_module("\n".join(functions)), target="bytecode"))
    for a, b in itertools.product(SIZES, repeat=2):
        i = np.arange(b) * 5 % 13 % 7 - 3
        for dtype, numpy in DTYPES.items():
            x = np.arange(7 * a).reshape(7, a).astype(numpy)
            np.testing.assert_array_equal(machine[f"of_{dtype}"](x, i).numpy(), x[i].T)


@pytest.mark.parametrize("target", ["c", "bytecode"])
def test_elements_of_every_size(target: str) -> None:
    functions = [f"def of_{dtype}(x: {dtype}[c, a, b]) = transpose(x, perm=[2, 0, 1])" for dtype in DTYPES]
    machine = vm.VirtualMachine(vm.build(parse_module("\n".join(functions)), target=target))
    random = np.random.default_rng(0)
    for a, b in itertools.product(SIZES, repeat=2):
        for dtype, numpy in DTYPES.items():
            x = random.integers(0, 2**15, (3, a, b)).astype(numpy)
            np.testing.assert_array_equal(machine[f"of_{dtype}"](x).numpy(), x.transpose(2, 0, 1))


def test_every_element_of_a_transposed_result_of_reduced_columns_is_computed() -> None:
    """The columns of x, which are adjacent in memory, become rows of the result."""
    lanes = (1, TILE, 63, 64, 65, 130)
    functions = [
        f"def of_{dtype}(x: {dtype}[c, a, b]) -> {dtype}[c, b, a] ="
        " transpose(subtract(x, sum(x, axes=[1], keepdims=true)), perm=[0, 2, 1])"
        for dtype in ("f32", "f64")
    ] + [
        f"def f{a}x{b}(x: f32[1, {a}, {b}]) -> f32[1, {b}, {a}] ="
        " transpose(subtract(x, sum(x, axes=[1], keepdims=true)), perm=[0, 2, 1])"
        for a, b in itertools.product(SIZES, lanes)
    ]
    machine = vm.VirtualMachine(vm.build(parse_module("\n".join(functions)), target="bytecode"))
    for a, b in itertools.product(SIZES, lanes):
        x = np.arange(2 * a * b, dtype=np.float64).reshape(2, a, b) % 11
        expected = (x - x.sum(axis=1, keepdims=True)).transpose(0, 2, 1)
        np.testing.assert_array_equal(machine["of_f64"](x).numpy(), expected)
        np.testing.assert_array_equal(machine["of_f32"](x.astype(np.float32)).numpy(), expected)
        np.testing.assert_array_equal(machine[f"f{a}x{b}"](x[:1].astype(np.float32)).numpy(), expected[:1])
