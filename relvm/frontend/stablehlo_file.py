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
_VERSION, _PLATFORMS, _ARTIFACT = 4, 22, 30
_MAX_PLATFORMS, _MAX_NAME_BYTES = 16, 64
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
    """Return the range of the portable artifact in an export of JAX, or None if `data` is anything else.

    `jax.export` serializes a flatbuffer, whose root is the table `Exported`.  The format has no magic number, so it is
    recognized by its structure.  No byte outside `data` is read.
    """

    try:
        table = _number(data, "<I", 0)
        version = _field(data, table, _VERSION)
        if not version or not 1 <= _number(data, "<H", version) <= _MAX_VERSION:
            return None
        start, size = _vector(data, table, _ARTIFACT)
        if bytes(data[start : start + 4]) != BYTECODE_MAGIC or start + size > len(data):
            return None
        return slice(start, start + size)
    except ValueError:
        return None


def exported_platforms(data: bytes | bytearray | memoryview) -> list[str]:
    """Return the names of the platforms for which `jax.export` has exported a program, such as "cpu".

    The program has an additional parameter, the index of the platform, if there are several.

    data: an export of JAX, in which `exported_artifact` finds an artifact.

    Raises
    ------
    ValueError
        The data is damaged.
    """
    start, count = _vector(data, _number(data, "<I", 0), _PLATFORMS)
    if count > _MAX_PLATFORMS:
        raise ValueError(f"{count} platforms exceed the limit of {_MAX_PLATFORMS}")
    names = []
    for at in range(start, start + 4 * count, 4):
        text = at + _number(data, "<I", at)
        size = _number(data, "<I", text)
        if size > _MAX_NAME_BYTES:
            raise ValueError(f"the name of a platform has {size} bytes, more than the limit of {_MAX_NAME_BYTES}")
        names.append(bytes(data[text + 4 : text + 4 + size]).decode())
    return names


_Data = bytes | bytearray | memoryview | mmap.mmap


def _number(data: _Data, code: str, at: int) -> int:
    """Return the number of format `code` at a position of a flatbuffer.  Raise ValueError if it is outside."""
    size = struct.calcsize(code)
    if not 0 <= at <= len(data) - size:
        raise ValueError(f"position {at} is outside of the file")
    return struct.unpack(code, data[at : at + size])[0]


def _field(data: _Data, table: int, place: int) -> int:
    """Return the position of a field of a table, or 0 if the table does not have it.

    place: the position of the field's entry in the vtable.
    """
    vtable = table - _number(data, "<i", table)
    field = _number(data, "<H", vtable + place) if place < _number(data, "<H", vtable) else 0
    return table + field if field else 0


def _vector(data: _Data, table: int, place: int) -> tuple[int, int]:
    """Return the position and the number of the items of a vector, which is a field of a table."""
    field = _field(data, table, place)
    if not field:
        raise ValueError(f"the table has no field at {place}")
    vector = field + _number(data, "<I", field)
    return vector + 4, _number(data, "<I", vector)
