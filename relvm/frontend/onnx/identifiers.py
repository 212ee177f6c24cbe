"""Conversion of the names of ONNX values to valid identifiers."""

from __future__ import annotations

import re

_NO_LETTER = re.compile(r"\W", re.ASCII)


def identifier(name: str, used: set[str]) -> str:
    """Convert `name` to a valid identifier that is not in `used`, and add it to `used`.

    Invalid characters are replaced by _.  If the result is in `used`, a number is appended.
    """
    base = _NO_LETTER.sub("_", name)
    base = base if base and not base[0].isdigit() else f"v{base}"
    unique = base
    if base in used:
        low, high = 0, 1  # binary search: a model may have a million names with one stem
        while f"{base}_{high}" in used:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if f"{base}_{middle}" in used else (low, middle)
        unique = f"{base}_{high}"
    used.add(unique)
    return unique
