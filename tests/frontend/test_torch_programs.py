"""Exported programs of PyTorch: every mode and target gives the results of PyTorch.

The programs and results in tests/frontend/pt2 were written once by tests/frontend/torch_fixtures.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relvm
from relvm import vm
from relvm.errors import RelvmIndexError
from relvm.frontend.torch import from_pt2

FOLDER = Path(__file__).resolve().parent / "pt2"
PROGRAMS = sorted(path.name for path in FOLDER.glob("*.pt2"))


def calls_of(name: str) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """Return the inputs and the results of each call of a program."""
    data = np.load(FOLDER / f"{name.partition('.')[0]}.npz")
    found = []
    while f"{len(found)}_y0" in data:
        at = len(found)
        found.append(tuple([data[key] for key in _numbered(data, f"{at}_{kind}")] for kind in "xyz"))
    return [(inputs, [*results, *changed]) for inputs, results, changed in found]


def _numbered(data: Any, prefix: str) -> list[str]:
    return [key for i in range(100) if (key := f"{prefix}{i}") in data]


def leaves(result: Any) -> list[np.ndarray]:
    items = result if isinstance(result, list | tuple) else [result]
    return [each.numpy() if hasattr(each, "numpy") else np.asarray(each) for each in items]


def expect_results(function: Any, name: str) -> None:
    for inputs, expected in calls_of(name):
        arguments = inputs
        if name.startswith("dtypes"):
            import ml_dtypes

            arguments = [*inputs[:2], inputs[2].astype(ml_dtypes.bfloat16), inputs[3]]
        found = leaves(function(*arguments))
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            assert x.shape == y.shape
            if x.dtype.name == "bfloat16":
                np.testing.assert_allclose(x.astype(np.float32), y, rtol=1e-2)
                continue
            assert x.dtype == y.dtype
            if x.dtype.kind in "iub":
                np.testing.assert_array_equal(x, y)
            else:
                np.testing.assert_allclose(x, y, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["bytecode", "numpy"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_the_results_of_pytorch(name: str, target: str) -> None:
    machine = vm.VirtualMachine(vm.build(from_pt2(FOLDER / name), target=target, verified=True))
    expect_results(machine["main"], name)


@pytest.mark.parametrize("name", ["transformer.core.pt2", "control_flow.pt2"])
def test_compiled_functions_give_the_results_of_pytorch(name: str) -> None:
    machine = vm.VirtualMachine(vm.build(FOLDER / name, "compiled", "c"))
    expect_results(machine["main"], name)


@pytest.mark.parametrize("name", ["mlp.pt2", "cnn.core.pt2"])
def test_a_file_and_its_contents_can_be_loaded(name: str) -> None:
    path = FOLDER / name
    for model in (path, path.read_bytes()):
        expect_results(relvm.load_model(model, exec_mode="bytecode", target="bytecode"), name)


def test_a_negative_index_is_reported_as_it_is() -> None:
    bags = vm.VirtualMachine(vm.build(from_pt2(FOLDER / "bags.core.pt2"), target="bytecode"))["main"]
    with pytest.raises(RelvmIndexError, match="index -3 is outside axis 0 of table, of size 9"):
        bags(np.array([1, -3, 2, 0, 1]), np.array([0, 2, 5]), np.ones(5, np.float32))
    tokens = vm.VirtualMachine(vm.build(from_pt2(FOLDER / "transformer.core.pt2"), target="bytecode"))["main"]
    with pytest.raises(RelvmIndexError, match="gather: index -1 is outside axis 0 of size 11"):
        tokens(np.array([[0, -1, 2], [3, 4, 5]]))


@pytest.mark.parametrize("number", [-1, 4])
def test_a_class_that_does_not_exist_is_an_error(number: int) -> None:
    rows = vm.VirtualMachine(vm.build(from_pt2(FOLDER / "classes.pt2"), target="bytecode"))["main"]
    with pytest.raises(RelvmIndexError, match=f"gather: index {number} is outside axis 0 of size 4"):
        rows(np.array([0, number]))


@pytest.mark.parametrize("name", ["cache.pt2", "cache.core.pt2"])
def test_a_donated_cache_is_updated_in_place(name: str) -> None:
    step = vm.VirtualMachine(vm.build(from_pt2(FOLDER / name), target="bytecode"))["main"]
    cache, rows = np.zeros((2, 16, 8), np.float32), np.ones((2, 1, 8), np.float32)
    addresses = []
    for position in range(4):
        _, new = step(rows * position, np.array([position]), vm.Donated(cache))
        cache = new.numpy()
        addresses.append(cache.__array_interface__["data"][0])
    assert len(set(addresses[1:])) == 1  # the first array need not be aligned
    np.testing.assert_array_equal(cache[0, :, 0], [0, 1, 2, 3, *[0] * 12])
