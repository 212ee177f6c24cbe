"""argtopk: rows that are hard to sort, and all dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from relvm import vm
from relvm.frontend.text import parse_module
from relvm.ir.dtypes import dtype_of
from relvm.ir.operator import operators


def _unevenly_divided(size: int) -> np.ndarray:
    """Return numbers of which a quicksort splits off two at a time, if its pivot is the median of the ends and the
    middle (csrc/codegen/sorting.h)."""
    values, places = np.zeros(size), list(range(size))  # the numbers, and the order in which the sort has moved them
    for least in range(0, size - 2, 2):
        middle = len(places) // 2
        values[places[0]], values[places[middle]] = least, least + 1
        places[middle], places[-1] = places[-1], places[middle]
        places[1], places[-1] = places[-1], places[1]
        places = places[2:]
    values[places] = size + np.arange(len(places))
    return values


def _orders(size: int) -> dict[str, np.ndarray]:
    rising, random = np.arange(size), np.random.default_rng(size)
    return {
        "rising": rising,
        "falling": rising[::-1],
        "equal": np.zeros(size),
        "few values": random.integers(0, 3, size),
        "random": random.standard_normal(size),
        "organ pipe": np.concatenate([rising[: size // 2], rising[: size - size // 2][::-1]]),
        "unevenly divided": _unevenly_divided(size),
        "special": random.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-45], size),
    }


def _expected(x: np.ndarray, count: int, largest: bool) -> np.ndarray:
    x = x + x.dtype.type(0)  # -0.0 and 0.0 are equal
    if largest:
        size = x.shape[1]
        return (size - 1 - np.argsort(x[:, ::-1], axis=1, kind="stable")[:, ::-1])[:, :count]
    return np.argsort(x, axis=1, kind="stable")[:, :count]


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_orders_that_are_hard_to_sort(dtype: str, largest: bool) -> None:
    arguments = f"x, shape(rows, k), axis=1, largest={str(largest).lower()}"
    text = f"def main(x: {dtype}[rows, n], y: f32[k]) = argtopk({arguments})"
    machine = vm.VirtualMachine(vm.build(parse_module(text), target="bytecode"))
    for size in (1, 2, 23, 24, 25, 700, 3000):
        x = np.stack(list(_orders(size).values())).astype({"f32": "f4", "f64": "f8"}[dtype])
        for count in {0, 1, size // 3, size - 1, size}:
            found = machine["main"](x, np.zeros(count, "f4")).numpy()
            np.testing.assert_array_equal(found, _expected(x, count, largest), f"{size} numbers, {count} positions")


@pytest.mark.parametrize("dtype", ["bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16"])
def test_the_least_and_the_largest_numbers_of_each_dtype(dtype: str) -> None:
    narrow = dtype_of(dtype)
    x = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, (4, 700)).astype("i8")
    x = x.view(narrow.numpy)[:, :700] if dtype != "bool" else x % 2 == 1
    for largest in (True, False):
        text = f"def main(x: {dtype}[4, 700]) = argtopk(x, shape(4, 90), axis=1, largest={str(largest).lower()})"
        machine = vm.VirtualMachine(vm.build(parse_module(text), target="bytecode"))
        order = operators()["argtopk"].numpy(x, (4, 90), axis=1, largest=largest)
        np.testing.assert_array_equal(machine["main"](x).numpy(), order)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_every_axis(axis: int) -> None:
    x = np.random.default_rng(axis).standard_normal((3, 1, 700, 1)).astype("f4")
    count = {0: 2, 2: 90}.get(axis, 1)
    shape = [count if i == axis else size for i, size in enumerate(x.shape)]
    text = f"def main(x: f32[3, 1, 700, 1]) = argtopk(x, shape{tuple(shape)}, axis={axis})"
    machine = vm.VirtualMachine(vm.build(parse_module(text), target="bytecode"))
    order = operators()["argtopk"].numpy(x, tuple(shape), axis=axis, largest=True)
    np.testing.assert_array_equal(machine["main"](x).numpy(), order)
