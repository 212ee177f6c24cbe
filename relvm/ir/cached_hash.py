"""Hash values that are computed once per object."""

from __future__ import annotations

from typing import Any, TypeVar

_Class = TypeVar("_Class", bound=type)


def cached_hash(cls: _Class) -> _Class:
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
