"""Elementwise kernels whose operands are transposed: tiles that are full, and tiles at the edges."""

from __future__ import annotations

import itertools

import numpy as np

from relvm import vm
from relvm.frontend.text import parse_module
from relvm.tables import kernel_constant

TILE = kernel_constant("TRANSPOSED_TILE")
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
