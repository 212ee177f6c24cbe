"""Cache keys of modules: strings under which results that are computed from a module are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from relvm.ir.expr import Module

# The keys are compared by identity.  Modules are immutable, and a pass returns a new one.
_CACHE_KEYS: WeakKeyDictionary[Module, str] = WeakKeyDictionary()


def set_cache_key(module: Module, key: str) -> Module:
    """Record the cache key of `module`, and return the module.

    The caller must ensure that two modules with the same key are equal.  A different version of relvm may build
    another module for the same key.
    """
    _CACHE_KEYS[module] = key
    return module


def cache_key_of(module: Module) -> str | None:
    """Return the cache key that `set_cache_key` recorded for this module object, or None."""
    return _CACHE_KEYS.get(module)
