"""Tests of tensors that are shared with other array libraries, through DLPack and `__array_interface__`.

tests/clients/array_libraries.py tests the same with PyTorch and JAX.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from frontend.onnx_models import onnx
from support.assembly_programs import machine_of

import relvm.onnxruntime as ort
from relvm.errors import RelvmTypeError
from relvm.numpy_dtypes import numpy_dtype
from relvm.runtime.dlpack import dlpack_of_array
from relvm.tables import DTYPES

SHARED = [row for row in DTYPES if row.bits >= 8 and row.name != "str"]


@pytest.fixture(scope="module")
def identity() -> Any:
    return machine_of(results_may_share=True)["identity"]


def address(array: Any) -> int:
    """Return the address of the first element of an array or Tensor."""
    array = np.asarray(array)
    return array.view(f"u{array.itemsize}").__array_interface__["data"][0]


class Exporter:
    """An array that supports DLPack and no other protocol."""

    def __init__(self, array: np.ndarray, device: int = 1) -> None:
        self.array = array
        self.device = device

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None) -> Any:
        return dlpack_of_array(self.array, max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 0)


class OldExporter(Exporter):
    """An array of a library that supports only versions of DLPack before 1.0."""

    def __dlpack__(self) -> Any:  # type: ignore[override]
        return dlpack_of_array(self.array)


@pytest.mark.parametrize("row", SHARED, ids=lambda row: row.name)
@pytest.mark.parametrize("exporter", [Exporter, OldExporter])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), ()], ids=str)
def test_arrays_come_in_and_go_out_without_a_copy(identity: Any, row: Any, exporter: Any, shape: tuple) -> None:
    array = np.arange(np.prod(shape)).astype(numpy_dtype(row.index)).reshape(shape)
    tensor = identity(exporter(array))
    assert (tensor.dtype, tensor.shape) == (array.dtype, shape)
    assert np.asarray(tensor).tobytes() == array.tobytes()
    assert tensor.__dlpack_device__() == (1, 0)
    back = identity(Exporter(np.asarray(tensor)))
    if array.size and row.name != "bool":  # whose bytes are converted to 0 and 1
        assert address(array) == address(tensor) == address(back)


@pytest.mark.parametrize("row", SHARED, ids=lambda row: row.name)
def test_capsules_state_the_dtype_of_the_table(identity: Any, row: Any) -> None:
    """The test reads the fields of the C struct in the capsule."""
    import ctypes

    tensor = identity(np.zeros((4, 2), numpy_dtype(row.index)))
    for version, name, offset in [((1, 0), b"dltensor_versioned", 32), (None, b"dltensor", 0)]:
        capsule = tensor.__dlpack__(max_version=version)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.argtypes, pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
        fields = ctypes.string_at(pointer(capsule, name) + offset, 24)
        assert int.from_bytes(fields[:8], "little") == address(tensor)
        assert (fields[20], fields[21], int.from_bytes(fields[22:24], "little")) == (row.code, row.bits, 1)


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3).T, np.arange(6)[::2], np.broadcast_to(np.float32(2), (2, 2))], ids=str
)
def test_arrays_that_are_not_contiguous_are_copied(identity: Any, array: np.ndarray) -> None:
    tensor = identity(Exporter(array))
    np.testing.assert_array_equal(tensor, array)
    assert not np.shares_memory(tensor.numpy(), array)


def test_shared_memory_outlives_its_producer(identity: Any) -> None:
    array = np.arange(1000.0).astype(numpy_dtype(12))
    gone = weakref.ref(array)
    tensor = identity(Exporter(array))
    capsule, unused = tensor.__dlpack__(max_version=(1, 0)), tensor.__dlpack__()
    del array, tensor
    gc.collect()
    assert gone() is not None
    del capsule, unused  # no consumer has imported these capsules
    gc.collect()
    assert gone() is None


def test_read_only_arrays_stay_read_only(identity: Any) -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    tensor = identity(array)
    assert not np.from_dlpack(tensor).flags.writeable
    assert np.from_dlpack(tensor, copy=True).flags.writeable
    with pytest.raises(BufferError, match=r"the elements are read-only.*pass np.array\(tensor\) instead"):
        tensor.__dlpack__()
    assert np.from_dlpack(identity(np.arange(3.0))).flags.writeable


@pytest.mark.parametrize("name", [row.name for row in DTYPES if row.bits < 8])
def test_elements_of_less_than_a_byte_are_refused(identity: Any, name: str) -> None:
    (row,) = (row for row in DTYPES if row.name == name)
    with pytest.raises(BufferError, match=f"DLPack packs elements of {row.bits} bits; convert {row.numpy} to"):
        identity(np.zeros(2, numpy_dtype(row.index))).__dlpack__()


def test_strings_are_refused(identity: Any) -> None:
    with pytest.raises(BufferError, match=r"DLPack does not support strings; use numpy\(\)"):
        identity(np.array(["a"], object)).__dlpack__()


class Consumed(Exporter):
    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.array.__dlpack__()
        np.from_dlpack(Given(capsule))
        return capsule


class Negated(Exporter):
    def is_neg(self) -> bool:
        return True


class Given(Exporter):
    def __dlpack__(self, **options: Any) -> Any:
        return self.array


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Exporter(np.zeros(2), device=2), "test_dlpack.Exporter .*: it is on a CUDA device; copy it to the CPU"),
        (Exporter(np.zeros(2), device=10), "it is on a ROCm device; copy it to the CPU"),
        (Negated(np.zeros(2)), r"its elements are not negated yet \(lazy negation\); pass tensor.resolve_neg\(\)"),
        (OldExporter(np.broadcast_to(np.zeros(1), 3)), "the elements are read-only"),
        (Consumed(np.zeros(2)), "__dlpack__ did not return an unused DLPack capsule"),
        (Given(None), "__dlpack__ did not return an unused DLPack capsule"),  # type: ignore[arg-type]
        (Given(np.zeros(2, np.complex64).__dlpack__()), "unsupported tensor dtype complex64"),  # type: ignore[arg-type]
    ],
    ids=["cuda", "rocm", "negated", "read-only", "consumed", "none", "complex"],
)
def test_what_cannot_be_shared_is_refused(identity: Any, value: Any, message: str) -> None:
    with pytest.raises(RelvmTypeError, match=f"identity: argument x: .*{message}"):
        identity(value)


def test_an_array_interface_is_shared(identity: Any) -> None:
    class Picture:
        def __init__(self, array: np.ndarray) -> None:
            self.__array_interface__ = array.__array_interface__
            self.array = array

    array = np.arange(6, dtype=np.uint8).reshape(2, 3)
    assert address(identity(Picture(array))) == address(array)


def test_sessions_take_arrays_of_other_libraries() -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (float[n] z) { z = Add(x, x) }'
    session = ort.InferenceSession(onnx.parser.parse_model(text).SerializeToString())
    (result,) = session.run(None, {"x": Exporter(np.ones(3, np.float32))})
    assert result.tolist() == [2, 2, 2]
    with pytest.raises(RelvmTypeError, match=r"input x: cannot convert .*: it is on a CUDA device"):
        session.run(None, {"x": Exporter(np.ones(3, np.float32), device=2)})
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match=r"Actual: \(tensor\(double\)\)"):
        session.run(None, {"x": Exporter(np.ones(3))})
