"""Random numbers.

All are computed from `random_bits`, the only operator that returns a different result for each call.
"""

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
    """The next 64 uniformly random bits of the virtual machine.  `VirtualMachine.seed` determines the sequence.

    Result: an i64 scalar.
    Raises nothing.
    Source: Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014.
    """
    return PrimType(I64)
