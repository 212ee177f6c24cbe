"""The element types of ONNX tensors (TensorProto.data_type), and their NumPy dtypes."""

from __future__ import annotations

from functools import cache

import numpy as np

from relvm.frontend.onnx_messages import ELEMENT_TYPES

_NUMBERS = {each.numpy: each.number for each in ELEMENT_TYPES if each.numpy}


@cache
def element_dtype(number: int) -> np.dtype | None:
    """Return the NumPy dtype of an element type, or None if there is no element type with this number."""
    if not 0 < number < len(ELEMENT_TYPES):
        return None
    name = ELEMENT_TYPES[number].numpy
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))


def element_name(number: int) -> str | int:
    """Return the name of an element type in onnx.proto, or the number if there is none with this number."""
    return ELEMENT_TYPES[number].name if 0 <= number < len(ELEMENT_TYPES) else number


def element_number(dtype: np.dtype) -> int:
    """Return the number of the element type with a dtype of csrc/tables/dtypes.def."""
    return _NUMBERS[dtype.name]
