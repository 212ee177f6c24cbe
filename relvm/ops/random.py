"""Random numbers: all are made of `random_bits`, the one operator that gives another result each time."""

from __future__ import annotations

import secrets

from relvm.ir.dtypes import I64
from relvm.ir.operator import Effect, op
from relvm.ir.types import PrimType
from relvm.kernels.lowering_rules import Builtin


@op(
    "random_bits",
    numpy=lambda: secrets.randbits(64) - 2**63,
    lower=Builtin("random_bits"),
    effect=Effect.IMPURE,
)
def random_bits() -> PrimType:
    """The next of the machine's random numbers, 64 bits of which each is 0 or 1 alike; `VirtualMachine.seed` says where
    they begin.

    Result: i64.   Raises nothing.
    Source: Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014.
    """
    return PrimType(I64)
