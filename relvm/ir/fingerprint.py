"""Origins of modules.

The origin of a module is a string that serves as a cache key: results computed from the module are stored under it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from relvm.ir.expr import Module

# The keys are compared by identity.  Modules are immutable, and a pass returns a new one.
_ORIGINS: WeakKeyDictionary[Module, str] = WeakKeyDictionary()


def set_origin(module: Module, origin: str) -> Module:
    """Record `origin` as the cache key of `module`, and return the module.

    The caller must ensure that two modules with the same origin are equal.  A different version of relvm may build
    another module for the same origin.
    """
    _ORIGINS[module] = origin
    return module


def origin_of(module: Module) -> str | None:
    """Return the origin that `set_origin` recorded for this module object, or None."""
    return _ORIGINS.get(module)
