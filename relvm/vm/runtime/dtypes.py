"""The element types of csrc/dtypes.def as NumPy sees them."""

from __future__ import annotations

from functools import cache

import numpy as np

from relvm.errors import RelvmTypeError
from relvm.tables import DTYPES

DTYPE_NAMES = tuple(row.name for row in DTYPES)
_NUMBERS = {row.numpy: row.index for row in DTYPES}


@cache
def numpy_dtype(number: int) -> np.dtype:
    """The NumPy dtype of a row of csrc/dtypes.def; of those that NumPy itself does not have, ml_dtypes's."""
    name = DTYPES[number].numpy
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes  # a program that does not meet them does without

        return np.dtype(getattr(ml_dtypes, name))


def dtype_number(dtype: np.dtype) -> int:
    """The row of csrc/dtypes.def.  Raises RelvmTypeError: it has none, or is not in native byte order."""
    number = _NUMBERS.get(dtype.name) if dtype.isnative else None
    if number is None:
        raise RelvmTypeError(f"no tensors of dtype {dtype}; there are {', '.join(_NUMBERS)}")
    return number


def plain_array(array: np.ndarray) -> np.ndarray:
    """`array` itself when it is C-contiguous, aligned and in native byte order, else a copy that is.

    Raises RelvmTypeError: its dtype has no row in csrc/dtypes.def.
    """
    native = array.dtype.newbyteorder("=")
    dtype_number(native)
    if array.dtype.isnative and array.flags.c_contiguous and array.flags.aligned:
        return array
    return array.astype(native, order="C")
