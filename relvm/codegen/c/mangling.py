"""C names of routines and kernels.  Generated code defines these symbols, and the function table refers to them."""

from __future__ import annotations

from relvm.lir.routine import PREFIX
from relvm.quoting import c_identifier_part


def routine_symbol(name: str) -> str:
    """Return the C name of the routine `name`: `__vmtir__NAME`.  Characters that C does not allow are written as
    _xHH_.
    """
    return PREFIX + c_identifier_part(name)


def kernel_symbol(name: str) -> str:
    """Return the C name of the kernel `name`: `kernel_NAME`.  Characters that C does not allow are written as _xHH_."""
    return "kernel_" + c_identifier_part(name)
