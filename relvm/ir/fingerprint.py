"""Module origins: cache keys for what is computed from a module."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from relvm.ir.expr import Module

# By identity: modules are immutable, and a pass returns a new one.
_ORIGINS: WeakKeyDictionary[Module, str] = WeakKeyDictionary()


def set_origin(module: Module, origin: str) -> Module:
    """Declare that equal `origin`s imply equal modules, within this version of relvm.  Return the module."""
    _ORIGINS[module] = origin
    return module


def origin_of(module: Module) -> str | None:
    """Return the origin that `set_origin` recorded for this module object, or None."""
    return _ORIGINS.get(module)
