"""The element types of PyTorch, as numbered by the schema of torch.export."""

from __future__ import annotations

from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.ir.dtypes import DType, dtype_of

_DTYPES = {
    **{1: "u8", 2: "i8", 3: "i16", 4: "i32", 5: "i64", 6: "f16", 7: "f32", 8: "f64", 12: "bool", 13: "bf16"},
    **{28: "u16", 29: "f8e4m3fn", 30: "f8e5m2", 31: "f8e4m3fnuz", 32: "f8e5m2fnuz", 33: "f8e8m0fnu"},
    **{34: "u32", 35: "u64"},
}
_COMPLEX = {9: "complex32", 10: "complex64", 11: "complex128"}


def dtype_of_scalar_type(number: object) -> DType:
    """Return the dtype for a number of the enumeration ScalarType.

    Raises
    ------
    RelvmUnsupportedError
        The type is complex.
    RelvmFormatError
        There is no such type.
    """
    if number in _COMPLEX:
        raise RelvmUnsupportedError(f"complex numbers ({_COMPLEX[number]}) are not supported")
    if not isinstance(number, int) or number not in _DTYPES:
        raise RelvmFormatError(f"{number!r} is not a type of elements")
    return dtype_of(_DTYPES[number])


def scalar_type_of(dtype: DType) -> int | None:
    """Return the number of a dtype in the enumeration ScalarType, or None if PyTorch does not have the dtype."""
    return next((number for number, name in _DTYPES.items() if name == dtype.name), None)
