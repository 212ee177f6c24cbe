"""The element types of csrc/dtypes.def as NumPy sees them."""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmTypeError
from relvm.tables import DTYPES

NUMPY_DTYPES = tuple(np.dtype(row.numpy) for row in DTYPES)  # by row number
DTYPE_NAMES = tuple(row.name for row in DTYPES)
_NUMBERS = {dtype: index for index, dtype in enumerate(NUMPY_DTYPES)}


def dtype_number(dtype: np.dtype) -> int:
    """The row of csrc/dtypes.def.  Raises RelvmTypeError: it has none."""
    number = _NUMBERS.get(dtype)
    if number is None:
        raise RelvmTypeError(f"no tensors of dtype {dtype}; there are {', '.join(map(str, NUMPY_DTYPES))}")
    return number


def plain_array(array: np.ndarray) -> np.ndarray:
    """`array` itself when it is C-contiguous, aligned and in native byte order, else a copy that is.

    Raises RelvmTypeError: its dtype has no row in csrc/dtypes.def.
    """
    if array.dtype in _NUMBERS and array.flags.c_contiguous and array.flags.aligned:
        return array
    native = array.dtype.newbyteorder("=")
    dtype_number(native)
    return array.astype(native, order="C")
