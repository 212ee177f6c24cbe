"""Keys that identify equal constants."""

from __future__ import annotations

import struct

import numpy as np

from relvm.bytecode.program import Constant, Shape
from relvm.errors import RelvmTypeError
from relvm.numpy_dtypes import plain_array, plain_bytes


def constant_key(value: Constant) -> tuple:
    """Return a key of a constant.

    Constants with the same type and bits have equal keys, and can share a row of the constant table.

    Raises
    ------
    RelvmTypeError
        The value is not a constant.
    """
    match value:
        case np.ndarray():
            import hashlib  # imported only here, because it loads OpenSSL (4 MB)

            array = plain_array(value)
            return ("tensor", array.dtype, array.shape, hashlib.sha256(plain_bytes(array).data).digest())
        case float():
            return ("float", struct.pack("<d", value))
        case Shape() | str() | np.dtype():
            return (type(value), value)
        case int() if not isinstance(value, bool):
            return ("int", int(value))
    raise RelvmTypeError(f"const: expected an array, vm.Shape, str, np.dtype, int or float, got {type(value).__name__}")
