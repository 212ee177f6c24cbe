"""C names of routines and kernels, which generated code defines and the function table refers to."""

from __future__ import annotations

from relvm.lir.routine import PREFIX
from relvm.quoting import c_identifier_part


def routine_symbol(name: str) -> str:
    """Return `__vmtir__NAME`.  Characters that C does not allow are written as _xHH_."""
    return PREFIX + c_identifier_part(name)


def kernel_symbol(name: str) -> str:
    """Return `kernel_NAME`, escaped in the same way."""
    return "kernel_" + c_identifier_part(name)
