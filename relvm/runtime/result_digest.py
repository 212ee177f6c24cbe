"""Digests of results, to compare the runs of two computers bit by bit (docs/determinism.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from relvm.bytecode.program import Shape
from relvm.errors import RelvmTypeError
from relvm.numpy_dtypes import dtype_number, pack_strings, plain_array
from relvm.runtime.tensor import Tensor
from relvm.tables import DTYPES


def result_digest(value: Any) -> str:
    """Return the SHA-256 digest of a value in hexadecimal.

    Two values have the same digest if they have the same type, shape and bits.  All NaNs of a dtype count as equal.

    Parameters
    ----------
    value
        A result of a machine: a tensor or array, a bool, int, float, str or None, a shape, or a tuple or list of these.

    Raises
    ------
    RelvmTypeError
        The value is or contains something else, such as a closure.
    """
    digest = hashlib.sha256()
    _add(value, digest.update)
    return digest.hexdigest()


def _add(value: Any, add: Callable[[bytes], object]) -> None:
    """Call `add` with the bytes that determine the digest of a value."""
    match value:
        case None:
            add(b"none\n")
        case bool():
            add(b"bool %d\n" % value)
        case int():
            add(b"int %d\n" % value)
        case float():
            add(b"float\n" + _bytes_of(np.array(value, "<f8")))
        case str():
            content = value.encode()
            add(b"str %d\n" % len(content) + content)
        case Tensor() | np.ndarray():
            array = plain_array(value.numpy() if isinstance(value, Tensor) else value)
            name = DTYPES[dtype_number(array.dtype)].name
            add(" ".join(("tensor", name, *map(str, array.shape))).encode() + b"\n" + _bytes_of(array))
        case Shape():
            add(" ".join(("shape", *map(str, value))).encode() + b"\n")
        case tuple() | list():
            add(b"%s %d\n" % (b"list" if isinstance(value, list) else b"tuple", len(value)))
            for item in value:
                _add(item, add)
        case _:
            raise RelvmTypeError(f"a value of type {type(value).__name__} has no digest; expected tensors or numbers")


def _bytes_of(array: np.ndarray) -> bytes:
    """Return the elements of an array as bytes, with all NaNs replaced by the positive quiet NaN without payload."""
    if array.dtype == object:
        return pack_strings(array).tobytes()
    with np.errstate(invalid="ignore"):  # comparisons of ml_dtypes warn of NaN
        is_nan = array != array
    if is_nan.any():
        array = np.where(is_nan, np.array(np.nan, array.dtype), array)
    return array.tobytes()
