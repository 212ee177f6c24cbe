"""Names of ONNX values as identifiers, and in messages."""

from __future__ import annotations

import re

_NO_LETTER = re.compile(r"\W", re.ASCII)
_LONGEST = 100  # characters of a name that a message has


def identifier(name: str, taken: set[str]) -> str:
    """`name` with what an identifier cannot have replaced by _, different from those `taken`, which it joins."""
    base = _NO_LETTER.sub("_", name)
    base = base if base and not base[0].isdigit() else f"v{base}"
    unique, count = base, 0
    while unique in taken:
        count += 1
        unique = f"{base}_{count}"
    taken.add(unique)
    return unique


def truncate_name(name: str) -> str:
    """`name` as messages have it: the beginning of one that is very long."""
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}..."
