"""Numbers and lists as arguments for tensors, and advice about arguments of the wrong type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relvm.numpy_dtypes import STRINGS, numpy_dtype, tensor_dtype_row
from relvm.tables import DTYPES

_NUMBERS = {"float": "fiu", "integer": "iu", "bool": "b"}  # what converts to a dtype: the kinds of numbers in NumPy
_SIGNED, _UNSIGNED = 0, 1  # the codes of integers in DLPack
_SHORT = 30  # maximum length in characters of a value in a message


def as_tensor(value: Any, stated: str) -> Any:
    """Return a number or a (nested) list as an array, if the parameter is a tensor whose dtype can hold the values.

    If the parameter is a scalar of dtype f64, return an int as a float.

    Return any other value unchanged, so that the machine accepts or rejects it.

    value: an argument.
    stated: the type of the parameter, as text, such as "f32[n, 3]".
    """
    if stated == "f64" and type(value) is int:
        return float(value)
    number = tensor_dtype_row(stated)
    if number is None or not isinstance(value, bool | int | float | str | list | tuple | np.generic):
        return value
    row, dtype = DTYPES[number], numpy_dtype(number)
    if dtype == STRINGS:
        return np.array(value, STRINGS) if _holds_only(value, str) else value
    try:
        array = np.array(value)
    except (ValueError, OverflowError):  # lists of different lengths
        return value
    kind = "bool" if row.name == "bool" else "integer" if row.code in (_SIGNED, _UNSIGNED) else "float"
    if array.dtype.kind not in _NUMBERS[kind] and array.size > 0:
        return value
    if kind == "integer" and array.size > 0:
        low = 0 if row.code == _UNSIGNED else -(1 << row.bits - 1)
        if not low <= array.min() <= array.max() < low + (1 << row.bits):
            return value
    return array.astype(dtype)


def advice(names: Sequence[str], types: Sequence[str], arguments: Sequence[Any]) -> str:
    """Return what to write in place of the first argument that is not of the parameter's dtype, or "".

    names, types: the names and the types of the parameters, as text.
    """
    for name, stated, value in zip(names, types, arguments, strict=False):
        number = tensor_dtype_row(stated)
        if number is None:
            continue
        dtype = numpy_dtype(number)
        shown = name if name.isidentifier() else "x"
        spelled = "object" if dtype == STRINGS else f"np.{dtype}" if dtype.isbuiltin == 1 else f"ml_dtypes.{dtype}"
        if isinstance(value, np.ndarray | np.generic):
            if value.dtype != dtype and value.dtype.kind in "biuf" and dtype != STRINGS:
                return f"; pass {shown}.astype({spelled})"
        elif isinstance(value, bool | int | float | list | tuple):
            text = repr(value)
            return f"; pass np.array({text if len(text) <= _SHORT else shown}, {spelled})"
    return ""


def _holds_only(value: Any, kind: type) -> bool:
    """Return whether `value` is of type `kind`, or a nested list of such values."""
    return (
        all(_holds_only(item, kind) for item in value) if isinstance(value, list | tuple) else isinstance(value, kind)
    )
