"""Printing of constants as C: a struct with an aligned member for each constant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relvm.aot.lower.ir import TensorStorage
from relvm.codegen.c.expression import literal
from relvm.ir.dtypes import dtype_of
from relvm.passes.memory.arena_allocator import align

_ROW = 12  # maximum number of array elements on a line


def constants_bytes(constants: Sequence[TensorStorage], alignment: int) -> int:
    """Return the size in bytes of the C struct of constants, whose members are aligned to `alignment` bytes."""
    return sum(align(_size(storage), alignment) for storage in constants)


def print_constants_type(constants: Sequence[TensorStorage], prefix: str, alignment: int) -> str:
    """Return the C text that defines the struct type of the constants, and declares the struct.

    prefix: the prefix of the C names.   alignment: the alignment of each member in bytes.
    """
    members = [
        f"  RVM_ALIGNED({alignment}) {storage.dtype.ctype} c{number}[{_count(storage)}];"
        for number, storage in enumerate(constants)
    ]
    lines = [f"struct {prefix}_constants {{", *members, "};"]
    return "\n".join([*lines, f"extern const struct {prefix}_constants {prefix}_constants;"])


def print_constants(constants: Sequence[TensorStorage], prefix: str, section: str = "") -> str:
    """Return the C definition of the struct of constants, with its values.

    prefix: the prefix of the C name.   section: the section of the linker in which it is placed, or "" for the default.
    """
    attribute = f' __attribute__((section("{section}")))' if section else ""
    lines = [f"const struct {prefix}_constants {prefix}_constants{attribute} = {{"]
    for number, storage in enumerate(constants):
        lines.append(f"  /* c{number} */ {{")
        lines += array_lines(storage.array, "    ")
        lines.append("  },")
    return "\n".join([*lines, "};"])


def array_lines(array: np.ndarray, indent: str) -> list[str]:
    """Return the elements of an array as lines of C constants.

    For an empty array, the result is a single 0, because C arrays cannot be empty.
    """
    texts = _texts(array.reshape(-1)) or ["0"]
    return [f"{indent}{', '.join(texts[i : i + _ROW])}," for i in range(0, len(texts), _ROW)]


def _texts(flat: np.ndarray) -> list[str]:
    dtype = dtype_of(flat.dtype)
    if dtype.name == "f32" and np.isfinite(flat).all():
        return [_hexadecimal(value) + "f" for value in flat.astype(np.float64).tolist()]
    return [literal(value, dtype).text for value in flat.tolist()]


def _hexadecimal(value: float) -> str:
    """Return a float as a hexadecimal literal without trailing zeros.  Small integers are printed in decimal."""
    if value == int(value) and abs(value) < 1e6:
        return f"{value:.1f}"
    mantissa, _, exponent = value.hex().partition("p")
    return f"{mantissa.rstrip('0')}p{exponent}".replace(".p", "p")


def _count(storage: TensorStorage) -> int:
    return max(1, storage.array.size)


def _size(storage: TensorStorage) -> int:
    return _count(storage) * storage.dtype.size_bytes
