"""The element types of csrc/tables/dtypes.def as NumPy sees them."""

from __future__ import annotations

import sys
from functools import cache

import numpy as np

from relvm.errors import RelvmTypeError
from relvm.tables import DTYPES

DTYPE_NAMES = tuple(row.name for row in DTYPES)
STRINGS = np.dtype(object)  # of arrays of strings: their elements are str
_NUMBERS = {row.numpy: row.index for row in DTYPES}


@cache
def numpy_dtype(number: int) -> np.dtype:
    """The NumPy dtype of a row of csrc/tables/dtypes.def; of those that NumPy itself does not have, ml_dtypes's."""
    name = DTYPES[number].numpy
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes  # a program that does not meet them does without

        return np.dtype(getattr(ml_dtypes, name))


def dtype_number(dtype: np.dtype) -> int:
    """The row of csrc/tables/dtypes.def.  Raises RelvmTypeError: it has none, or is not in native byte order."""
    if dtype.kind in "UT":
        return _NUMBERS[STRINGS.name]
    number = _NUMBERS.get(dtype.name) if dtype.isnative else None
    if number is None:
        raise RelvmTypeError(f"unsupported tensor dtype {dtype}; expected one of {', '.join(_NUMBERS)}")
    return number


def plain_array(array: np.ndarray) -> np.ndarray:
    """`array` itself when it is C-contiguous, aligned and in native byte order, else a copy that is.  Of strings one of
    dtype object.

    Raises RelvmTypeError: its dtype has no row in csrc/tables/dtypes.def; an object that is no str; elements that are
    masked.
    """
    if "numpy.ma" in sys.modules and isinstance(array, np.ma.MaskedArray):  # NumPy would import it here
        if np.ma.is_masked(array):
            raise RelvmTypeError("masked arrays are not supported; pass array.filled(value)")
        array = array.data
    if array.dtype.kind in "UTO":
        return _plain_strings(array)
    native = array.dtype.newbyteorder("=")
    dtype_number(native)
    if array.dtype.isnative and array.flags.c_contiguous and array.flags.aligned:
        return array
    return array.astype(native, order="C")


def _plain_strings(array: np.ndarray) -> np.ndarray:
    plain = np.ascontiguousarray(array.astype(STRINGS, copy=False)).reshape(array.shape)
    for element in plain.reshape(-1):
        if not isinstance(element, str):
            raise RelvmTypeError(f"an array of dtype object must contain only strings, got {type(element).__name__}")
    return plain


def plain_bytes(array: np.ndarray) -> np.ndarray:
    """A plain array's elements as an executable has them, uint8: strings packed."""
    return pack_strings(array) if array.dtype == STRINGS else array.reshape(-1).view(np.uint8)


def pack_strings(array: np.ndarray) -> np.ndarray:
    """Plain strings as bytes: where each of them ends, an int64 for each, then all of them as UTF-8.  Bytes that were
    none when they were read (surrogate escapes) are those again.  Raises RelvmTypeError: one has no form in UTF-8."""
    try:
        encoded = [text.encode(errors="surrogateescape") for text in array.reshape(-1)]
    except UnicodeEncodeError as error:
        raise RelvmTypeError(f"cannot encode the string {error.object!a} as UTF-8") from None
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return np.frombuffer(ends.tobytes() + b"".join(encoded), np.uint8)


def unpack_strings(packed: bytes | bytearray | memoryview, shape: tuple[int, ...]) -> np.ndarray:
    """The array of strings of that shape of which `packed` are the bytes.  Raises ValueError: there is none."""
    array = np.empty(shape, STRINGS)
    size = array.size
    ends = np.frombuffer(packed, np.int64, size)
    content = bytes(packed[8 * size :])
    starts = np.concatenate([np.zeros(1, np.int64), ends])
    if (np.diff(starts) < 0).any() or starts[-1] != len(content):
        raise ValueError("the packed strings are damaged: their end offsets are not in order")
    texts = (content[start:end].decode(errors="surrogateescape") for start, end in zip(starts, ends, strict=False))
    array.reshape(-1)[:] = list(texts)
    return array
