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
    """Return a digest of a model and of the files with its external data, and the bytes of these files.

    The digest is "" if it cannot be determined: `folder` is None although there are such files, a file cannot be read
    or is outside of the folder, or the model is malformed.

    Parameters
    ----------
    content
        The bytes of the model.
    folder
        The folder of the model, or None if it is not known.
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
    """Return the names of the files with external data, in alphabetical order.

    skeleton: the serialized model without weights, as `without_weights` returns it.  In a model with weights, the
    search for names could match bytes of a weight.

    Raises
    ------
    ValueError
        The name of a file is stored in another form than protobuf writes.
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
    """Return the path of a file with external data.  Raise ValueError if the file is outside the model's folder."""
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
        return _changed(data, start, end, _INITIALIZER, _tensor)

    return b"".join(_changed(whole, 0, len(whole), _GRAPH, graph))


def _changed(data: memoryview, start: int, end: int, number: int, change: Callable) -> list[bytes | memoryview]:
    """Replace each large value of a field in a serialized message, and return the parts of the new message.

    data, start, end: the message is data[start:end].   number: the number of the field.   change: a function that is
    called as change(data, start, end) with the range of a value, and returns the parts of the new value.
    """
    parts, kept = [], start
    for field_number, wire, at, begin, stop in fields(data, start, end):
        if (field_number, wire) != (number, LENGTH) or stop - begin < _LEFT_OUT_BYTES:
            continue
        inner = change(data, begin, stop)
        parts += [data[kept:at], key(number, LENGTH), varint(sum(map(len, inner))), *inner]
        kept = stop
    return [*parts, data[kept:end]]


def _tensor(data: memoryview, start: int, end: int) -> list[bytes | memoryview]:
    """Return the parts of the serialized TensorProto data[start:end] without its raw_data if that is large.

    The raw_data is replaced by its position in `data`, in the form of external data.
    """
    parts = list(fields(data, start, end))
    raw = [part for part in parts if part[0] == _RAW_DATA]
    if len(raw) != 1 or raw[0][4] - raw[0][3] < _LEFT_OUT_BYTES or any(part[0] == _DATA_LOCATION for part in parts):
        return [data[start:end]]
    _, _, at, begin, stop = raw[0]
    entries = [string(1, name) + string(2, str(place)) for name, place in (("offset", begin), ("length", stop - begin))]
    places = b"".join(key(_EXTERNAL_DATA, LENGTH) + varint(len(entry)) + entry for entry in entries)
    return [data[start:at], data[stop:end], places, key(_DATA_LOCATION, VARINT), varint(1)]
