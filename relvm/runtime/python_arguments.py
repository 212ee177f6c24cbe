"""Numbers and lists as arguments for tensors, and advice about arguments of the wrong type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from relvm.numpy_dtypes import DTYPE_NAMES, STRINGS, numpy_dtype

# A dtype's kind in NumPy -> the kinds of numbers that are converted to it.
_CONVERTED = {"f": "fiu", "i": "iu", "u": "iu", "b": "b"}
_SHORT = 30  # maximum length in characters of a value in a message


def as_tensor(value: Any, stated: str) -> Any:
    """Return a number or a (nested) list as an array, if the parameter is a tensor, and it can hold the values.

    Return any other value unchanged, so that the machine accepts or rejects it.

    value: an argument.
    stated: the type of the parameter, as text, such as "f32[n, 3]".
    """
    dtype = _tensor_dtype(stated)
    if dtype is None or not isinstance(value, bool | int | float | str | list | tuple | np.generic):
        return value
    if dtype == STRINGS:
        return np.array(value, STRINGS) if _holds_only(value, str) else value
    try:
        array = np.array(value)
    except (ValueError, OverflowError):  # lists of different lengths
        return value
    kind = "f" if dtype.kind == "V" else dtype.kind  # dtypes of ml_dtypes, such as bfloat16
    if array.dtype.kind not in _CONVERTED.get(kind, "") and array.size > 0:
        return value
    if kind in "iu" and array.size > 0:
        limits = np.iinfo(dtype)
        if array.min() < limits.min or array.max() > limits.max:
            return value
    return array.astype(dtype)


def advice(names: Sequence[str], types: Sequence[str], arguments: Sequence[Any]) -> str:
    """Return what to write in place of the first argument that is not of the parameter's dtype, or "".

    names, types: the names and the types of the parameters, as text.
    """
    for name, stated, value in zip(names, types, arguments, strict=False):
        dtype = _tensor_dtype(stated)
        if dtype is None:
            continue
        shown = name if name.isidentifier() else "x"
        spelled = "object" if dtype == STRINGS else f"np.{dtype}" if dtype.isbuiltin == 1 else f"ml_dtypes.{dtype}"
        if isinstance(value, np.ndarray | np.generic):
            if value.dtype != dtype and value.dtype.kind in "biuf" and dtype != STRINGS:
                return f"; pass {shown}.astype({spelled})"
        elif isinstance(value, bool | int | float | list | tuple):
            text = repr(value)
            return f"; pass np.array({text if len(text) <= _SHORT else shown}, {spelled})"
    return ""


def _tensor_dtype(stated: str) -> np.dtype | None:
    """Return the dtype of a tensor type such as "f32[n, 3]", or None for any other type."""
    found = re.match(r"(\w+)\[", stated)
    return numpy_dtype(DTYPE_NAMES.index(found[1])) if found and found[1] in DTYPE_NAMES else None


def _holds_only(value: Any, kind: type) -> bool:
    """Return whether `value` is of type `kind`, or a nested list of such values."""
    return (
        all(_holds_only(item, kind) for item in value) if isinstance(value, list | tuple) else isinstance(value, kind)
    )
