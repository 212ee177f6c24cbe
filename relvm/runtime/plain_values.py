"""Results of ONNX models in the form that ONNX tools expect: arrays, lists and dicts."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from relvm.runtime.binding import data_address
from relvm.runtime.tensor import Tensor


def plain_outputs(values: Mapping[str, Any], maps: Container[str]) -> dict[str, Any]:
    """Convert outputs of a model to arrays, lists and dicts.  No two of the arrays share memory.

    values: the outputs, by name.
    maps: the names of the outputs that are maps.
    """
    plain, places = {}, []
    for name, value in values.items():
        if type(value) is Tensor and name not in maps:
            array = plain[name] = plain_array(value)
            places.append((data_address(value), array.nbytes, name))
        else:
            plain[name] = plain_output(value, name in maps)
    end = 0
    for start, size_bytes, name in sorted(places) if len(places) > 1 else ():
        if start < end:
            plain[name] = plain[name].copy()
        end = max(end, start + size_bytes)
    return plain


def plain_output(value: Any, is_map: bool) -> Any:
    """Convert an output of a model to arrays, lists and dicts.

    is_map: whether the output is a map of ONNX, which becomes a dict, or a sequence of maps, which becomes a list of
    dicts.
    """
    plain = plain_value(value)
    return map_value(plain) if is_map else plain


def plain_value(value: Any) -> Any:
    """Convert a value of a machine: tensors become writable arrays, and tuples become lists."""
    match value:
        case Tensor():
            return plain_array(value)
        case tuple() | list():
            return list(map(plain_value, value))
    return value


def plain_array(tensor: Tensor) -> np.ndarray:
    """Return the elements of a tensor as a writable array, which is a copy if the tensor is read-only."""
    array = np.asarray(tensor)
    return array if array.flags.writeable else array.copy()


def map_value(pair: Sequence[np.ndarray]) -> Any:
    """Convert a pair of arrays (keys, values) to a dict.

    If the values are a matrix, return a list of dicts, one for each row.
    """
    keys, values = (array.tolist() for array in pair)
    if pair[1].ndim == 1:
        return dict(zip(keys, values, strict=True))
    return [dict(zip(keys, row, strict=True)) for row in values]
