"""Class decorators for small immutable objects, of which a build creates thousands."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

_Object = TypeVar("_Object")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def record(cls: type[_Object]) -> type[_Object]:
    """A class decorator for immutable objects that are compared by identity.

    Only type checkers reject an assignment to a field.  Python does not, because creating an instance of a frozen
    dataclass takes three times as long.
    """
    return _with_repr(dataclass(eq=False, repr=False)(cls))


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_record(cls: type[_Object]) -> type[_Object]:
    """A class decorator for immutable objects that are compared by their fields.

    As with `record`, only type checkers reject assignments.
    """
    return _with_repr(dataclass(unsafe_hash=True, repr=False)(cls))


def _with_repr(cls: type[_Object]) -> type[_Object]:
    """Add the `repr` of dataclasses to a class.

    All classes share one function, so no code needs to be compiled for each class.
    """
    if "__repr__" not in vars(cls):
        setattr(cls, "__repr__", _repr)  # noqa: B010  mypy accepts no assignment to a method
    return cls


def _repr(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def cached_hash(cls: type[_Object]) -> type[_Object]:
    """A class decorator that computes the hash of an object only once, and stores it in the attribute `_hash`.

    The objects must be immutable.  A copy or a pickle does not contain `_hash`, because the hash of a string differs
    between processes.
    """
    compute: Any = cls.__hash__

    def __hash__(self: Any) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", compute(self))
            return self._hash

    def __getstate__(self: Any) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_hash"}

    setattr(cls, "__hash__", __hash__)  # noqa: B010  mypy accepts no assignment to a method
    setattr(cls, "__getstate__", __getstate__)  # noqa: B010
    return cls
