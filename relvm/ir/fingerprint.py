"""What a module was read from, as a key for what was made of it before."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from relvm.ir.expr import Module

# By identity: a module cannot change, and what is made of it by a pass is another one.
_ORIGINS: WeakKeyDictionary[Module, str] = WeakKeyDictionary()


def set_origin(module: Module, origin: str) -> Module:
    """States that whoever gives the same `origin` gives the same module, in this version of relvm."""
    _ORIGINS[module] = origin
    return module


def origin_of(module: Module) -> str | None:
    """What `set_origin` stated of this very module."""
    return _ORIGINS.get(module)
