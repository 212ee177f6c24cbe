"""The C names of routines and kernels: what generated code defines and the executable's function table looks up."""

from __future__ import annotations

from relvm.lir.routine import PREFIX
from relvm.quoting import c_identifier_part


def routine_symbol(name: str) -> str:
    """`__vmtir__NAME`, with what C does not allow in a name written as _xHH_."""
    return PREFIX + c_identifier_part(name)


def kernel_symbol(name: str) -> str:
    """`kernel_NAME`, written alike."""
    return "kernel_" + c_identifier_part(name)
