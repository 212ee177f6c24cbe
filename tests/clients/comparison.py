"""Comparison of two results."""

from __future__ import annotations

import math
from typing import Any


def difference(ours: Any, theirs: Any, tolerance: float, where: str = "result") -> str:
    """Return where and how two JSON values differ, or "" if they are equal.

    tolerance: of floats, relative to the larger one, and at least to 1.   where: the name of the values.
    """
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if list(ours) != list(theirs):
            return f"{where}: keys {list(ours)} instead of {list(theirs)}"
        pairs = [(f"{where}[{key!r}]", ours[key], theirs[key]) for key in theirs]
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            return f"{where}: {len(ours)} items instead of {len(theirs)}"
        pairs = [(f"{where}[{k}]", *each) for k, each in enumerate(zip(ours, theirs, strict=True))]
    else:
        return "" if _equal(ours, theirs, tolerance) else f"{where}: {ours!r} instead of {theirs!r}"
    return next((text for name, a, b in pairs if (text := difference(a, b, tolerance, name))), "")


def _equal(ours: Any, theirs: Any, tolerance: float) -> bool:
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, float) and ours != theirs:
        if not (math.isfinite(ours) and math.isfinite(theirs)):
            return math.isnan(ours) and math.isnan(theirs)
        return abs(ours - theirs) <= tolerance * max(1.0, abs(ours), abs(theirs))
    return ours == theirs
