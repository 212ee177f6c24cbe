"""The scratch memory of kernels."""

from __future__ import annotations

import math

from relvm.ir.loop_ir import Allocate, Buffer, statements_in
from relvm.ir.symbolic import known_size
from relvm.kernels.kernel import Kernel
from relvm.passes.memory.arena_allocator import align

SCRATCH_ALIGNMENT = 16  # alignment, in bytes, of the arrays of a kernel in its scratch memory
_ON_STACK_BYTES = 256  # kernel arrays up to this size are local variables


class KernelScratch:
    """The layout of a kernel's scratch memory.  Arrays that are too large for the C stack are in scratch memory."""

    def __init__(self, kernel: Kernel) -> None:
        self.offsets: dict[Buffer, int] = {}
        self.size_bytes = 0
        for statement in statements_in(kernel.body):
            if isinstance(statement, Allocate):
                buffer = statement.buffer
                size = math.prod(map(known_size, buffer.shape)) * buffer.dtype.size_bytes
                if size > _ON_STACK_BYTES:
                    self.offsets[buffer] = self.size_bytes
                    self.size_bytes += align(size, SCRATCH_ALIGNMENT)
