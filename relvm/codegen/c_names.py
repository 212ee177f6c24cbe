"""The C names of routines and kernels: what generated code defines and the executable's function table looks up."""

from __future__ import annotations

import re

from relvm.lir.routine import PREFIX


def routine_symbol(name: str) -> str:
    """`__vmtir__NAME`, with what C does not allow in a name written as _xHH_."""
    return PREFIX + escaped(name)


def kernel_symbol(name: str) -> str:
    """`kernel_NAME`, escaped alike."""
    return "kernel_" + escaped(name)


def escaped(name: str) -> str:
    """A name as a part of a C identifier; different names stay different."""
    # An escaped name never equals another name's own text: _x is escaped too.
    return re.sub(r"_x|[^A-Za-z0-9_]", lambda m: "".join(f"_x{ord(ch):X}_" for ch in m.group()), name)
