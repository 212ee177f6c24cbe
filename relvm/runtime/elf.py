"""ELF shared libraries: find a section in a file without loading it.

Only 64-bit little-endian files are supported.  Source: System V ABI, chapters 4 (object files) and 5.
"""

from __future__ import annotations

import struct

from relvm.errors import RelvmFormatError

MAGIC = b"\x7fELF"

_HEADER = struct.Struct("<4sBB10xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NO_BITS = 8  # the type of a section that has no bytes in the file


def find_section(content: memoryview, name: str) -> memoryview | None:
    """Return the bytes of the section `name`, or None if the file does not have it.

    Parameters
    ----------
    content
        The file, which begins with MAGIC.

    Raises
    ------
    RelvmFormatError
        The file is damaged or truncated, or not a 64-bit little-endian file.
    """
    try:
        return _find_section(content, name.encode())
    except (struct.error, OverflowError):
        raise RelvmFormatError("the shared library is truncated: its section table lies outside the file") from None


def _find_section(content: memoryview, name: bytes) -> memoryview | None:
    magic, bits, order, *_, start, _, _, _, _, size, count, names = _HEADER.unpack_from(content)
    assert magic == MAGIC
    if (bits, order) != (2, 1) or (count and size != _SECTION.size):
        raise RelvmFormatError("expected a 64-bit little-endian shared library")
    if count == 0:
        return None
    rows = [_SECTION.unpack_from(content, start + index * size) for index in range(count)]
    if names >= count:
        raise RelvmFormatError("the sections of the shared library have no names")
    texts = _bytes(content, rows[names])
    for row in rows:
        if bytes(texts[row[0] : row[0] + len(name) + 1]) == name + b"\0" and row[1] != _NO_BITS:
            return _bytes(content, row)
    return None


def _bytes(content: memoryview, row: tuple[int, ...]) -> memoryview:
    offset, size = row[4], row[5]
    if offset > len(content) or size > len(content) - offset:
        raise RelvmFormatError("the shared library is truncated: a section lies outside the file")
    return content[offset : offset + size]
