"""The names in use that generated functions and kernels avoid."""

from __future__ import annotations

from relvm.ir.expr import Module, PackedCall, PackedRef
from relvm.ir.node import walk


def used_names(module: Module) -> set[str]:
    """Return the names of the functions and kernels of `module`, and of the packed functions that it uses.

    Functions and kernels of a module must have different names.  A packed function can have the name of either, but
    listings, profiles and stack traces are easier to read if a generated function does not have its name.
    """
    found = {name for name, _ in module.kernels}
    for function in module.functions:
        found.add(function.name)
        found.update(item.name for item in walk(function) if isinstance(item, PackedCall | PackedRef))
    return found
