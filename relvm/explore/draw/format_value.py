"""Copies and short descriptions of run-time values."""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm.numpy_dtypes import DTYPE_NAMES, STRINGS, dtype_number
from relvm.vm import Opaque, Shape, Tensor

MAX_NESTED = 100
_MAX_ITEMS = 4


def copy_value(value: Any, depth: int = 0) -> Any:
    """Return a copy of a value.  The copy remains valid when the run continues.  Tensors become arrays.

    depth: the number of tuples and lists around the value.
    """
    match value:
        case Tensor():
            return np.array(value.numpy())
        case tuple() | list() if depth < MAX_NESTED:
            items = [copy_value(item, depth + 1) for item in value]
            return items if isinstance(value, list) else type(value)(items)
        case tuple() | list():
            return Opaque(f"{type(value).__name__} inside of {MAX_NESTED} others")
    return value


def describe_value(value: Any, depth: int = 0) -> str:
    """Return a short description of a value: dtype, shape and range of a tensor, the first items of a tuple or list.

    depth: the number of tuples and lists around the value.
    """
    match value:
        case Tensor():
            return _describe_array(value.numpy())
        case np.ndarray() | np.generic():
            return _describe_array(np.asarray(value))
        case Opaque(tag):
            return f"<{tag}>"
        case Shape():
            return f"shape({', '.join(map(str, value))})"
        case tuple() | list() if depth < _MAX_ITEMS:
            items = [describe_value(item, depth + 1) for item in value[:_MAX_ITEMS]]
            items += ["..."] * (len(value) > _MAX_ITEMS)
            return f"({', '.join(items)})" if isinstance(value, tuple) else f"[{', '.join(items)}]"
        case tuple() | list():
            return f"{type(value).__name__} of {len(value)}"
        case np.dtype():
            return f"dtype {DTYPE_NAMES[dtype_number(value)]}"
    return repr(value)


def nan_count(value: Any) -> int:
    """Return the number of NaNs in a tensor, a number, or a tuple or list of these."""
    found, waiting = 0, [value]
    while waiting:
        match waiting.pop():
            case Tensor() as tensor:
                found += _nans(tensor.numpy())
            case np.ndarray() as array:
                found += _nans(array)
            case float() as number:
                found += number != number
            case tuple() | list() as items:
                waiting.extend(items)
    return int(found)


def _nans(array: np.ndarray) -> int:
    if array.dtype == STRINGS or array.dtype.kind in "biu":
        return 0
    return int(np.count_nonzero(array != array))


def _describe_array(array: np.ndarray) -> str:
    head = f"{DTYPE_NAMES[dtype_number(array.dtype)]}[{', '.join(map(str, array.shape))}]"
    if array.size == 0:
        return head
    if array.size <= _MAX_ITEMS:
        return f"{head} {np.array2string(array, separator=', ', precision=6)}".replace("\n", "")
    if array.dtype == STRINGS:
        return f"{head} {array.flat[0]!r}, ..."
    nans = _nans(array)
    numbers = array[array == array] if nans else array
    span = f" {numbers.min()} to {numbers.max()}" if numbers.size else ""
    return f"{head}{span}{f', {nans} NaN' if nans else ''}"
