"""Conversion between arrays and the bodies of requests and answers, as .npy files or JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import numpy as np

from relvm.errors import RelvmFormatError, RelvmTypeError
from relvm.runtime.array_files import reading_arrays
from serve.signature import Signature, TensorOf

NPY, JSON = "application/x-npy", "application/json"

_KINDS = {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}  # kind of dtype -> allowed kinds of JSON elements


def read_body(body: bytes | bytearray, content_type: str, signature: Signature) -> dict[str, np.ndarray]:
    """Parse the body of a request, and return the arrays by input name.

    Raises
    ------
    RelvmFormatError
        The body does not match the content type, or the function's inputs cannot be sent with this content type.
    RelvmArgumentError
        The inputs in the JSON are not those of the function.
    RelvmTypeError
        JSON elements cannot be converted to the dtype of their input.
    """
    if content_type == JSON:
        return _read_json(body, signature)
    if content_type != NPY:
        raise RelvmFormatError(f"content-type {content_type or '(none)'}: expected {NPY} or {JSON}")
    if len(signature.inputs) != 1 or len(signature.outputs) != 1:
        raise RelvmFormatError(f"{NPY} is for one input and one output: expected {JSON}")
    stream = io.BytesIO(body)
    try:
        with reading_arrays("the body is no .npy file"):
            array = np.lib.format.read_array(stream, allow_pickle=False)
    except MemoryError as error:  # its header says so many elements
        raise RelvmFormatError(f"the body is no .npy file: {error}") from None
    if more := len(stream.read()):
        raise RelvmFormatError(f"the body is no .npy file: it has {more} bytes more")
    return {signature.inputs[0].name: array}


def write_body(arrays: Sequence[np.ndarray], content_type: str, signature: Signature) -> bytes:
    """Return the body of an answer with the given content type.

    In JSON, NaN and infinities are written as NaN, Infinity and -Infinity, as Python does.
    """
    if content_type == NPY:
        stream = io.BytesIO()
        np.lib.format.write_array(stream, arrays[0], allow_pickle=False)
        return stream.getvalue()
    named = zip((each.name for each in signature.outputs), arrays, strict=True)
    return json.dumps({name: array.tolist() for name, array in named}).encode()


def _read_json(body: bytes | bytearray, signature: Signature) -> dict[str, np.ndarray]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RelvmFormatError(f"the body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise RelvmFormatError(f"expected a JSON object of the inputs, got {type(found).__name__}")
    signature.expect_inputs(found)
    return {each.name: _array(each, found[each.name]) for each in signature.inputs}


def _array(expected: TensorOf, elements: object) -> np.ndarray:
    if _has_text(elements):  # which NumPy would make every element as long as
        raise RelvmTypeError(f"input {expected.name}: expected {expected.type}, got elements of str")
    try:
        array = np.asarray(elements)
    except (ValueError, RecursionError) as error:
        raise RelvmFormatError(f"input {expected.name}: no array: {error}") from None
    if array.size and array.dtype.kind not in _KINDS[expected.dtype.kind]:
        raise RelvmTypeError(f"input {expected.name}: expected {expected.type}, got elements of {array.dtype}")
    with np.errstate(over="ignore"):  # a float that is too large is infinity
        converted = array.astype(expected.dtype)
    if expected.dtype.kind in "iu" and not np.array_equal(converted, array):
        raise RelvmTypeError(f"input {expected.name}: expected {expected.type}, got a number outside of its range")
    return converted


def _has_text(elements: object) -> bool:
    waiting = [[elements]]
    while waiting:
        each = waiting.pop()
        kinds = set(map(type, each))
        if str in kinds:
            return True
        if list in kinds:
            waiting.extend(item for item in each if type(item) is list)
    return False
