"""Reading of ONNX model files: protobuf parses the graph, and weights are used directly from the bytes of the file.

A file is read once, completely, so later changes of the file do not affect the module.  Weights are most of a model's
bytes.  To avoid copying them again, the initializers' raw_data is removed before protobuf parses the model.  Each
initializer then refers to its position in the file, as in a model with external data.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from relvm.data_classes import record
from relvm.errors import RelvmArgumentError, RelvmError, RelvmFormatError, RelvmUnsupportedError, shortened
from relvm.frontend.onnx_bytes import OnnxSource, read_external, read_source

_PACKED_BITS = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}  # element types with several elements in a byte
_LONGEST_DIMS = 64
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
        The onnx.ModelProto.  Read the elements of its tensors with `array` only.
    place
        The model's name in messages: its path, or the name of the graph.
    digest
        A digest of the model and of the files with its external data, or "" if it could not be determined (see
        `OnnxSource`).
    folder
        The folder of the files with external data, or None if it is not known.
    content
        The bytes of the model itself.  If a tensor has external data without a location, its offset refers to these
        bytes.
    files
        The bytes of the files with external data read so far, by path.
    covered
        The paths of the external data files that `digest` covers.
    expanded
        The total size, in bytes, of the arrays and inlined nodes created from the model so far.  The method `count`
        adds to this total, and raises an error if the total becomes too large.
    """

    proto: Any
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
        stored = (len(self.content) or self.proto.ByteSize()) + sum(map(len, self.files.values()))
        if self.expanded.bytes > _FREE_BYTES + _GROWTH * stored:
            raise RelvmUnsupportedError(
                f"{here}: the tensors of the model expand to {self.expanded.bytes:,} bytes, but the limit for a model"
                f" of {stored:,} bytes is {_FREE_BYTES + _GROWTH * stored:,}"
            )

    def array(self, tensor: Any, here: str) -> np.ndarray:
        """Return the elements of an onnx.TensorProto.  here: the beginning of error messages.

        Raises
        ------
        RelvmFormatError
            The dimensions, the number of bytes or the element type of the tensor are invalid, or its external data file
            is missing or too short.
        RelvmUnsupportedError
            The arrays of the model have become too large compared with the size of its files (see `count`).
        """
        from onnx import TensorProto, helper, numpy_helper

        dims = tuple(tensor.dims)
        if len(dims) > _LONGEST_DIMS or any(dim < 0 for dim in dims):
            raise RelvmFormatError(f"{here}: invalid dimensions {list(dims)[:_LONGEST_DIMS]}")
        try:
            dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
        except (KeyError, TypeError):
            raise RelvmFormatError(f"{here}: unknown element type {tensor.data_type}") from None
        if tensor.data_type == TensorProto.STRING:
            return _from_typed_field(tensor, dims, here)
        is_external = tensor.data_location == TensorProto.EXTERNAL
        if is_external:
            data = self._external_bytes(tensor, here)
        elif tensor.HasField("raw_data"):
            data = np.frombuffer(tensor.raw_data, np.uint8)
        else:
            return _from_typed_field(tensor, dims, here)
        bits = _PACKED_BITS.get(tensor.data_type, dtype.itemsize * 8)
        expected = -(-math.prod(dims) * bits // 8)
        if len(data) != expected:
            raise RelvmFormatError(
                f"{here}: expected {expected} bytes for {dtype} and dimensions {list(dims)}, got {len(data)}"
            )
        self.count(len(data), here)
        if bits == dtype.itemsize * 8:
            return data.view(dtype).reshape(dims) if data.size else np.empty(dims, dtype)
        plain = TensorProto(data_type=tensor.data_type, dims=dims, raw_data=data.tobytes())
        return numpy_helper.to_array(plain)

    def dense_array(self, sparse: Any, here: str) -> np.ndarray:
        """Convert an onnx.SparseTensorProto to a dense array.  here: the beginning of error messages.

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
            raise RelvmFormatError(f"{here}: indices of shape {indices.shape} do not match {len(values)} values")
        if ((columns < 0) | (columns >= extents)).any():
            raise RelvmFormatError(f"{here}: an index lies outside the dimensions {list(dims)}")
        whole = np.zeros(dims, values.dtype)
        whole.reshape(extents)[tuple(columns.T)] = values
        return whole

    def _external_bytes(self, tensor: Any, here: str) -> np.ndarray:
        """Return the bytes of a tensor with external data, as a uint8 array."""
        entries = {entry.key: entry.value for entry in tensor.external_data}
        try:
            offset, length = int(entries.get("offset", 0)), int(entries["length"]) if "length" in entries else None
        except ValueError:
            raise RelvmFormatError(
                f"{here}: expected integers as the offset and length of external data, got {entries}"
            ) from None
        location = entries.get("location")
        data = np.frombuffer(self.content if location is None else self._file(location, here), np.uint8)
        length = len(data) - offset if length is None else length
        if offset < 0 or length < 0 or offset + length > len(data):
            raise RelvmFormatError(
                f"{here}: bytes {offset} to {offset + length} lie outside {location or 'the model'},"
                f" which has {len(data)} bytes"
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
        The onnx package is not installed.
    """
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise RelvmUnsupportedError("reading ONNX models needs the onnx package: pip install 'relvm[onnx]'") from None
    if isinstance(model, onnx.ModelProto):
        return ModelFile(model, shortened(str(model.graph.name)) or "model", "", None, memoryview(b""))
    if isinstance(model, bytearray | memoryview):
        model = bytes(model)
    if not isinstance(model, bytes | str | os.PathLike | OnnxSource):
        raise RelvmArgumentError(f"from_onnx: expected a path, bytes or an onnx.ModelProto, got {type(model).__name__}")
    source = model if isinstance(model, OnnxSource) else read_source(model)
    try:
        proto = onnx.ModelProto.FromString(source.skeleton)
    except DecodeError as error:
        raise RelvmFormatError(f"{source.place} is not an ONNX model: {error}") from None
    if not proto.HasField("graph") or not proto.opset_import:
        raise RelvmFormatError(f"{source.place} is not an ONNX model: it has no graph or no opset")
    return ModelFile(
        proto, source.place, source.digest, source.folder, source.content, dict(source.files), frozenset(source.files)
    )


def _from_typed_field(tensor: Any, dims: tuple[int, ...], here: str) -> np.ndarray:
    """Return the elements of a tensor that stores them in a typed field, such as float_data.

    here: the beginning of error messages.
    """
    from onnx import numpy_helper

    stored = sum(len(getattr(tensor, name)) for name in _FIELDS)
    if math.prod(dims) > 2 * stored * _MAX_IN_A_FIELD:
        raise RelvmFormatError(f"{here}: {stored} elements are too few for dimensions {list(dims)}")
    try:
        return numpy_helper.to_array(tensor)
    except (TypeError, ValueError, OverflowError) as error:
        raise RelvmFormatError(f"{here}: {error}") from None


_FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
_MAX_IN_A_FIELD = 4  # largest number of elements that one number of a typed field holds (2-bit types)
