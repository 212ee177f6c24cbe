"""Valid identifiers for the names of ONNX values."""

from __future__ import annotations

import re

_NO_LETTER = re.compile(r"\W", re.ASCII)


def identifier(name: str, taken: set[str]) -> str:
    """Return `name` as a unique identifier, with invalid characters replaced by _, and add it to `taken`."""
    base = _NO_LETTER.sub("_", name)
    base = base if base and not base[0].isdigit() else f"v{base}"
    unique = base
    if base in taken:
        low, high = 0, 1  # binary search: a model may have a million names with one stem
        while f"{base}_{high}" in taken:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if f"{base}_{middle}" in taken else (low, middle)
        unique = f"{base}_{high}"
    taken.add(unique)
    return unique
