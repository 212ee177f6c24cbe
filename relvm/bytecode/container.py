"""Container format of executables: header, section table and checksums.

encode.py and decode.py handle the contents of sections.  All numbers are little-endian.

The header has 64 bytes: the magic number, u16 major version, u16 minor version, u32 section count, u64 file size, u32
checksum, zeros.  The checksum is the CRC32C of the header and the section table, computed with 0 in place of the
checksum.

The section table has 32 bytes for each section: u32 id, u32 CRC32C of the section, u64 offset, u64 size, u64 0.
Sections start at multiples of 64 bytes, in the order of the table, with zeros between them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relvm._native import ffi, lib
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted
from relvm.tables import SECTIONS

MAGIC = b"\x89RVM\r\n\x1a\n"
MAJOR, MINOR = 1, 4
ALIGNMENT = 64

_HEADER = struct.Struct("<8sHHIQII32x")
_SECTION = struct.Struct("<IIQQQ")
_IDS = {row.name: row.id for row in SECTIONS}
_NAMES = {row.id: row.name for row in SECTIONS}


def align_up(offset: int) -> int:
    """Return `offset` rounded up to a multiple of 64, the alignment of sections and tensors."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def aligned_buffer(size_bytes: int) -> np.ndarray:
    """Return an uninitialized uint8 array of shape (size_bytes,), aligned to 64 bytes."""
    block = np.empty(size_bytes + ALIGNMENT, np.uint8)  # unlike np.zeros, it uses large pages
    skip = -block.__array_interface__["data"][0] % ALIGNMENT
    return block[skip : skip + size_bytes]


def crc32c(block: Any) -> int:
    """Return the CRC32C (Castagnoli) of the buffer `block`."""
    return lib.rvm_crc32c(0, ffi.from_buffer(block), len(block))


def pack_sections(sections: Mapping[str, Sequence[bytes | np.ndarray]]) -> np.ndarray:
    """Return the bytes of an executable with the given sections.

    Parameters
    ----------
    sections
        A mapping from the name of each section to its contents, a sequence of parts.  A part is bytes or a 1-d uint8
        array, and is placed at a multiple of 64 bytes.

    Returns
    -------
    np.ndarray
        The bytes, as a uint8 array that is 64-byte aligned.
    """
    end = _HEADER.size + _SECTION.size * len(sections)
    placed: dict[str, list[int]] = {}
    for name in sorted(sections, key=_IDS.__getitem__):
        placed[name] = []
        for part in sections[name]:
            placed[name].append(align_up(end))
            end = align_up(end) + len(part)
    buffer = aligned_buffer(end)
    view: Any = memoryview(buffer.data)
    written = 0
    for index, (name, offsets) in enumerate(placed.items()):
        for part, offset in zip(sections[name], offsets, strict=True):
            view[written:offset] = bytes(offset - written)
            written = offset + len(part)
            view[offset:written] = part
        start, stop = offsets[0], offsets[-1] + len(sections[name][-1])
        row = (_IDS[name], crc32c(buffer[start:stop]), start, stop - start, 0)
        _SECTION.pack_into(view, _HEADER.size + _SECTION.size * index, *row)
    _HEADER.pack_into(view, 0, MAGIC, MAJOR, MINOR, len(placed), end, 0, 0)
    checksum = crc32c(buffer[: _HEADER.size + _SECTION.size * len(placed)])
    _HEADER.pack_into(view, 0, MAGIC, MAJOR, MINOR, len(placed), end, checksum, 0)
    return buffer


def unpack_sections(buffer: Any) -> dict[str, memoryview]:
    """Return read-only views of the known sections of the executable `buffer`, by name.

    Raise RelvmFormatError if the buffer is not an executable or a section lies outside it, and RelvmUnsupportedError if
    the format has another major version.
    """
    view = memoryview(buffer).cast("B").toreadonly()
    return {name: view[place] for name, place in section_slices(view).items()}


def section_slices(view: memoryview) -> dict[str, slice]:
    """Return the byte range of each known section of the executable `view`, by name.  Skip unknown sections.

    This function does not verify checksums.  The C loader does.

    Raises
    ------
    RelvmFormatError
        The buffer is not an executable, or a section lies outside it.
    RelvmUnsupportedError
        The format has another major version.
    """
    if len(view) < _HEADER.size:
        raise RelvmFormatError(f"expected an executable of at least {_HEADER.size} bytes, got {len(view)}")
    magic, major, _, count, size_bytes, _, _ = _HEADER.unpack_from(view)
    if magic != MAGIC:
        raise RelvmFormatError("not an executable: the magic number at the beginning is missing")
    if major != MAJOR:
        raise RelvmUnsupportedError(
            f"the executable has format version {major}, but this runtime reads version {MAJOR}"
        )
    if size_bytes != len(view) or count > (len(view) - _HEADER.size) // _SECTION.size:
        says = f"the header says {size_bytes} bytes and {count} sections"
        raise RelvmFormatError(f"{says}, but the file has {counted(len(view), 'byte')}; it may be truncated")
    slices = {}
    for index in range(count):
        number, _, offset, size, _ = _SECTION.unpack_from(view, _HEADER.size + _SECTION.size * index)
        if offset > len(view) or size > len(view) - offset:
            raise RelvmFormatError(f"section {number} ends outside the file")
        if number in _NAMES:
            slices[_NAMES[number]] = slice(offset, offset + size)
    return slices
