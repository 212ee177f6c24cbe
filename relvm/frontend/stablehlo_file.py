"""Recognition of StableHLO programs, without their reader."""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import Any

BYTECODE_MAGIC = b"ML\xefR"
_SUFFIXES = (".mlir", ".mlirbc")
# Fields of the table `Exported` of a flatbuffer that jax.export writes: their places in the vtable.
_VERSION, _ARTIFACT = 4, 30
_MAX_VERSION = 1000  # of the flatbuffer; files of other formats have other numbers here


def is_stablehlo(model: Any) -> bool:
    """Return whether a model is a StableHLO program: a file that is named .mlir, MLIR bytecode, or an export of JAX.

    model: a path, or the contents of a file.  A file of another name is a program if its contents are.
    """
    if isinstance(model, bytes | bytearray | memoryview):
        return bytes(model[:4]) == BYTECODE_MAGIC or exported_artifact(model) is not None
    if not isinstance(model, str | os.PathLike):
        return False
    path = Path(model)
    if path.suffix in _SUFFIXES:
        return True
    if path.suffix in (".onnx", ".relvm"):
        return False
    try:
        with path.open("rb") as file:
            if file.read(4) == BYTECODE_MAGIC:
                return True
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return exported_artifact(data) is not None
    except (OSError, ValueError):  # ValueError: the path contains a zero byte, or the file is empty
        return False


def exported_artifact(data: bytes | bytearray | memoryview | mmap.mmap) -> slice | None:
    """Return where the portable artifact is in what `jax.export` serializes, or None if `data` is something else.

    The data is a flatbuffer, whose root is the table `Exported`.  It has no other mark than its structure.  No byte
    outside `data` is read.
    """

    def number(code: str, at: int) -> int:
        size = struct.calcsize(code)
        if not 0 <= at <= len(data) - size:
            raise ValueError
        return struct.unpack(code, data[at : at + size])[0]

    try:
        table = number("<I", 0)
        vtable = table - number("<i", table)
        length = number("<H", vtable)
        if length <= _ARTIFACT:
            return None
        version, field = (number("<H", vtable + place) for place in (_VERSION, _ARTIFACT))
        if not version or not 1 <= number("<H", table + version) <= _MAX_VERSION or not field:
            return None
        vector = table + field + number("<I", table + field)
        size = number("<I", vector)
        start = vector + 4
        if bytes(data[start : start + 4]) != BYTECODE_MAGIC or start + size > len(data):
            return None
        return slice(start, start + size)
    except ValueError:
        return None
