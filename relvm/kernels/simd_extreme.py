"""Maxima and minima in SIMD loops."""

from __future__ import annotations

import math

from relvm.ir.dtypes import I32, I64
from relvm.ir.loop_ir import Literal, Local, Scalar, select
from relvm.kernels.kernel_builder import KernelBuilder


class SimdExtreme:
    """The maximum or minimum of numbers, computed in a SIMD loop.

    The lanes of the loop skip NaN, because a comparison with NaN is false.  For floats, a separate flag records whether
    a number was NaN.  If so, the result is NaN.

    best: the variable of the maximum or minimum, which has its initial value.
    clause: "max" or "min".
    reduce: the reductions that the loop must state.
    """

    def __init__(self, k: KernelBuilder, best: Local, clause: str) -> None:
        self.k, self.best, self.clause = k, best, clause
        self.reduce: list[tuple[str, Local]] = [(clause, best)]
        if best.dtype.is_float:
            flag = I32 if best.dtype.bits <= 32 else I64  # an integer as wide as a number
            self.unordered = k.variable("unordered", Literal(0, flag))
            self.reduce.append(("or", self.unordered))

    def add(self, number: Scalar) -> None:
        """Generate the code that combines a number with the maximum or minimum, in the loop."""
        is_better = number > self.best if self.clause == "max" else number < self.best
        self.k.assign(self.best, select(is_better, number, self.best))
        if self.best.dtype.is_float:
            self.k.assign(self.unordered, select(number.ne(number), Literal(1, self.unordered.dtype), self.unordered))

    def result(self) -> Scalar:
        """Return the maximum or minimum after the loop."""
        if not self.best.dtype.is_float:
            return self.best
        return select(self.unordered > 0, Literal(math.nan, self.best.dtype), self.best)
