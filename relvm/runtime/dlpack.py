"""DLPack, the protocol with which array libraries share memory.

NumPy implements the protocol, but not for the dtypes of ml_dtypes.  Their elements are therefore passed through NumPy
as unsigned integers of the same size.  The dtype in the DLPack capsule is changed before NumPy imports a capsule, and
after NumPy has exported one.  Source: DLPack 1.1.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from relvm._native import ffi
from relvm.errors import RelvmTypeError
from relvm.numpy_dtypes import STRINGS, dtype_number, numpy_dtype
from relvm.tables import DTYPES

_VERSION = (1, 0)  # newest supported version
_LEGACY, _VERSIONED = b"dltensor", b"dltensor_versioned"  # names of unused capsules
_UNSIGNED, _COMPLEX = 1, 5  # DLPack codes of dtypes
_DEVICES = {2: "a CUDA device", 4: "an OpenCL device", 7: "a Vulkan device", 8: "a Metal device", 10: "a ROCm device"}
_NUMBERS = {(row.code, row.bits): row.index for row in DTYPES if row.bits >= 8 and row.name != "str"}
_NUMPY_CODES = (0, 1, 2, _COMPLEX, 6)  # DLPack codes of NumPy's signed, unsigned, float, complex, bool

# The capsule of version 1 has a version, two pointers and flags before the tensor.
_TENSOR_OFFSETS = {_LEGACY: 0, _VERSIONED: 8 + 2 * ctypes.sizeof(ctypes.c_void_p) + 8}

_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes, _pointer_of.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


def array_of_dlpack(value: Any) -> np.ndarray:
    """Return a NumPy array that shares the memory of `value`, an array of another library.

    The NumPy array keeps the shared memory alive.

    value: an object with `__dlpack__` and `__dlpack_device__`.

    Raises
    ------
    RelvmTypeError
        The memory is not accessible to the CPU, the dtype has no equivalent, or the library refuses to share the array.
    """
    try:
        device = value.__dlpack_device__()
        if int(device[0]) in _DEVICES:
            raise BufferError(f"it is on {_DEVICES[device[0]]}; copy it to the CPU")
        if hasattr(value, "is_neg") and value.is_neg():  # a lazy negation, which PyTorch 2.13 exports without the sign
            raise BufferError("its elements are not negated yet (lazy negation); pass tensor.resolve_neg()")
        capsule = _request_capsule(value)
        tensor = _capsule_tensor(capsule)
        number = _NUMBERS.get((tensor.dtype.code, tensor.dtype.bits))
        if tensor.dtype.code in _NUMPY_CODES and tensor.dtype.bits >= 8:
            return np.from_dlpack(_Exporter(capsule, device))
        if number is None:
            raise BufferError(
                f"its dtype, DLPack code {tensor.dtype.code} with {tensor.dtype.bits} bits, is not supported; "
                "convert it to another dtype"
            )
        tensor.dtype.code = _UNSIGNED
        return np.from_dlpack(_Exporter(capsule, device)).view(numpy_dtype(number))
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise RelvmTypeError(f"cannot convert {kind} to an array through DLPack: {error}") from None


def dlpack_of_array(array: np.ndarray, **options: Any) -> Any:
    """Return a DLPack capsule that shares the memory of an array, and keeps it alive.

    Parameters
    ----------
    array
        An array of a dtype of NumPy or ml_dtypes.
    options
        The options of the method `__dlpack__` in the array API standard: stream, max_version, dl_device and copy.

    Raises
    ------
    BufferError
        The dtype has less than 8 bits or is that of strings.  The error is also raised if the array is read-only,
        `copy` is not requested, and `max_version` is a version of DLPack before 1.0, which cannot mark an array as
        read-only.
    """
    if array.dtype == STRINGS:
        raise BufferError("DLPack does not support strings; use numpy()")
    if not array.flags.writeable and not options.get("copy") and (options.get("max_version") or (0, 0)) < _VERSION:
        raise BufferError(
            "the elements are read-only, because they are a constant or belong to a read-only argument, "
            "and the consumer only supports writable ones; pass np.array(tensor) instead, which is a copy"
        )
    if array.dtype.isbuiltin == 1:
        return array.__dlpack__(**options)
    row = DTYPES[dtype_number(array.dtype)]
    if row.bits < 8:
        raise BufferError(f"DLPack packs elements of {row.bits} bits; convert {array.dtype} to a dtype of 8 bits")
    capsule = array.view(f"u{array.itemsize}").__dlpack__(**options)
    _capsule_tensor(capsule).dtype.code = row.code
    return capsule


class _Exporter:
    """An object with the DLPack protocol, which exports an existing capsule to one consumer, such as np.from_dlpack."""

    def __init__(self, capsule: Any, device: tuple[int, int]) -> None:
        self._capsule = capsule
        self._device = device

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def _request_capsule(value: Any) -> Any:
    try:
        return value.__dlpack__(max_version=_VERSION)
    except TypeError:  # a library older than version 1 does not have this option
        return value.__dlpack__()


def _capsule_tensor(capsule: Any) -> Any:
    """Return the tensor in a DLPack capsule, as an `rvm_dltensor *`.

    Raise BufferError if `capsule` is not a DLPack capsule, or was already consumed.
    """
    for name, offset in _TENSOR_OFFSETS.items():
        if _is_valid(capsule, name):
            return ffi.cast("rvm_dltensor *", _pointer_of(capsule, name) + offset)
    raise BufferError("__dlpack__ did not return an unused DLPack capsule")
