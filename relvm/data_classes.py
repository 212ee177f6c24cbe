"""Class decorators for the small immutable objects that a build makes by the thousand."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

_Object = TypeVar("_Object")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def record(cls: type[_Object]) -> type[_Object]:
    """Class decorator for immutable objects that are compared by identity.

    Only type checkers reject an assignment to a field.  Python does not, because a frozen dataclass takes three times
    as long to make.
    """
    return _with_repr(dataclass(eq=False, repr=False)(cls))


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_record(cls: type[_Object]) -> type[_Object]:
    """Class decorator for immutable objects that are compared by their fields.  See `record`."""
    return _with_repr(dataclass(unsafe_hash=True, repr=False)(cls))


def _with_repr(cls: type[_Object]) -> type[_Object]:
    """Give a class the `repr` of dataclasses.  A function that all classes share takes no time to compile."""
    if "__repr__" not in vars(cls):
        setattr(cls, "__repr__", _repr)  # noqa: B010  mypy accepts no assignment to a method
    return cls


def _repr(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def cached_hash(cls: type[_Object]) -> type[_Object]:
    """Class decorator: compute the hash of an object once, and keep it in the attribute `_hash`.

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
