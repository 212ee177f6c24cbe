"""Reading of ONNX model files, and the arrays of their tensors, which use the bytes of the files where possible.

A file is read once, completely, so later changes of the file do not affect the module.
"""

from __future__ import annotations

import math
import os
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from relvm.data_classes import dataclass, record
from relvm.errors import RelvmArgumentError, RelvmError, RelvmFormatError, RelvmUnsupportedError, counted, shortened
from relvm.frontend.onnx_bytes import OnnxSource, read_external, read_source
from relvm.frontend.onnx_element_types import ELEMENT_TYPES, element_dtype
from relvm.frontend.onnx_messages import EXTERNAL, Message, check_model

_LONGEST_DIMS = 64
_IN_PLACE_BYTES = 4096  # elements of at least this size are used in the bytes of the file
_FREE_BYTES = 1 << 28  # a model may always expand to this size
_GROWTH = 16  # a larger model may expand to this multiple of its files' size


@dataclass
class _Count:
    bytes: int = 0


@record
class ModelFile:
    """An ONNX model and the bytes of its files.

    Attributes
    ----------
    proto
        The ModelProto.  Read the elements of its tensors with `array`.
    place
        The model's name in messages: its path, or the name of the graph.
    digest
        A digest of the model and of the files with its external data, or "" if it could not be determined (see
        `OnnxSource`).
    folder
        The folder of the files with external data, or None if it is not known.
    content
        The bytes of the model itself.
    files
        The bytes of the files with external data read so far, by path.
    covered
        The paths of the external data files that `digest` covers.
    expanded
        The total size, in bytes, of the arrays and inlined nodes created from the model so far.  The method `count`
        adds to this total, and raises an error if the total becomes too large.
    """

    proto: Message
    place: str
    digest: str
    folder: Path | None
    content: memoryview
    files: dict[Path, memoryview] = field(default_factory=dict)
    covered: frozenset[Path] = frozenset()
    expanded: _Count = field(default_factory=_Count)

    @property
    def is_covered_by_digest(self) -> bool:
        """Whether `digest` covers the model and all external data that was read so far."""
        return bool(self.digest) and self.files.keys() <= self.covered

    def count(self, size_bytes: int, here: str) -> None:
        """Add the size of an array or of inlined nodes to the total `expanded`, and check the total.

        here: the beginning of the error message.

        Raises
        ------
        RelvmUnsupportedError
            The total is too large compared with the size of the files.  This happens if the model refers to the same
            bytes many times, or has almost empty sparse tensors.
        """
        self.expanded.bytes += size_bytes
        if self.expanded.bytes <= _FREE_BYTES:
            return
        stored = len(self.content) + sum(map(len, self.files.values()))
        if self.expanded.bytes > _FREE_BYTES + _GROWTH * stored:
            raise RelvmUnsupportedError(
                f"{here}: the tensors of the model expand to {self.expanded.bytes:,} bytes, but the limit for a model"
                f" of {stored:,} bytes is {_FREE_BYTES + _GROWTH * stored:,}"
            )

    def array(self, tensor: Message, here: str) -> np.ndarray:
        """Return the elements of a TensorProto.  here: the beginning of error messages.

        Raises
        ------
        RelvmFormatError
            The dimensions, the number of bytes or the element type of the tensor are invalid, or its external data file
            is missing or too short.
        RelvmUnsupportedError
            The arrays of the model have become too large compared with the size of its files (see `count`).
        """
        dims = tuple(tensor.dims)
        if len(dims) > _LONGEST_DIMS or any(dim < 0 for dim in dims):
            raise RelvmFormatError(f"{here}: invalid dimensions {list(dims)[:_LONGEST_DIMS]}")
        dtype = element_dtype(tensor.data_type)
        if dtype is None:
            raise RelvmFormatError(f"{here}: unknown element type {tensor.data_type}")
        element = ELEMENT_TYPES[tensor.data_type]
        is_external = tensor.data_location == EXTERNAL
        if not element.bits or not (is_external or tensor.has("raw_data")):
            return self._from_typed_field(tensor, dims, dtype, here)
        data = self._external_bytes(tensor, here) if is_external else np.frombuffer(tensor.raw_data, np.uint8)
        expected = -(-math.prod(dims) * element.bits // 8)
        if len(data) != expected:
            raise RelvmFormatError(
                f"{here}: expected {expected} bytes for {dtype} and dimensions {list(dims)}, got {len(data)}"
            )
        self.count(len(data), here)
        data = _without_file(data)
        if element.bits >= 8:
            return data.view(dtype).reshape(dims) if data.size else np.empty(dims, dtype)
        return _unpack(data, element.bits, math.prod(dims)).view(dtype).reshape(dims)

    def _from_typed_field(self, tensor: Message, dims: tuple[int, ...], dtype: np.dtype, here: str) -> np.ndarray:
        """Return the elements of a tensor that stores them in a typed field, such as float_data."""
        if tensor.has("segment"):
            raise RelvmFormatError(f"{here}: tensors in segments are not supported")
        element = ELEMENT_TYPES[tensor.data_type]
        stored, count = getattr(tensor, element.field), math.prod(dims)
        per_item = 8 // element.bits if element.bits in (2, 4) else 1
        items = 2 * count if dtype.kind == "c" else -(-count // per_item)
        if len(stored) != items:
            raise RelvmFormatError(
                f"{here}: expected {counted(items, 'item')} in {element.field} for {dtype} and dimensions"
                f" {list(dims)}, got {len(stored)}"
            )
        self.count(max(dtype.itemsize * count, len(stored)), here)
        if dtype.kind == "O":
            try:
                texts = [text.decode() for text in stored]
            except UnicodeDecodeError as error:
                raise RelvmFormatError(f"{here}: a string is not UTF-8: {error}") from None
            array = np.empty(count, dtype)
            array[:] = texts
            return array.reshape(dims)
        if not count:
            return np.empty(dims, dtype)
        numbers = _without_file(np.frombuffer(stored, stored.format))
        if element.field != "int32_data" or element.name == "INT32":
            return (numbers.view(dtype) if dtype.kind == "c" else numbers.astype(dtype, copy=False)).reshape(dims)
        if element.bits == 16:
            return numbers.astype(np.uint16).view(dtype).reshape(dims)
        octets = numbers.astype(np.uint8)
        if element.bits in (2, 4):
            octets = _unpack(octets, element.bits, count)
        elif element.bits == 6:
            octets &= 63
        return octets.view(dtype).reshape(dims)

    def dense_array(self, sparse: Message, here: str) -> np.ndarray:
        """Convert a SparseTensorProto to a dense array.  here: the beginning of error messages.

        Raises
        ------
        RelvmFormatError
            The indices, values and dimensions of the tensor do not match.
        RelvmUnsupportedError
            The tensor has more than 2^31 elements, or the model would become too large (see `count`).
        """
        dims, values = tuple(sparse.dims), self.array(sparse.values, here)
        indices = self.array(sparse.indices, f"{here}: indices").astype(np.int64)
        if any(dim < 0 for dim in dims) or values.ndim != 1:
            raise RelvmFormatError(
                f"{here}: the values of a sparse tensor must have rank 1, and its dimensions must be at least 0, got "
                f"values of shape {values.shape} and dimensions {list(dims)}"
            )
        if math.prod(dims) > 2**31:
            raise RelvmUnsupportedError(
                f"{here}: a sparse tensor has {math.prod(dims)} elements, expected at most {2**31}"
            )
        self.count(math.prod(dims) * values.itemsize, here)
        columns = indices[:, None] if indices.ndim == 1 else indices
        extents = np.array((math.prod(dims),) if indices.ndim == 1 else dims, np.int64)
        if columns.shape != (len(values), len(extents)):
            raise RelvmFormatError(
                f"{here}: indices of shape {indices.shape} do not match {counted(len(values), 'value')}"
            )
        if ((columns < 0) | (columns >= extents)).any():
            raise RelvmFormatError(f"{here}: an index lies outside the dimensions {list(dims)}")
        whole = np.zeros(dims, values.dtype)
        whole.reshape(extents)[tuple(columns.T)] = values
        return whole

    def _external_bytes(self, tensor: Message, here: str) -> np.ndarray:
        """Return the bytes of a tensor with external data, as a uint8 array."""
        entries = {entry.key: entry.value for entry in tensor.external_data}
        try:
            offset, length = int(entries.get("offset", 0)), int(entries["length"]) if "length" in entries else None
        except ValueError:
            raise RelvmFormatError(
                f"{here}: expected integers as the offset and length of external data, got {entries}"
            ) from None
        location = entries.get("location")
        if not isinstance(location, str):
            raise RelvmFormatError(
                f"{here}: expected the name of a file as the location of external data, got {location}"
            )
        data = np.frombuffer(self._file(location, here), np.uint8)
        length = len(data) - offset if length is None else length
        if offset < 0 or length < 0 or offset + length > len(data):
            raise RelvmFormatError(
                f"{here}: bytes {offset} to {offset + length} lie outside {location}, which has "
                f"{counted(len(data), 'byte')}"
            )
        return data[offset : offset + length]

    def _file(self, location: str, here: str) -> memoryview:
        if self.folder is None:
            raise RelvmUnsupportedError(
                f"{here}: the elements of the tensor are in the file {location!r}, which is found only if the model is"
                " given by its path"
            )
        try:
            return read_external(self.folder, location, self.files)
        except RelvmError:
            raise
        except ValueError as error:
            raise RelvmFormatError(f"{here}: {error}") from None
        except OSError as error:
            path = os.path.realpath(self.folder / location)
            raise RelvmFormatError(f"{here}: cannot read the elements from {path}: {error.strerror}") from None


def read_model_file(model: Any) -> ModelFile:
    """Read a model from a path, the bytes of a file, the result of `read_source`, or an onnx.ModelProto.

    Raises
    ------
    RelvmFormatError
        The input is not an ONNX model.
    RelvmArgumentError
        `model` has another type.
    OSError
        The file cannot be read.
    RelvmUnsupportedError
        The file exceeds a limit of the reader, or the onnx.ModelProto is larger than protobuf can serialize.
    """
    if getattr(getattr(model, "DESCRIPTOR", None), "full_name", "") == "onnx.ModelProto":
        return _read_proto(model)
    if isinstance(model, bytearray | memoryview):
        model = bytes(model)
    if not isinstance(model, bytes | str | os.PathLike | OnnxSource):
        raise RelvmArgumentError(f"from_onnx: expected a path, bytes or an onnx.ModelProto, got {type(model).__name__}")
    source = model if isinstance(model, OnnxSource) else read_source(model)
    _expect_graph(source.model, source.place)
    return ModelFile(
        source.model,
        source.place,
        source.digest,
        source.folder,
        source.content,
        dict(source.files),
        frozenset(source.files),
    )


def _read_proto(proto: Any) -> ModelFile:
    """Read an onnx.ModelProto, which is first serialized."""
    try:
        content = memoryview(proto.SerializeToString())
    except Exception as error:  # of protobuf, which has several classes for messages of more than 2 GB
        raise RelvmUnsupportedError(
            f"from_onnx: cannot serialize the onnx.ModelProto; save it with external data and pass its path: {error}"
        ) from None
    model = check_model(content, "model").model
    _expect_graph(model, "model")
    return ModelFile(model, shortened(str(model.graph.name)) or "model", "", None, content)


def _expect_graph(model: Message, place: str) -> None:
    if not model.has("graph") or not model.opset_import:
        raise RelvmFormatError(f"{place} is not an ONNX model: it has no graph or no opset")


def _without_file(array: np.ndarray) -> np.ndarray:
    """Return a copy of a small array, which does not keep the whole file in memory, or a large array itself."""
    return array if array.nbytes >= _IN_PLACE_BYTES else np.frombuffer(array.tobytes(), array.dtype)


def _unpack(data: np.ndarray, bits: int, count: int) -> np.ndarray:
    """Return `count` elements of 2, 4 or 6 bits as bytes.  The first element is in the lowest bits of `data`."""
    if bits == 6:
        return np.packbits(
            np.unpackbits(data, bitorder="little", count=6 * count).reshape(count, 6), axis=1, bitorder="little"
        ).reshape(-1)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((data[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:count]
