"""Results of ONNX models in the form that ONNX tools expect: arrays, lists and dicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relvm.runtime.tensor import Tensor


def plain_output(value: Any, is_map: bool) -> Any:
    """Convert an output of a model to arrays, lists and dicts.

    is_map: whether the output is a map of ONNX, which becomes a dict, or a sequence of maps, which becomes a list of
    dicts.
    """
    plain = plain_value(value)
    return map_value(plain) if is_map else plain


def without_shared_memory(values: dict[str, Any]) -> dict[str, Any]:
    """Copy some of the arrays in `values`, so that no two arrays share memory.  Return the changed dict.

    values: the outputs of a model, by name.
    """
    arrays = [(value.__array_interface__["data"][0], name) for name, value in values.items() if _has_elements(value)]
    end = 0
    for start, name in sorted(arrays):
        values = values | {name: values[name].copy()} if start < end else values
        end = max(end, start + values[name].nbytes)
    return values


def _has_elements(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.size > 0


def plain_value(value: Any) -> Any:
    """Convert a value of a machine: tensors become writable arrays, and tuples become lists."""
    match value:
        case Tensor():
            array = value.numpy()
            return array if array.flags.writeable else array.copy()
        case tuple() | list():
            return list(map(plain_value, value))
    return value


def map_value(pair: Sequence[np.ndarray]) -> Any:
    """Convert a pair of arrays (keys, values) to a dict.

    If the values are a matrix, return a list of dicts, one for each row.
    """
    keys, values = (array.tolist() for array in pair)
    if pair[1].ndim == 1:
        return dict(zip(keys, values, strict=True))
    return [dict(zip(keys, row, strict=True)) for row in values]
