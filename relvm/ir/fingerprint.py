"""Origins of modules.  An origin is a cache key for results that are computed from a module."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from relvm.ir.expr import Module

# The keys are compared by identity.  Modules are immutable, and a pass returns a new one.
_ORIGINS: WeakKeyDictionary[Module, str] = WeakKeyDictionary()


def set_origin(module: Module, origin: str) -> Module:
    """Record `origin` as the cache key of `module`.  Return the module.

    The caller must ensure that modules with equal origins are equal, at least within this version of relvm.
    """
    _ORIGINS[module] = origin
    return module


def origin_of(module: Module) -> str | None:
    """Return the origin that `set_origin` recorded for this module object, or None."""
    return _ORIGINS.get(module)
