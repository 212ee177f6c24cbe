"""The element types of PyTorch, as numbered by the schema of torch.export."""

from __future__ import annotations

from relvm.errors import RelvmFormatError
from relvm.ir.dtypes import DType, dtype_of

_DTYPES = {
    **{1: "u8", 2: "i8", 3: "i16", 4: "i32", 5: "i64", 6: "f16", 7: "f32", 8: "f64", 12: "bool", 13: "bf16"},
    **{28: "u16", 29: "f8e4m3fn", 30: "f8e5m2", 31: "f8e4m3fnuz", 32: "f8e5m2fnuz", 33: "f8e8m0fnu"},
    **{34: "u32", 35: "u64"},
}
_COMPLEX = {9: "f16", 10: "f32", 11: "f64"}  # complex32, complex64 and complex128, by the dtypes of their parts


def is_complex(number: object) -> bool:
    """Return whether a number of the enumeration ScalarType stands for a complex type."""
    return number in _COMPLEX


def dtype_of_scalar_type(number: object) -> DType:
    """Return the dtype for a number of the enumeration ScalarType: of a complex type, the dtype of its parts.

    Raises
    ------
    RelvmFormatError
        There is no such type.
    """
    if number in _COMPLEX:
        return dtype_of(_COMPLEX[number])
    if not isinstance(number, int) or number not in _DTYPES:
        raise RelvmFormatError(f"{number!r} is not a type of elements")
    return dtype_of(_DTYPES[number])


def scalar_type_of(dtype: DType) -> int | None:
    """Return the number of a dtype in the enumeration ScalarType, or None if PyTorch does not have the dtype."""
    return next((number for number, name in _DTYPES.items() if name == dtype.name), None)
