"""The element types of tensors and scalars: the rows of csrc/dtypes.def as objects of the compiler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relvm.errors import RelvmTypeError, near_matches
from relvm.tables import DTYPES


@dataclass(frozen=True)
class DType:
    """One row of csrc/dtypes.def.

    Attributes
    ----------
    name
        As the text form writes it: `f32`, `i64`, `bool`.
    index
        The row's number: what a DTYPE value and an executable hold.
    bits
        Size of one element.
    ctype
        The C type of one element in memory.
    """

    name: str
    index: int
    bits: int
    ctype: str
    numpy_name: str

    @property
    def numpy(self) -> np.dtype:
        return np.dtype(self.numpy_name)

    @property
    def size_bytes(self) -> int:
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        return self.name.startswith("f")

    @property
    def is_integer(self) -> bool:
        return self.name[0] in "iu"

    @property
    def is_signed(self) -> bool:
        return self.name[0] in "if"

    @property
    def is_bool(self) -> bool:
        return self.name == "bool"

    def __repr__(self) -> str:
        return self.name


ALL_DTYPES = {row.name: DType(row.name, row.index, int(row.bits), row.ctype, row.numpy) for row in DTYPES}
_BY_NUMPY = {dtype.numpy: dtype for dtype in ALL_DTYPES.values()}

BOOL, I8, I16, I32, I64 = (ALL_DTYPES[name] for name in ("bool", "i8", "i16", "i32", "i64"))
U8, U16, U32, U64 = (ALL_DTYPES[name] for name in ("u8", "u16", "u32", "u64"))
F32, F64 = ALL_DTYPES["f32"], ALL_DTYPES["f64"]


def dtype_of(source: str | DType | np.dtype | type) -> DType:
    """The element type that `source` names: its own name, a NumPy dtype or anything np.dtype() takes.

    Raises
    ------
    RelvmTypeError
        No row of csrc/dtypes.def has it.
    """
    if isinstance(source, DType):
        return source
    if isinstance(source, str) and source in ALL_DTYPES:
        return ALL_DTYPES[source]
    try:
        numpy_dtype = np.dtype(source)
    except TypeError:
        numpy_dtype = None
    if numpy_dtype not in _BY_NUMPY:
        hint = near_matches(source, ALL_DTYPES) if isinstance(source, str) else ""
        raise RelvmTypeError(f"no dtype {source}; there are {', '.join(ALL_DTYPES)}{hint}")
    return _BY_NUMPY[numpy_dtype]
