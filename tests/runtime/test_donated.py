"""Arguments that a call may overwrite."""

from __future__ import annotations

import numpy as np
import pytest

from relvm import vm
from relvm.errors import RelvmArgumentError, RelvmTypeError
from relvm.frontend.text import parse_module

_MODES = (("bytecode", "bytecode"), ("compiled", "bytecode"))
_PROGRAM = """
def main(x: f32[4, 16], row: f32[1, 16]) -> f32[4, 16] =
  scatter_nd(x, const(i64[1, 1], [[3]]), row, depth=1)

def both(x: f32[4, 16], row: f32[1, 16]) -> (f32[4, 16], f32[4, 16]) =
  (scatter_nd(x, const(i64[1, 1], [[3]]), row, depth=1), x)

def same(x: f32[4, 16]) -> f32[4, 16] = x

def flat(x: f32[4, 16], item: f32[1]) -> f32[64] =
  scatter_nd(reshape(x, shape(64)), const(i64[1, 1], [[5]]), item, depth=1)
"""
_ROW = np.arange(16, dtype=np.float32).reshape(1, 16)


def aligned(shape: tuple[int, ...], offset: int = 0) -> np.ndarray:
    """Return ones in memory that is aligned to 64 bytes, or `offset` elements behind."""
    count = int(np.prod(shape))
    memory = np.ones(count + 32, np.float32)
    start = -memory.ctypes.data % 64 // 4 + offset
    return memory[start : start + count].reshape(shape)


def expected(shape: tuple[int, ...] = (4, 16)) -> np.ndarray:
    array = np.ones(shape, np.float32)
    array[3] = _ROW
    return array


@pytest.mark.parametrize(("mode", "target"), _MODES)
def test_a_donated_array_is_updated_in_place(mode: str, target: str) -> None:
    machine = vm.VirtualMachine(vm.build(parse_module(_PROGRAM), mode, target))
    x = aligned((4, 16))
    result = machine["main"](vm.Donated(x), _ROW)
    assert result.numpy().ctypes.data == x.ctypes.data
    np.testing.assert_array_equal(result.numpy(), expected())
    np.testing.assert_array_equal(x, expected())
    again = machine["main"](result, _ROW * 2)  # the result belongs to the caller
    assert again.numpy().ctypes.data != x.ctypes.data
    np.testing.assert_array_equal(result.numpy(), expected())
    assert machine["same"](vm.Donated(x)).numpy().ctypes.data == x.ctypes.data
    reshaped = machine["flat"](vm.Donated(x), np.full(1, 7, np.float32))
    assert reshaped.numpy()[5] == 7


@pytest.mark.parametrize(("mode", "target"), _MODES)
def test_an_array_that_is_used_otherwise_is_copied(mode: str, target: str) -> None:
    machine = vm.VirtualMachine(vm.build(parse_module(_PROGRAM), mode, target))
    x = aligned((4, 16))
    np.testing.assert_array_equal(machine["main"](x, _ROW).numpy(), expected())
    updated, old = machine["both"](vm.Donated(x), _ROW)
    np.testing.assert_array_equal(updated.numpy(), expected())
    np.testing.assert_array_equal(old.numpy(), np.ones((4, 16)))
    unaligned = aligned((4, 16), offset=1)
    np.testing.assert_array_equal(machine["main"](vm.Donated(unaligned), _ROW).numpy(), expected())
    for untouched in (x, unaligned):
        np.testing.assert_array_equal(untouched, np.ones((4, 16)))


def test_only_writable_arrays_can_be_donated() -> None:
    read_only = np.ones(3)
    read_only.flags.writeable = False
    for value in (read_only, np.ones((3, 2)).T, [1.0], 3):
        with pytest.raises(RelvmTypeError, match="Donated: expected a writable, dense, row-major array, got"):
            vm.Donated(value)


def test_an_array_is_donated_once() -> None:
    machine = vm.VirtualMachine(vm.build(parse_module(_PROGRAM), "bytecode", "bytecode"))
    argument = vm.Donated(aligned((4, 16)))
    machine["main"](argument, _ROW)
    with pytest.raises(RelvmArgumentError, match="Donated: an earlier call has taken the array"):
        machine["main"](argument, _ROW)
    x = aligned((4, 16))
    argument = vm.Donated(x)
    x.flags.writeable = False
    with pytest.raises(RelvmTypeError, match="Donated: the array has become read-only"):
        machine["main"](argument, _ROW)
    np.testing.assert_array_equal(x, np.ones((4, 16)))
