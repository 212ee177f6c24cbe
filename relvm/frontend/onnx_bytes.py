"""The bytes of ONNX models: models without their weights, and the digest of a model, without the onnx package.

Field numbers are those of onnx/onnx.proto.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from relvm.errors import RelvmError
from relvm.frontend.protobuf import LENGTH, VARINT, NotAMessage, fields, key, read_varint, string, varint
from relvm.runtime.file_io import read_file

_LEFT_OUT_BYTES = 4096  # raw_data of at least this size stays in the file
_GRAPH, _INITIALIZER, _RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 7, 5, 9, 13, 14
_LOCATION = b"\x08location"  # the text "location" as a field, with its length
_LOCATION_ENTRY = b"\n" + _LOCATION + b"\x12"  # an entry of external_data: the key "location", and the tag of the value


def model_digest(content: bytes, folder: Path | None) -> tuple[str, dict[Path, bytes]]:
    """Return a digest of a model and of the files with its external data, and the bytes of these files by path.

    The digest is "" if the model is malformed, or if a file with external data cannot be read or is not in the folder.

    Parameters
    ----------
    content
        The bytes of the model.
    folder
        The folder of the model.  If it is None, files with external data cannot be read.
    """
    digest = content_digest(content)
    files: dict[Path, bytes] = {}
    if _LOCATION not in content:
        return digest, files
    try:
        for name in external_files(without_weights(content)):
            if folder is None:
                return "", {}
            path = file_in(folder, name)
            files[path] = read_file(path)
            digest += f" {name!r} {content_digest(files[path])}"
    except (NotAMessage, OSError, RelvmError, UnicodeDecodeError, ValueError):
        return "", {}
    return digest, files


def content_digest(content: bytes) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def external_files(skeleton: bytes) -> list[str]:
    """Return the names of the files with external data of a model, in alphabetical order.

    skeleton: the serialized model without weights, as `without_weights` returns it.  In a model with weights, the
    search for names could match bytes of a weight.

    Raises
    ------
    ValueError
        The entry with the name of a file is not encoded as protobuf normally does it, so the search cannot find it.
    """
    whole, names = memoryview(skeleton), set()
    if skeleton.count(_LOCATION) != skeleton.count(_LOCATION_ENTRY):
        raise ValueError("malformed entry of external data: the key location is not followed by its value")
    at = skeleton.find(_LOCATION_ENTRY)
    while at >= 0:
        size, begin = read_varint(whole, at + len(_LOCATION_ENTRY), len(whole))
        names.add(str(whole[begin : begin + size], "utf-8"))
        at = skeleton.find(_LOCATION_ENTRY, begin)
    return sorted(names)


def file_in(folder: Path, name: str) -> Path:
    """Return the path of the file with external data `name`, which must be inside `folder`, the folder of the model.

    Raise ValueError if it is not, so that a model cannot read other files.
    """
    outer = os.path.realpath(folder)  # realpath treats links in a cycle as files, so opening them fails
    is_name = bool(name) and "\0" not in name
    path = Path(os.path.realpath(os.path.join(outer, name if is_name else "..")))
    if not path.is_relative_to(outer):
        raise ValueError(f"external data must be a file in the model's folder, got {name!r}")
    return path


def without_weights(content: bytes) -> bytes:
    """Return a serialized model without the large raw_data of its initializers.

    Each raw_data is replaced by external data without a location, which refers to a position in `content`.
    """

    whole = memoryview(content)

    def graph(data: memoryview, start: int, end: int) -> list[bytes | memoryview]:
        return _replace_large_values(data, start, end, _INITIALIZER, _remove_raw_data)

    return b"".join(_replace_large_values(whole, 0, len(whole), _GRAPH, graph))


def _replace_large_values(
    data: memoryview, start: int, end: int, number: int, change: Callable
) -> list[bytes | memoryview]:
    """Replace the large values of a field in the serialized message data[start:end].

    Return the new message as a list of pieces, to avoid copying the bytes that do not change.

    number: the number of the field.   change: a function that is called as change(data, start, end) with the range of a
    value, and returns the new value as a list of pieces.
    """
    parts, kept = [], start
    for field_number, wire, at, begin, stop in fields(data, start, end):
        if (field_number, wire) != (number, LENGTH) or stop - begin < _LEFT_OUT_BYTES:
            continue
        inner = change(data, begin, stop)
        parts += [data[kept:at], key(number, LENGTH), varint(sum(map(len, inner))), *inner]
        kept = stop
    return [*parts, data[kept:end]]


def _remove_raw_data(data: memoryview, start: int, end: int) -> list[bytes | memoryview]:
    """Remove a large raw_data from the serialized TensorProto data[start:end].

    Return the new TensorProto as a list of pieces.  Instead of the raw_data, it contains external data without a
    location: the position of the raw_data in `data`.
    """
    parts = list(fields(data, start, end))
    raw = [part for part in parts if part[0] == _RAW_DATA]
    if len(raw) != 1 or raw[0][4] - raw[0][3] < _LEFT_OUT_BYTES or any(part[0] == _DATA_LOCATION for part in parts):
        return [data[start:end]]
    _, _, at, begin, stop = raw[0]
    entries = [string(1, name) + string(2, str(place)) for name, place in (("offset", begin), ("length", stop - begin))]
    places = b"".join(key(_EXTERNAL_DATA, LENGTH) + varint(len(entry)) + entry for entry in entries)
    return [data[start:at], data[stop:end], places, key(_DATA_LOCATION, VARINT), varint(1)]
