"""A program without native code cannot read uninitialized or freed memory of the process."""

from __future__ import annotations

import time

import numpy as np
import pytest
from support.assembly_programs import machine_of

from relvm import vm
from relvm._native import ffi
from relvm.errors import RelvmArgumentError

SIZE = 20_000  # bytes; malloc reuses freed blocks of this size

TEXT = f"""
c0 = int {SIZE}
c1 = dtype u8
f13 = packed vm.builtin.alloc_tensor
f14 = bytecode main(shape) registers 3
  0: call r1 = vm.builtin.alloc_storage(ctx, c0, 0, c1)
  1: call r2 = vm.builtin.alloc_tensor(r1, 0, r0, c1)
  2: ret r2
"""


def test_a_storage_begins_as_zeros() -> None:
    secrets = [np.full(SIZE + padding, 0x5A, np.uint8) for padding in range(0, 512, 16)]
    del secrets
    for _ in range(10):
        result = machine_of(TEXT)["main"](vm.Shape((SIZE,)))
        assert not result.numpy().any()


def random_bits() -> int:
    text = "f13 = packed vm.builtin.random_bits\nf14 = bytecode main() registers 1\n"
    machine = machine_of(text + "  0: call r0 = vm.builtin.random_bits(ctx)\n  1: ret r0")
    address = int(ffi.cast("uintptr_t", machine._runner.machine))
    return (first_state(machine["main"]()) ^ address << 20) % 2**64


def first_state(number: int) -> int:
    """Return the seed from which SplitMix64 computed its first number, by undoing each of its steps."""
    x = number % 2**64
    x ^= x >> 31 ^ x >> 62
    x = x * pow(0x94D049BB133111EB, -1, 2**64) % 2**64
    x ^= x >> 27 ^ x >> 54
    x = x * pow(0xBF58476D1CE4E5B9, -1, 2**64) % 2**64
    x ^= x >> 30 ^ x >> 60
    return (x - 0x9E3779B97F4A7C15) % 2**64


def test_random_numbers_do_not_begin_at_an_address() -> None:
    """The seed must not be the time combined with the address of the machine.

    A program that knows the time could otherwise compute the address from the random numbers.
    """
    hour = 3600 * 10**9
    assert not all(abs(random_bits() - time.monotonic_ns()) < hour for _ in range(3))


NEGATIVE = """
c0 = dtype u8
c1 = string {attributes}
f13 = packed vm.builtin.alloc_tensor
f14 = packed vm.builtin.shape_of
f15 = packed reference.negative
f16 = bytecode main(x) registers 5
  0: call r1 = vm.builtin.shape_of(r0)
  1: call r2 = vm.builtin.alloc_storage(ctx, r1, 0, c0)
  2: call r3 = vm.builtin.alloc_tensor(r2, 0, r1, c0)
  3: call reference.negative(c1, r0, {out})
  4: ret r3
"""


def test_a_kernel_in_numpy_takes_only_attributes_of_its_operator() -> None:
    """Other keyword arguments of NumPy are rejected.

    For example, {"where": false} would leave the result uninitialized.
    """
    x = np.ones(5000, np.uint8)
    machine = machine_of(NEGATIVE.format(attributes='"{}"', out="r3"))
    assert (machine["main"](x).numpy() == 255).all()
    for name in ("where", "out", "dtype", "casting", "order", "subok"):
        machine = machine_of(NEGATIVE.format(attributes=f'"{{\\"{name}\\": false}}"', out="r3"))
        with pytest.raises(RelvmArgumentError, match=f"negative: unknown attribute {name}"):
            machine["main"](x)


@pytest.mark.parametrize("attributes", ['"{"', '"[]"', '"3"', '"' + "[" * 100_000 + '"'])
def test_attributes_that_are_no_json_object_are_refused(attributes: str) -> None:
    machine = machine_of(NEGATIVE.format(attributes=attributes, out="r3"))
    with pytest.raises(RelvmArgumentError, match=r"kernel (are not valid JSON|must be a JSON object)"):
        machine["main"](np.ones(3, np.uint8))


def test_a_kernel_in_numpy_writes_to_memory_of_the_machine_only() -> None:
    x = np.ones(5000, np.uint8)
    for out in ("r0", "c0"):
        machine = machine_of(NEGATIVE.format(attributes='"{}"', out=out))
        with pytest.raises(RelvmArgumentError, match="negative: expected an output tensor that the machine allocated"):
            machine["main"](x)
    assert x.all()
