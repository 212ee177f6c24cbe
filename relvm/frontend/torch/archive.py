"""Reading of zip archives: the files of a `.pt2` archive as slices of its bytes.

Files that are stored without compression are not copied.  Source: PKWARE, .ZIP File Format Specification, 6.3.10.
"""

from __future__ import annotations

import struct
import zlib

from relvm.data_classes import value_record
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, shortened
from relvm.frontend.torch.limits import MAX_BYTES, MAX_DIRECTORY_BYTES, MAX_ENTRIES, MAX_NAME

_END = struct.Struct("<4s4H2LH")  # end of central directory record
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")  # central directory header
_LOCAL = struct.Struct("<4s5H3L2H")  # local file header
_MAX_COMMENT = 0xFFFF
_STORED, _DEFLATED = 0, 8
_ENCRYPTED = 1  # a bit of the flags
_ZIP64_EXTRA = 1
_MAX_RATIO = 1100  # the largest ratio of sizes that DEFLATE reaches is 1032


@value_record
class _Entry:
    """A file in the archive.   start: the position of its local header."""

    method: int
    checksum: int
    packed_bytes: int
    size_bytes: int
    start: int


class Archive:
    """The files of a zip archive, by name.

    place: the path of the archive, for messages.

    Raises
    ------
    RelvmFormatError
        The archive is damaged, or exceeds a limit.
    RelvmUnsupportedError
        A file is encrypted, or the archive has several parts.
    """

    def __init__(self, content: memoryview, place: str) -> None:
        self.place = place
        self._content = content
        self._entries: dict[str, _Entry] = {}
        try:
            self._read_directory()
        except struct.error as error:
            raise RelvmFormatError(f"{place}: the zip archive is damaged: {error}") from None

    def names(self) -> list[str]:
        """Return the names of the files."""
        return list(self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def read(self, name: str, most: int = MAX_BYTES) -> memoryview:
        """Return the contents of a file.  They are a slice of the archive if the file is stored without compression.

        most: the largest size that is accepted.

        Raises
        ------
        RelvmFormatError
            There is no such file, or it is damaged or too large.
        RelvmUnsupportedError
            The file is compressed by another method than DEFLATE.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise RelvmFormatError(f"{self.place}: the archive has no file {shortened(name)}")
        here = f"{self.place}: {shortened(name)}"
        if entry.size_bytes > most:
            raise RelvmFormatError(f"{here} has {entry.size_bytes} bytes, expected at most {most}")
        packed = self._packed(entry, here)
        if entry.method == _STORED:
            return packed
        if entry.method != _DEFLATED:
            raise RelvmUnsupportedError(f"{here} is compressed by method {entry.method}, expected 0 (stored) or 8")
        if entry.size_bytes > _MAX_RATIO * max(entry.packed_bytes, 1):
            raise RelvmFormatError(f"{here} cannot have {entry.size_bytes} bytes")
        stream = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            data = stream.decompress(packed, entry.size_bytes + 1)
        except (zlib.error, MemoryError) as error:
            raise RelvmFormatError(f"{here} is damaged: {error}") from None
        if len(data) != entry.size_bytes or zlib.crc32(data) != entry.checksum:
            raise RelvmFormatError(f"{here} is damaged: its size or checksum is wrong")
        return memoryview(data)

    def _packed(self, entry: _Entry, here: str) -> memoryview:
        header = _LOCAL.unpack_from(self._content, entry.start)
        if header[0] != b"PK\3\4":
            raise RelvmFormatError(f"{here} is damaged: it has no header")
        start = entry.start + _LOCAL.size + header[9] + header[10]
        packed = self._content[start : start + entry.packed_bytes]
        if len(packed) != entry.packed_bytes:
            raise RelvmFormatError(f"{here} is damaged: it ends after the end of the archive")
        return packed

    def _read_directory(self) -> None:
        count, size, start = self._find_directory()
        content = self._content
        if count > MAX_ENTRIES or size > MAX_DIRECTORY_BYTES:
            raise RelvmFormatError(f"{self.place}: the archive has {count} files, expected at most {MAX_ENTRIES}")
        if start + size > len(content):
            raise RelvmFormatError(f"{self.place}: the zip archive is damaged: its list of files is outside of it")
        at, end = start, start + size
        for _ in range(count):
            (magic, _, _, flags, method, _, _, checksum, packed, unpacked, name_bytes, extra_bytes, comment_bytes) = (
                _ENTRY.unpack_from(content, at)[:13]
            )
            offset = _ENTRY.unpack_from(content, at)[16]
            first = at + _ENTRY.size
            at = first + name_bytes + extra_bytes + comment_bytes
            if magic != b"PK\1\2" or at > end:
                raise RelvmFormatError(f"{self.place}: the zip archive is damaged: its list of files is cut off")
            if name_bytes > MAX_NAME:
                raise RelvmFormatError(f"{self.place}: the name of a file has {name_bytes} bytes")
            try:
                name = bytes(content[first : first + name_bytes]).decode()
            except UnicodeDecodeError:
                raise RelvmFormatError(f"{self.place}: the name of a file is not UTF-8") from None
            extra = content[first + name_bytes : first + name_bytes + extra_bytes]
            unpacked, packed, offset = _with_zip64(extra, [unpacked, packed, offset])
            if flags & _ENCRYPTED:
                raise RelvmUnsupportedError(f"{self.place}: {shortened(name)} is encrypted")
            if method == _STORED and packed != unpacked:
                raise RelvmFormatError(f"{self.place}: {shortened(name)} is damaged: it has two sizes")
            if name in self._entries:
                raise RelvmFormatError(f"{self.place}: the archive has two files {shortened(name)}")
            if offset + _LOCAL.size > len(content):
                raise RelvmFormatError(f"{self.place}: {shortened(name)} is outside of the archive")
            self._entries[name] = _Entry(method, checksum, packed, unpacked, offset)

    def _find_directory(self) -> tuple[int, int, int]:
        """Return the number of files, and the size and the position of the list of files."""
        content = self._content
        tail = bytes(content[-(_END.size + _MAX_COMMENT) :])
        found = tail.rfind(b"PK\5\6")
        if found < 0 or content[:2] != b"PK":
            raise RelvmFormatError(
                f"{self.place}: expected an exported program of PyTorch, which is a zip archive; write it with"
                " torch.export.save"
            )
        at = len(content) - len(tail) + found
        _, disk, first_disk, _, count, size, start, _ = _END.unpack_from(content, at)
        is_zip64 = count == 0xFFFF or size == 0xFFFFFFFF or start == 0xFFFFFFFF
        locator = at - _END64_LOCATOR.size
        if is_zip64 and locator >= 0 and content[locator : locator + 4] == b"PK\6\7":
            at = _END64_LOCATOR.unpack_from(content, locator)[2]
            magic, _, _, _, disk, first_disk, _, count, size, start = _END64.unpack_from(content, at)
            if magic != b"PK\6\6":
                raise RelvmFormatError(f"{self.place}: the zip archive is damaged: its end is not valid")
        if disk or first_disk:
            raise RelvmUnsupportedError(f"{self.place}: a zip archive with several parts is not supported")
        return count, size, start


def _with_zip64(extra: memoryview, fields: list[int]) -> list[int]:
    """Return `fields`, the sizes and positions of a file, with 64-bit numbers from the extra field.

    A field that is 2^32 - 1 stands for the next 64-bit number in `extra`.
    """
    if 0xFFFFFFFF not in fields:
        return fields
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, at)
        if kind == _ZIP64_EXTRA:
            numbers = iter(struct.unpack_from(f"<{size // 8}Q", extra, at + 4))
            return [next(numbers, field) if field == 0xFFFFFFFF else field for field in fields]
        at += 4 + size
    return fields
