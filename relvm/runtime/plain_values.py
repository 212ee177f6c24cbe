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
    plain = {name: plain_output(value, name in maps) for name, value in values.items()}
    if len(plain) > 1:
        end = 0
        for start, name in sorted(
            (data_address(value), name) for name, value in values.items() if type(value) is Tensor
        ):
            array = plain[name]
            if start < end:
                plain[name] = array.copy()
            end = max(end, start + array.nbytes)
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
