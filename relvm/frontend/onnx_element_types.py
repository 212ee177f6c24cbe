"""The element types of ONNX tensors (TensorProto.data_type), and their NumPy dtypes."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from relvm.numpy_dtypes import import_ml_dtypes
from relvm.runtime.binding import onnx_table


class ElementType(NamedTuple):
    """An element type: a value of TensorProto.data_type.

    Attributes
    ----------
    name
        The name in onnx.proto, such as "BFLOAT16".
    number
        The value of TensorProto.data_type.
    text
        The name in types such as "tensor(bfloat16)".
    numpy
        The name in NumPy or ml_dtypes, or "" for UNDEFINED.
    bits
        The bits of an element in raw_data.  Elements of less than 8 bits are packed, the first one in the lowest bits.
    field
        The field of TensorProto with the elements of a tensor without raw_data.
    """

    name: str
    number: int
    text: str
    numpy: str
    bits: int
    field: str


ELEMENT_TYPES = tuple(ElementType(*row) for row in onnx_table()[2])  # by number
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
        return np.dtype(getattr(import_ml_dtypes(f"tensors of dtype {name}"), name))


def element_name(number: int) -> str | int:
    """Return the name of an element type in onnx.proto, or the number if there is none with this number."""
    return ELEMENT_TYPES[number].name if 0 <= number < len(ELEMENT_TYPES) else number


def element_number(dtype: np.dtype) -> int:
    """Return the number of the element type with a dtype of csrc/tables/dtypes.def."""
    return _NUMBERS[dtype.name]
