"""Requests and responses of inference in the Open Inference Protocol, version 2, over HTTP.

Sources: the HTTP/REST part of the Open Inference Protocol, and Triton's binary tensor data extension.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from relvm.errors import (
    RelvmArgumentError,
    RelvmFormatError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
    counted,
    near_matches,
)
from serve.signature import Signature, TensorSpec

MAX_STRINGS = 1 << 20  # limit for a request, because a Python string takes many times more memory than its bytes
_SUBJECTS = {bool: "booleans", int: "integers", float: "floats", str: "strings", list: "lists"}
_UNSUPPORTED = {
    "classification": "classification",
    "shared_memory_region": "shared memory",
    "sequence_id": "sequences",
}


@dataclass(frozen=True)
class BinaryTensor:
    """An input whose elements follow the JSON of the request.  size_bytes: the number of these bytes."""

    shape: tuple[int, ...]
    size_bytes: int


@dataclass(frozen=True)
class InferRequest:
    """An inference request.

    Attributes
    ----------
    id
        The identifier that the response repeats, or None.
    timeout
        The seconds after which the client no longer needs the result, or None.
    inputs
        An array or a BinaryTensor for each name, in the order of the request.
    outputs
        The names of the requested outputs, and whether each is sent as binary data.
    """

    id: str | None
    timeout: float | None
    inputs: dict[str, np.ndarray | BinaryTensor]
    outputs: dict[str, bool]


# ---- requests ----


def read_json(text: bytes | bytearray | memoryview) -> dict[str, Any]:
    """Parse a JSON object.

    Raises
    ------
    RelvmFormatError
        The text is not JSON, contains NaN or Infinity, is nested too deeply, or is not an object.
    """
    try:
        found = json.loads(bytes(text), parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise RelvmFormatError(f"the body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise RelvmFormatError(f"the body: expected a JSON object, got {_kind(found)}")
    return found


def read_request(text: bytes | bytearray | memoryview, signature: Signature) -> InferRequest:
    """Parse the JSON of an inference request, and check it against the signature of the model.

    Raises
    ------
    RelvmFormatError
        The text is not an inference request.
    RelvmArgumentError
        An input is unknown or given twice, or an output is unknown.
    RelvmTypeError, RelvmShapeError
        An input has another datatype, rank or size than that of the model, or its elements do not match them.
    RelvmUnsupportedError
        The request needs an extension that the server does not have.
    """
    found = read_json(text)
    request_id = found.get("id")
    if request_id is not None and not isinstance(request_id, str):
        raise RelvmFormatError(f"id: expected a string, got {_kind(request_id)}")
    parameters = _parameters(found, "the request")
    inputs: dict[str, np.ndarray | BinaryTensor] = {}
    known = {each.name: each for each in signature.inputs}
    for each in _objects(found, "inputs"):
        name = _name(each, "inputs")
        _expect_new("input", name, inputs, known)
        inputs[name] = _read_input(known[name], each)
    if "inputs" not in found:
        raise RelvmFormatError('expected "inputs", a list with an object for each input of the model')
    is_binary = _flag(parameters, "binary_data_output", "the request", False)
    outputs: dict[str, bool] = {}
    names = [each.name for each in signature.outputs]
    for each in _objects(found, "outputs"):
        name = _name(each, "outputs")
        _expect_new("output", name, outputs, names)
        outputs[name] = _flag(_parameters(each, f"output {name}"), "binary_data", f"output {name}", is_binary)
    return InferRequest(request_id, _timeout(parameters), inputs, outputs or dict.fromkeys(names, is_binary))


def read_tensor(spec: TensorSpec, tensor: BinaryTensor, content: memoryview) -> np.ndarray:
    """Return the array of an input that is sent as binary data.  Numbers are not copied.

    content: the bytes of the input, `tensor.size_bytes`.

    Raises
    ------
    RelvmFormatError
        The elements of BYTES do not fill `content`, or a BOOL is neither 0 nor 1.
    """
    if spec.datatype == "BYTES":
        return _read_strings(spec, tensor.shape, content)
    array = np.frombuffer(content, spec.dtype).reshape(tensor.shape)
    if spec.datatype == "BOOL" and array.size and array.view(np.uint8).max() > 1:
        raise RelvmFormatError(f"input {spec.name}: expected 0 or 1 for each BOOL")
    return array


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON; send such numbers as binary data")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "an integer", float: "a float"}
    return names.get(type(value), "null")


def _objects(found: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    listed = found.get(key, [])
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise RelvmFormatError(f"{key}: expected a list of objects")
    return listed


def _name(found: Mapping[str, Any], key: str) -> str:
    name = found.get("name")
    if not isinstance(name, str):
        raise RelvmFormatError(f"{key}: expected a name, a string, in each object, got {_kind(name)}")
    return name


def _expect_new(kind: str, name: str, seen: Collection[str], known: Collection[str]) -> None:
    """Raise RelvmArgumentError if a request names an input or output that it has named before, or that is unknown."""
    if name in seen:
        raise RelvmArgumentError(f"{kind} {name[:200]} is given twice")
    if name not in known:
        raise RelvmArgumentError(f"no {kind} {name[:200]}{near_matches(name[:200], known)}")


def _parameters(found: Mapping[str, Any], what: str) -> dict[str, Any]:
    parameters = found.get("parameters", {})
    if not isinstance(parameters, dict):
        raise RelvmFormatError(f"{what}: parameters: expected an object, got {_kind(parameters)}")
    for key, extension in _UNSUPPORTED.items():
        if key in parameters:
            raise RelvmUnsupportedError(f"{what}: parameter {key}: this server does not support {extension}")
    return parameters


def _flag(parameters: Mapping[str, Any], key: str, what: str, default: bool) -> bool:
    value = parameters.get(key, default)
    if not isinstance(value, bool):
        raise RelvmFormatError(f"{what}: parameter {key}: expected true or false, got {_kind(value)}")
    return value


def _timeout(parameters: Mapping[str, Any]) -> float | None:
    """Return the parameter `timeout`, which is in microseconds, in seconds.  Return None if it is 0 or missing."""
    value = parameters.get("timeout", 0)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise RelvmFormatError("the request: parameter timeout: expected microseconds, an integer of at least 0")
    return value / 1e6 or None


def _read_input(spec: TensorSpec, found: Mapping[str, Any]) -> np.ndarray | BinaryTensor:
    what = f"input {spec.name}"
    if found.get("datatype") != spec.datatype:
        got = str(found.get("datatype"))[:200]
        raise RelvmTypeError(f"{what}: expected the datatype {spec.datatype}, got {got}")
    shape = found.get("shape")
    if not isinstance(shape, list) or not all(type(size) is int and 0 <= size < 1 << 63 for size in shape):
        raise RelvmFormatError(f"{what}: shape: expected a list of integers of at least 0")
    spec.expect_shape(shape)
    if spec.datatype == "BYTES" and math.prod(shape) > MAX_STRINGS:
        raise RelvmShapeError(f"{what}: expected at most {MAX_STRINGS} strings, got the shape {shape}")
    size_bytes = _parameters(found, what).get("binary_data_size")
    if size_bytes is None:
        if "data" not in found:
            raise RelvmFormatError(f"{what}: expected data, or the parameter binary_data_size")
        return _read_data(spec, tuple(shape), found["data"])
    if "data" in found:
        raise RelvmFormatError(f"{what}: expected data or the parameter binary_data_size, not both")
    if type(size_bytes) is not int or size_bytes < 0:
        raise RelvmFormatError(f"{what}: parameter binary_data_size: expected an integer of at least 0")
    expected = math.prod(shape) * spec.dtype.itemsize
    if spec.datatype != "BYTES" and size_bytes != expected:
        wanted = counted(expected, "byte")
        raise RelvmShapeError(f"{what}: shape {shape} of {spec.datatype} has {wanted}, got {size_bytes}")
    return BinaryTensor(tuple(shape), size_bytes)


def _read_data(spec: TensorSpec, shape: tuple[int, ...], data: Any) -> np.ndarray:
    """Return the array of a tensor with elements in JSON: a flat list in row-major order, or nested lists."""
    what = f"input {spec.name}"
    if wrong := _element_types(data) - _json_types(spec):
        got = _SUBJECTS.get(wrong.pop(), "null or objects")
        raise RelvmTypeError(f"{what}: expected elements of {spec.datatype}, got {got}")
    try:
        array = np.array(data, _array_dtype(spec))
    except OverflowError:
        raise _out_of_range(spec) from None
    except (ValueError, RecursionError) as error:
        raise RelvmFormatError(f"{what}: data is not an array: {error}") from None
    if array.shape != shape and array.shape != (math.prod(shape),):
        nested = f"nested lists of the shape {list(array.shape)}"
        got = counted(array.shape[0], "element") if array.ndim == 1 else nested
        wanted = counted(math.prod(shape), "element")
        raise RelvmShapeError(f"{what}: shape {list(shape)} has {wanted}, got {got}")
    try:
        return _converted(spec, array).reshape(shape)
    except OverflowError:
        raise _out_of_range(spec) from None
    except (TypeError, ValueError) as error:  # raised for lists that are nested too deeply, and for huge shapes
        raise RelvmFormatError(f"{what}: data is not an array: {error}") from None


def _element_types(data: Any) -> set[type]:
    types: set[type] = set()
    waiting = [[data]]
    while waiting:
        each = waiting.pop()
        found = set(map(type, each))
        types |= found - {list}
        if list in found:
            waiting.extend(item for item in each if type(item) is list)
    return types


def _json_types(spec: TensorSpec) -> set[type]:
    if _is_float(spec):
        return {int, float}
    return {{"BOOL": bool, "BYTES": str}.get(spec.datatype, int)}


def _array_dtype(spec: TensorSpec) -> Any:
    """Return the dtype for the first conversion of elements in JSON, or None for NumPy's choice.

    Without this dtype, NumPy would convert a list of 0 and 2**63 to floats.
    """
    if spec.datatype == "BYTES":
        return object
    return {"i": np.int64, "u": np.uint64}.get(spec.dtype.kind)


def _out_of_range(spec: TensorSpec) -> RelvmTypeError:
    return RelvmTypeError(f"input {spec.name}: a number is outside of the range of {spec.datatype}")


def _converted(spec: TensorSpec, array: np.ndarray) -> np.ndarray:
    """Convert an array of elements from JSON to the dtype of an input.

    Raise OverflowError if a number is out of range.
    """
    if spec.datatype == "BYTES":
        for text in array.reshape(-1):
            if type(text) is list:
                raise ValueError("its lists have different lengths, or are nested too deeply")
            if not text.isascii():
                text.encode()  # raises UnicodeEncodeError, a ValueError, for lone surrogates
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        converted = array.astype(spec.dtype)
    in_range = np.isfinite(converted) if _is_float(spec) else converted == array
    if not np.all(in_range):
        raise OverflowError
    return converted


def _is_float(spec: TensorSpec) -> bool:
    return spec.datatype.startswith(("FP", "BF"))


def _read_strings(spec: TensorSpec, shape: tuple[int, ...], content: memoryview) -> np.ndarray:
    """Return an array of strings from binary data.

    Each string is stored as its length, in 4 bytes, and its bytes.  Bytes that are not UTF-8 become surrogate escapes.
    """
    array = np.empty(math.prod(shape), object)
    at, size, wanted = 0, len(content), array.size
    for number in range(wanted):
        if at + 4 > size:
            strings, got = counted(wanted, "string"), f"{number} in {counted(size, 'byte')}"
            raise RelvmFormatError(f"input {spec.name}: expected {strings}, got {got}")
        (length,) = struct.unpack_from("<I", content, at)
        at += 4 + length
        if at > size:
            string = f"string {number} of {counted(length, 'byte')}"
            raise RelvmFormatError(f"input {spec.name}: {string} exceeds the binary data")
        array[number] = str(content[at - length : at], "utf-8", "surrogateescape")
    if at != size:
        rest = f"after {counted(wanted, 'string')}, the binary data has {counted(size - at, 'byte')} more"
        raise RelvmFormatError(f"input {spec.name}: {rest}")
    return array.reshape(shape)


# ---- responses ----


def write_data(array: np.ndarray, datatype: str) -> str:
    """Return the elements of an array as a JSON list, in row-major order.  NaN and infinities are written as in Python.

    Raises
    ------
    RelvmUnsupportedError
        A string is not UTF-8.
    """
    if datatype == "BF16":  # elements of bf16 arrays are not Python floats
        array = array.astype(np.float32)
    elements = array.reshape(-1).tolist()
    if datatype == "BYTES":
        try:
            for text in elements:
                text.encode()
        except UnicodeEncodeError:
            raise RelvmUnsupportedError("an output has strings that are not UTF-8; request it as binary data") from None
    return json.dumps(elements)


def write_binary(array: np.ndarray, datatype: str) -> memoryview:
    """Return the binary data of an array.  Numbers are not copied."""
    if datatype != "BYTES":
        return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    made = bytearray()
    for text in array.reshape(-1):
        encoded = text.encode(errors="surrogateescape")
        made += struct.pack("<I", len(encoded))
        made += encoded
    return memoryview(made)


def write_response(
    name: str,
    version: str,
    request_id: str | None,
    outputs: Sequence[tuple[TensorSpec, tuple[int, ...], str | memoryview]],
) -> list[bytes | memoryview]:
    """Return the parts of a response: its JSON, and the binary data of the outputs that are not in the JSON.

    outputs: the type, the shape and the elements of each output.  `write_data` or `write_binary` returned the elements.
    """
    head: dict[str, Any] = {"model_name": name, "model_version": version}
    if request_id is not None:
        head["id"] = request_id
    texts, parts = [], []
    for spec, shape, content in outputs:
        tensor: dict[str, Any] = {"name": spec.name, "datatype": spec.datatype, "shape": list(shape)}
        if isinstance(content, str):
            texts.append(f'{json.dumps(tensor)[:-1]}, "data": {content}}}')
        else:
            tensor["parameters"] = {"binary_data_size": len(content)}
            texts.append(json.dumps(tensor))
            parts.append(content)
    return [f'{json.dumps(head)[:-1]}, "outputs": [{", ".join(texts)}]}}'.encode(), *parts]
