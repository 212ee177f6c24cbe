"""The names of a module that generated functions and kernels must not have."""

from __future__ import annotations

from relvm.ir.expr import Module, PackedCall, PackedRef
from relvm.ir.node import walk


def used_names(module: Module) -> set[str]:
    """Return the names of the functions and kernels of `module`, and of the packed functions that it uses.

    Functions of different kinds can have the same name, but a generated name that no other function has is easier to
    recognize in listings, profiles and stack traces.
    """
    found = {name for name, _ in module.kernels}
    for function in module.functions:
        found.add(function.name)
        found.update(item.name for item in walk(function) if isinstance(item, PackedCall | PackedRef))
    return found
