"""The bytes of ONNX models: reading, removal of the weights, and a digest.  The onnx package is not needed.

Field numbers are those of onnx/onnx.proto.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

from relvm.data_classes import record
from relvm.errors import RelvmError, RelvmFormatError
from relvm.frontend.protobuf import LENGTH, VARINT, NotAMessage, fields, key, read_varint, string, varint
from relvm.frontend.stablehlo_file import is_stablehlo
from relvm.runtime.file_io import open_beneath, read_buffer

_BLOCK_BYTES = 4 << 20  # the part of a file that one thread hashes at a time
_LEFT_OUT_BYTES = 4096  # raw_data of at least this size stays in the file
_GRAPH, _INITIALIZER, _RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 7, 5, 9, 13, 14
_LOCATION = b"\x08location"  # the text "location" as a field, with its length
_LOCATION_ENTRY = b"\n" + _LOCATION + b"\x12"  # an entry of external_data: the key "location", and the tag of the value


@record
class OnnxSource:
    """The bytes of an ONNX model and of its external data files.  Each file is read only once.

    Attributes
    ----------
    place
        The model's name in messages: its path, or "model" for bytes.
    content
        The bytes of the model.
    skeleton
        The model without large weights (`without_weights`).
    folder
        The folder of the external data files: that of the model, or None if the model was given as bytes.
    digest
        A digest of the model and of its external data files, as a key of the build cache.  It is "" if these files
        cannot be read or are outside of `folder`, or if `folder` is None.  A model without external data always has a
        digest.
    files
        The bytes of each external data file, by path.  Empty if `digest` is "".
    """

    place: str
    content: memoryview
    skeleton: bytes
    folder: Path | None
    digest: str
    files: dict[Path, memoryview]


def is_onnx(model: object) -> bool:
    """Return whether a model is the path of an .onnx file, or an ONNX model in memory."""
    if isinstance(model, str | os.PathLike):
        return Path(model).suffix == ".onnx"
    return not is_stablehlo(model)


def read_source(model: bytes | str | os.PathLike[str]) -> OnnxSource:
    """Read a model from a path or the bytes of a file, without parsing its graph.

    Raises
    ------
    OSError
        The file of the model cannot be read.
    RelvmFormatError
        The file or the bytes are not a model.
    """
    folder: Path | None = None
    if isinstance(model, bytes):
        place, content = "model", memoryview(model)
    else:
        place, content, folder = str(model), read_buffer(model), Path(model).parent
    try:
        skeleton = without_weights(content)
    except NotAMessage as error:
        raise RelvmFormatError(f"{place} is not an ONNX model: {error}") from None
    return OnnxSource(place, content, skeleton, folder, *_digest(content, skeleton, folder))


def _digest(content: memoryview, skeleton: bytes, folder: Path | None) -> tuple[str, dict[Path, memoryview]]:
    """Return the digest of a model with its external data files, and the bytes of each of these files, by path.

    The digest is "" and the dict is empty if an external data file cannot be read or is outside of `folder`.  This is
    also the result if there are external data files, but `folder` is None.

    content: the bytes of the model.
    skeleton: the model without large weights.
    folder: the folder of the external data files, or None.
    """
    digest = content_digest(content)
    files: dict[Path, memoryview] = {}
    if _LOCATION not in skeleton:
        return digest, files
    try:
        for name in external_files(skeleton):
            if folder is None:
                return "", {}
            digest += f" {name!r} {content_digest(read_external(folder, name, files))}"
    except (NotAMessage, OSError, RelvmError, UnicodeDecodeError, ValueError):
        return "", {}
    return digest, files


def content_digest(content: bytes | memoryview) -> str:
    """Return a digest of a file's bytes.

    It is the SHA-256 of the SHA-256 digests of blocks of 4 MB, in hexadecimal.  If possible, several threads hash the
    blocks.
    """
    whole = memoryview(content)
    blocks = [whole[start : start + _BLOCK_BYTES] for start in range(0, len(whole), _BLOCK_BYTES)]
    digests: Iterable[bytes] = map(_sha256, blocks)
    if len(blocks) > 1:
        # No thread can be started while the interpreter exits, and concurrent.futures cannot even be imported.
        with contextlib.suppress(RuntimeError):
            from concurrent.futures import ThreadPoolExecutor  # imported only for large models, to save time

            with ThreadPoolExecutor(min(len(blocks), os.cpu_count() or 1)) as pool:
                digests = list(pool.map(_sha256, blocks))
    return _sha256(b"".join(digests)).hex()


def _sha256(block: bytes | memoryview) -> bytes:
    return sha256(block).digest()


def external_files(skeleton: bytes) -> list[str]:
    """Return the names of the external data files to which a model refers, in alphabetical order.

    The names are found by a search for the bytes of the entries "location", without parsing the model.  The search can
    miss a name in an unusual encoding.  A model is cached only if the importer reads no other files than those that the
    search found (`ModelFile.is_covered_by_digest`).

    skeleton: the serialized model without weights, as `without_weights` returns it.  In a model with weights, the
    search could match bytes of a weight by chance.

    Raises
    ------
    ValueError
        A key "location" is not directly followed by its value, the name of a file.  Protobuf allows this encoding, but
        the search cannot read it.
    """
    whole, names = memoryview(skeleton), set()
    if skeleton.count(_LOCATION) != skeleton.count(_LOCATION_ENTRY):
        raise ValueError("malformed entry of external data: the key `location` is not followed by its value")
    at = skeleton.find(_LOCATION_ENTRY)
    while at >= 0:
        size, begin = read_varint(whole, at + len(_LOCATION_ENTRY), len(whole))
        names.add(str(whole[begin : begin + size], "utf-8"))
        at = skeleton.find(_LOCATION_ENTRY, begin)
    return sorted(names)


def read_external(folder: Path, name: str, files: dict[Path, memoryview]) -> memoryview:
    """Return the bytes of the external data file `name` of a model.

    folder: the folder of the model, which must contain the file.
    files: the bytes of the files that were already read, by path.  The new file is added.

    Raises
    ------
    ValueError
        The file is outside the folder.
    OSError, RelvmFormatError
        The file cannot be read.
    """
    with open_beneath(folder, name) as (path, opened):
        if (place := Path(path)) not in files:
            files[place] = read_buffer(opened, path)
        return files[place]


def without_weights(content: bytes | memoryview) -> bytes:
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

    number: the number of the field.
    change: a function that is called as change(data, start, end) with the range of a value, and returns the new value
    as a list of pieces.
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
