"""The types of elements, and the elements of constants."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted
from relvm.frontend.stablehlo.limits import MAX_ELEMENTS
from relvm.frontend.stablehlo.program import Elements, ElementType, QuantizedType, Tensor
from relvm.ir.dtypes import BOOL, I64, DType, dtype_of

_INTEGER = re.compile(r"(u|s)?i([1-9]\d{0,3})")
# The names of MLIR, and those of relvm.
_FLOATS = {
    "f16": "f16",
    "bf16": "bf16",
    "f32": "f32",
    "f64": "f64",
    "f8E4M3FN": "f8e4m3fn",
    "f8E4M3FNUZ": "f8e4m3fnuz",
    "f8E5M2": "f8e5m2",
    "f8E5M2FNUZ": "f8e5m2fnuz",
    "f8E8M0FNU": "f8e8m0fnu",
    "f6E2M3FN": "f6e2m3fn",
    "f6E3M2FN": "f6e3m2fn",
    "f4E2M1FN": "f4e2m1fn",
}
# Types that relvm does not have, and the dtypes of their elements.
_FOREIGN = {
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E3M4": ml_dtypes.float8_e3m4,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
}
_INTEGER_BITS = (2, 4, 8, 16, 32, 64)


def is_element_type(name: str) -> bool:
    """Return whether `name` is the name of a type of elements in MLIR, such as `f32` or `ui8`."""
    return name in _FLOATS or name in _FOREIGN or name in ("index", "tf32") or bool(_INTEGER.fullmatch(name))


def dtype_of_element(element: ElementType | QuantizedType) -> DType:
    """Return the dtype of a type of elements.  A quantized type has the dtype of its storage type.

    Raises
    ------
    RelvmUnsupportedError
        relvm does not have such a dtype.
    """
    if isinstance(element, QuantizedType):
        element = element.storage
    found = _known_dtype(element.name)
    if found is None:
        if element.is_complex:
            raise RelvmUnsupportedError("complex numbers are not supported")
        raise RelvmUnsupportedError(f"elements of the type {element} are not supported")
    return found


@cache
def _known_dtype(name: str) -> DType | None:
    if name in _FLOATS:
        return dtype_of(_FLOATS[name])
    if name == "index":
        return I64
    match = _INTEGER.fullmatch(name)
    if match is None:
        return None
    bits = int(match[2])
    if bits == 1:
        return BOOL
    return dtype_of(f"{'u' if match[1] == 'u' else 'i'}{bits}") if bits in _INTEGER_BITS else None


@cache
def numpy_of_element(name: str) -> np.dtype | None:
    """Return the NumPy dtype of constants with the element type `name`, or None if such constants cannot be read."""
    if name in _FOREIGN:
        return np.dtype(_FOREIGN[name])
    known = _known_dtype(name)
    return None if known is None else known.numpy


def constant_dtype(type_: Tensor, place: str) -> np.dtype:
    """Return the dtype of the elements of a constant of type `type_`.

    Raises
    ------
    RelvmUnsupportedError
        Constants of this type are not supported.
    """
    element = type_.element.storage if isinstance(type_.element, QuantizedType) else type_.element
    dtype = numpy_of_element(element.name)
    if dtype is None:
        raise RelvmUnsupportedError(f"{place}: constants of the type {element} are not supported")
    return dtype


def static_size(type_: Tensor, place: str) -> int:
    """Return the number of elements of a tensor.

    Raises
    ------
    RelvmFormatError
        A dimension is not known, or the number exceeds MAX_ELEMENTS.
    """
    shape = type_.shape
    if shape is None or None in shape:
        raise RelvmFormatError(f"{place}: a constant has the type {type_}, expected known dimensions")
    size = math.prod(dim for dim in shape if dim is not None)
    if size > MAX_ELEMENTS:
        raise RelvmFormatError(f"{place}: a constant of the type {type_} has more than {MAX_ELEMENTS} elements")
    return size


def elements_of(type_: Tensor, array: np.ndarray, place: str) -> Elements:
    """Return the elements of a constant.

    array: a vector of all elements, or of a single element if all are equal.

    Raises
    ------
    RelvmFormatError
        The number of elements does not fit the type.
    """
    size = static_size(type_, place)
    shape = tuple(dim for dim in type_.shape or () if dim is not None)
    if array.size == size:
        return Elements(type_, array.reshape(shape))
    if array.size == 1:
        return Elements(type_, array.reshape(()))
    raise RelvmFormatError(
        f"{place}: a constant of the type {type_} has {counted(array.size, 'element')}, expected {size}"
    )


def elements_of_bytes(type_: Tensor, data: bytes, place: str) -> Elements:
    """Return the elements of a constant.

    data: the little-endian bytes of all elements, or of a single element if all are equal.  Elements of less than 8
    bits take a byte each.  Elements of one bit can also be packed.

    Raises
    ------
    RelvmFormatError
        The number of bytes does not fit the type.
    """
    dtype = constant_dtype(type_, place)
    size = static_size(type_, place)
    if dtype == np.bool_:
        if len(data) == size and size != 1:
            return elements_of(type_, np.frombuffer(data, np.uint8) != 0, place)
        if len(data) == (size + 7) // 8 and size > 8:
            return elements_of(
                type_, np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[:size] != 0, place
            )
        if len(data) == 1:  # one element, or up to 8 packed ones
            (byte,) = data
            bits = [byte >> i & 1 for i in range(size)] if size <= 8 and byte != 255 else [byte & 1]
            return elements_of(type_, np.array(bits, bool), place)
    if dtype.itemsize == 0 or len(data) % dtype.itemsize:
        raise RelvmFormatError(f"{place}: a constant of the type {type_} has {counted(len(data), 'byte')}")
    array = np.frombuffer(data, dtype.newbyteorder("<") if dtype.isbuiltin == 1 else dtype)
    return elements_of(type_, _normalized(array.astype(dtype)), place)


def _normalized(array: np.ndarray) -> np.ndarray:
    """Return integers of less than 8 bits with the unused bits of each byte cleared."""
    bits = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}.get(array.dtype.name)
    if bits is None:
        return array
    return (array.view(np.uint8) & ((1 << bits) - 1)).view(array.dtype)


def element_of_bits(dtype: np.dtype, bits: int) -> Any:
    """Return the float that has the bits `bits`."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    return np.array(bits & ((1 << 8 * dtype.itemsize) - 1), unsigned).view(dtype)[()]
