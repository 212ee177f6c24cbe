"""A program without native code sees nothing of what was in the process's memory before."""

from __future__ import annotations

import numpy as np
from handmade import machine_of

from relvm import vm

SIZE = 20_000  # bytes: malloc gives freed blocks of this size out again

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
