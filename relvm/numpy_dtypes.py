"""NumPy dtypes for the element types in csrc/tables/dtypes.def, and conversion of arrays."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable
from functools import cache
from itertools import accumulate
from typing import Any, TypeGuard

import numpy as np

from relvm.errors import RelvmNotInstalledError, RelvmTypeError
from relvm.tables import DTYPES

DTYPE_NAMES = tuple(row.name for row in DTYPES)
STRINGS = np.dtype(object)  # the dtype of arrays of strings, with elements of type str
_NUMBERS = {row.numpy: row.index for row in DTYPES}


@cache
def numpy_dtype(number: int) -> np.dtype:
    """Return the NumPy dtype for row `number` of csrc/tables/dtypes.def.

    Raise RelvmNotInstalledError if the dtype needs the package ml_dtypes, which is not installed.
    """
    name = DTYPES[number].numpy
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(getattr(import_ml_dtypes(f"tensors of dtype {name}"), name))


def import_ml_dtypes(users: str) -> Any:
    """Import the package ml_dtypes, which provides the dtypes that NumPy itself does not have, such as bfloat16.

    Few programs need the package, so the distribution relvm-runtime does not require it.

    users: a description of what needs the package, for the error message.
    """
    try:
        import ml_dtypes
    except ModuleNotFoundError:
        raise RelvmNotInstalledError(
            f"{users} need the package ml_dtypes, which is not installed; run: pip install ml_dtypes"
        ) from None
    return ml_dtypes


def tensor_dtype_row(type_text: str) -> int | None:
    """Return the row number of the dtype of a tensor type, or None for any other type.

    type_text: the type as in a signature, such as "f32[n, 3]".
    """
    name, bracket, _ = type_text.partition("[")
    return DTYPE_NAMES.index(name) if bracket and name in DTYPE_NAMES else None


def dtype_number(dtype: np.dtype) -> int:
    """Return the row number of a dtype in csrc/tables/dtypes.def.

    Raise RelvmTypeError if the dtype is not in the table, or not in native byte order.
    """
    if dtype.kind in "UT":
        return _NUMBERS[STRINGS.name]
    number = _NUMBERS.get(dtype.name) if dtype.isnative else None
    if number is None:
        raise RelvmTypeError(f"unsupported tensor dtype {dtype}; expected one of {', '.join(_NUMBERS)}")
    return number


def is_masked_array(value: object) -> TypeGuard[np.ma.MaskedArray]:
    """Return whether `value` is a masked array of NumPy."""
    return "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray)  # accessing np.ma would import it


def plain_array(array: np.ndarray) -> np.ndarray:
    """Return an array that is C-contiguous, aligned, in native byte order and with canonical elements.

    This is `array` itself if possible, otherwise a copy.  An array of strings is converted to dtype object.

    Raise RelvmTypeError if the dtype is not in csrc/tables/dtypes.def, an object is not a str, or elements are masked.
    """
    if is_masked_array(array):
        if np.ma.is_masked(array):
            raise RelvmTypeError("masked arrays are not supported; pass array.filled(value)")
        array = array.data
    if array.dtype.kind in "UTO":
        return _plain_strings(array)
    native = array.dtype.newbyteorder("=")
    dtype_number(native)
    if not (array.dtype.isnative and array.flags.c_contiguous and array.flags.aligned and array.size):
        array = array.astype(native, order="C")  # NumPy treats any array without elements as aligned
    return canonical_array(array)


def canonical_array(array: np.ndarray) -> np.ndarray:
    """Return an array with canonical elements: a bool is 0 or 1, and unused bits of a byte are 0.

    This is `array` itself if possible, otherwise a copy.  NumPy does not check the bytes of an .npy file or of a view,
    so a bool can have any byte.  Any byte other than 0 becomes 1.

    Arrays of dtypes that are not in csrc/tables/dtypes.def are returned unchanged.
    """
    row = DTYPES[_NUMBERS.get(array.dtype.name, _NUMBERS[STRINGS.name])]
    if row.name != "bool" and row.bits >= 8:
        return array
    largest = 1 if row.name == "bool" else (1 << row.bits) - 1
    elements = array.view(np.uint8)
    if elements.max(initial=0) <= largest:
        return array
    return elements != 0 if row.name == "bool" else (elements & largest).view(array.dtype)


def _plain_strings(array: np.ndarray) -> np.ndarray:
    plain = np.ascontiguousarray(array.astype(STRINGS, copy=False)).reshape(array.shape)
    for type_ in element_types(plain):
        if not issubclass(type_, str):
            raise RelvmTypeError(f"an array of dtype object must contain only strings, got {type_.__name__}")
    return plain


def element_types(array: np.ndarray) -> Iterable[type]:
    """Return the different types of the elements of an array of objects, in the order of their first elements."""
    return dict.fromkeys(map(type, array.reshape(-1).tolist()))


def plain_bytes(array: np.ndarray) -> np.ndarray:
    """Return the elements of an array as bytes (a uint8 array), in the form that an executable contains.

    array: a result of `plain_array`.  Strings are packed as by `pack_strings`.
    """
    return pack_strings(array) if array.dtype == STRINGS else array.reshape(-1).view(np.uint8)


def pack_strings(array: np.ndarray) -> np.ndarray:
    """Pack an array of strings into bytes: first the end offset of each string, an int64, then all strings as UTF-8.

    Surrogate escapes, which represent invalid bytes of the original text, are converted back to these bytes.  Raise
    RelvmTypeError if a string cannot be encoded.
    """
    texts = array.reshape(-1).tolist()
    joined = "".join(texts)
    if joined.isascii():
        content = joined.encode()
    else:
        try:
            texts = [text.encode(errors="surrogateescape") for text in texts]
        except UnicodeEncodeError as error:
            raise RelvmTypeError(f"cannot encode the string {error.object!a} as UTF-8") from None
        content = b"".join(texts)
    ends = np.fromiter(accumulate(map(len, texts)), np.int64, len(texts))
    return np.frombuffer(ends.tobytes() + content, np.uint8)


def unpack_strings(packed: bytes | bytearray | memoryview, shape: tuple[int, ...]) -> np.ndarray:
    """Return the array of strings, of shape `shape`, that `pack_strings` has packed.

    Raise ValueError if the packed bytes are damaged.
    """
    array = np.empty(shape, STRINGS)
    ends = np.frombuffer(packed, np.int64, array.size).tolist()
    content = bytes(memoryview(packed)[8 * array.size :])
    starts = [0, *ends]
    if any(map(operator.gt, starts, ends)) or starts[-1] != len(content):
        raise ValueError("the packed strings are damaged: their end offsets are not in order")
    places = zip(starts, ends, strict=False)
    if content.isascii():
        text = content.decode()
        strings = [text[start:end] for start, end in places]
    else:
        strings = [content[start:end].decode(errors="surrogateescape") for start, end in places]
    array.reshape(-1)[:] = strings
    return array
