"""Element types (dtypes) of tensors and scalars, from the rows of csrc/tables/dtypes.def."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from relvm.data_classes import dataclass
from relvm.errors import RelvmTypeError, near_matches
from relvm.numpy_dtypes import numpy_dtype
from relvm.tables import DTYPES


@dataclass(frozen=True, eq=False)
class DType:
    """The type of the elements of a tensor.  There is one DType object for each row of csrc/tables/dtypes.def.

    Attributes
    ----------
    name
        The name in the text form: `f32`, `i64`, `bool`.
    index
        The index of the row.  In executables and at run time, this number represents the dtype.
    bits
        The size of one element in bits.
    ctype
        The C type of one element in memory.
    """

    name: str
    index: int
    bits: int
    ctype: str

    @cached_property
    def numpy(self) -> np.dtype:
        """The corresponding dtype of NumPy or ml_dtypes."""
        return numpy_dtype(self.index)

    @cached_property
    def size_bytes(self) -> int:
        """The size of one element in bytes.  An element of fewer than 8 bits takes one byte."""
        return (self.bits + 7) // 8

    @cached_property
    def is_float(self) -> bool:
        """Whether the dtype is a floating-point type of any width."""
        return self.name[0] == "f" or self.name == "bf16"

    @cached_property
    def is_string(self) -> bool:
        """Whether the elements are strings.  Kernels never access strings."""
        return self.name == "str"

    @cached_property
    def is_integer(self) -> bool:
        """Whether the dtype is an integer type of any width.  bool is not an integer type."""
        return self.name[0] in "iu"

    @cached_property
    def is_signed(self) -> bool:
        """Whether the dtype is a floating-point type or a signed integer type."""
        return self.is_float or self.name[0] == "i"

    @cached_property
    def is_narrow_float(self) -> bool:
        """Whether the dtype is a float narrower than f32.  Operators compute in f32 and round each result."""
        return self.is_float and self.bits < 32

    @cached_property
    def is_arithmetic(self) -> bool:
        """Whether operators can do arithmetic on the dtype.  Elements of other dtypes can only be moved, compared
        bitwise and converted."""
        return (self.is_float and self.bits >= 16) or (self.is_integer and self.bits >= 8)

    @cached_property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest value of an integer dtype."""
        assert self.is_integer
        return (-(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1) if self.is_signed else (0, 2**self.bits - 1)

    @cached_property
    def lowest(self) -> int | float:
        """The smallest value of an integer or float dtype."""
        return -math.inf if self.is_float else self.limits[0]

    @cached_property
    def highest(self) -> int | float:
        """The largest value of an integer or float dtype."""
        return math.inf if self.is_float else self.limits[1]

    @cached_property
    def is_bool(self) -> bool:
        """Whether the dtype is bool."""
        return self.name == "bool"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_of, (self.name,)  # so that a copy is the same object


ALL_DTYPES = {row.name: DType(row.name, row.index, int(row.bits), row.ctype) for row in DTYPES}
_BY_NUMPY = {row.numpy: ALL_DTYPES[row.name] for row in DTYPES}

BOOL, I8, I16, I32, I64 = (ALL_DTYPES[name] for name in ("bool", "i8", "i16", "i32", "i64"))
U8, U16, U32, U64 = (ALL_DTYPES[name] for name in ("u8", "u16", "u32", "u64"))
F16, BF16, F32, F64 = (ALL_DTYPES[name] for name in ("f16", "bf16", "f32", "f64"))
STR = ALL_DTYPES["str"]


@lru_cache(maxsize=64)
def _native_name(dtype: np.dtype) -> str | None:
    """Return the name of a NumPy dtype, or None if it is not in native byte order."""
    return dtype.name if dtype.isnative else None  # NumPy composes the name each time


def dtype_of(source: str | DType | np.dtype | type) -> DType:
    """Return the element type that `source` denotes.

    `source` is the name of a relvm dtype, a NumPy dtype, or any other argument that np.dtype() accepts.

    Raises
    ------
    RelvmTypeError
        `source` does not denote a type in csrc/tables/dtypes.def.
    """
    if isinstance(source, DType):
        return source
    if isinstance(source, str) and source in ALL_DTYPES:
        return ALL_DTYPES[source]
    try:
        found = np.dtype(source)
        if found.kind in "UT":
            return STR
        name = _native_name(found)
    except TypeError:
        name = source if isinstance(source, str) else None  # perhaps a type of ml_dtypes, which is not loaded yet
    if name not in _BY_NUMPY:
        hint = near_matches(source, ALL_DTYPES) if isinstance(source, str) else ""
        raise RelvmTypeError(f"unknown dtype {source}; expected one of {', '.join(ALL_DTYPES)}{hint}")
    return _BY_NUMPY[name]
