"""VirtualMachine.set_array_type: arrays are passed by the C exchange API of DLPack.  ctypes provides the API here."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relvm import vm
from relvm.errors import RelvmTypeError
from relvm.frontend.text import parse_module

TEXT = """
def double(x: f32[n, m]) = add(x, x)
def same(x: f32[n, m]) -> f32[n, m] { return x }
def several(x: f32[n, m]) {
  y = add(x, x)
  return (y, y, const(i64[2], [1, 2]), 3, x, transpose(y, perm=(1, 0)))
}
def bools(x: f32[n, m]) = greater(x, x)
def nothing(x: f32[n, m]) -> () { return () }
def text(x: f32[n, m]) = const(str[1], ["a"])
def small(x: f32[n, m]) = cast(x, to="i4")
"""
CPU, CUDA, FLOAT, BFLOAT, COMPLEX = 1, 2, 2, 4, 5
DTYPES = {(2, 32): "float32", (0, 64): "int64", (6, 8): "bool"}


class Managed(ctypes.Structure):
    pass


RELEASE = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [
    *(("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("release", RELEASE)),
    *(("flags", ctypes.c_uint64), ("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_id", ctypes.c_int32)),
    *(("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)),
    *(("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64))),
    ("offset", ctypes.c_uint64),
]
FROM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Managed)))
TO = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.c_void_p))


class Api(ctypes.Structure):
    _fields_ = [
        *(("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p)),
        *(("allocate", ctypes.c_void_p), ("from_object", FROM), ("to_object", TO)),
        *(("borrow_object", ctypes.c_void_p), ("current_stream", ctypes.c_void_p)),
    ]


class Array:
    """An array of another library.

    values: the elements.
    device, code, bits, flags: what the array says of itself.
    released: the tensors that the machine has released.
    """

    released: list[int] = []  # noqa: RUF012
    alive: dict[int, Any] = {}  # noqa: RUF012

    def __init__(
        self, values: np.ndarray, device: int = CPU, code: int = FLOAT, bits: int = 32, flags: int = 0
    ) -> None:
        self.values, self.device, self.code, self.bits, self.flags = values, device, code, bits, flags


@RELEASE
def release(managed: Any) -> None:
    address = ctypes.addressof(managed.contents)
    Array.released.append(address)
    del Array.alive[address]


@FROM
def from_object(array: Array, result: Any) -> int:
    values, rank = array.values, array.values.ndim
    shape = (ctypes.c_int64 * max(rank, 1))(*values.shape)
    strides = (ctypes.c_int64 * max(rank, 1))(*(each // values.itemsize for each in values.strides))
    managed = Managed(1, 2, None, release, array.flags, values.ctypes.data, array.device, 0, rank)
    managed.code, managed.bits, managed.lanes = array.code, array.bits, 1
    managed.shape, managed.strides = shape, strides
    Array.alive[ctypes.addressof(managed)] = (managed, shape, strides, array)
    result[0] = ctypes.pointer(managed)
    return 0


@TO
def to_object(managed: Any, result: Any) -> int:
    tensor = managed.contents
    shape = tensor.shape[: tensor.rank]
    assert tensor.device == CPU and tensor.lanes == 1 and tensor.offset == 0
    assert tensor.strides[: tensor.rank] == [int(np.prod(shape[axis + 1 :])) for axis in range(tensor.rank)]
    dtype = np.dtype(DTYPES[tensor.code, tensor.bits])
    memory = (ctypes.c_char * int(np.prod(shape) * dtype.itemsize)).from_address(tensor.data)
    array = Array(np.frombuffer(memory, dtype).reshape(shape))
    array.close = lambda: tensor.release(managed)  # type: ignore[attr-defined]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))
    result[0] = id(array)
    return 0


capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype, capsule_new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
OLD = Api(0, 9, None, None, from_object, to_object, None, None)
API = Api(1, 3, None, None, from_object, to_object, None, None)
NEW = Api(2, 0, ctypes.addressof(API), None, FROM(), TO(), None, None)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(params=[API, NEW], ids=["version 1", "version 2 with version 1"])
def machine(request: Any) -> vm.VirtualMachine:
    Array.__dlpack_c_exchange_api__ = capsule_new(  # type: ignore[attr-defined]
        ctypes.addressof(request.param), b"dlpack_exchange_api", None
    )
    made = vm.VirtualMachine(vm.build(parse_module(TEXT), target="bytecode"))
    made.set_array_type(Array)
    return made


def test_arguments_and_results_are_arrays_that_share_memory(machine: vm.VirtualMachine) -> None:
    Array.released.clear()
    result = machine["double"](Array(X))
    assert isinstance(result, Array) and len(Array.released) == 1 and not Array.alive
    np.testing.assert_array_equal(result.values, X * 2)
    result.values[:] = 7  # the memory is writable, and not used by a later run
    np.testing.assert_array_equal(machine["double"](X).values, X * 2)
    np.testing.assert_array_equal(result.values, np.full((2, 3), 7))
    result.close()


def test_results_that_share_memory_are_copied(machine: vm.VirtualMachine) -> None:
    x = Array(X.copy())
    first, second, constant, number, argument, turned = machine["several"](x)
    assert number == 3 and not Array.alive
    addresses = {each.values.ctypes.data for each in (first, second, constant, argument, turned, x)}
    assert len(addresses) == 6
    constant.values[:] = 5
    np.testing.assert_array_equal(machine["several"](x)[2].values, [1, 2])
    np.testing.assert_array_equal(turned.values, (X * 2).T)
    assert machine["same"](x).values.ctypes.data != x.values.ctypes.data
    assert machine["bools"](x).values.dtype == bool
    assert machine["nothing"](x) == ()


def test_results_outlive_the_machine(machine: vm.VirtualMachine) -> None:
    result = machine["double"](X)
    del machine
    gc.collect()
    np.testing.assert_array_equal(result.values, X * 2)
    result.close()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (lambda: Array(X, device=CUDA), "got Array"),
        (lambda: Array(X, code=COMPLEX, bits=64), "got Array"),
        (lambda: Array(X.T), "got Array"),
        (lambda: Array(X, code=BFLOAT, bits=16), "dtype f32, got"),
        (lambda: Array(X, code=FLOAT, bits=64), "dtype f32, got"),
    ],
)
def test_arrays_that_are_not_accepted(machine: vm.VirtualMachine, array: Callable[[], Array], message: str) -> None:
    with pytest.raises(RelvmTypeError, match=message):
        machine["double"](array())
    assert not Array.alive


def test_arrays_of_any_strides_without_elements(machine: vm.VirtualMachine) -> None:
    for empty in (np.zeros((0, 3), np.float32), np.zeros((3, 0), np.float32).T, np.zeros((1, 3), np.float32)[:, ::1]):
        assert machine["double"](Array(empty)).values.shape == empty.shape


def test_results_that_cannot_be_exchanged(machine: vm.VirtualMachine) -> None:
    for name in ("text", "small"):
        with pytest.raises(TypeError, match="cannot be exchanged"):
            machine[name](X)
    machine.set_array_type(None)
    assert machine["text"](X).tolist() == ["a"]
    assert isinstance(machine["double"](X), vm.Tensor)


def test_a_type_without_the_api() -> None:
    made = vm.VirtualMachine(vm.build(parse_module(TEXT), target="bytecode"))
    with pytest.raises(RelvmTypeError, match=r"set_array_type: .*int.* has no C exchange API of DLPack version 1"):
        made.set_array_type(int)
    Array.__dlpack_c_exchange_api__ = capsule_new(  # type: ignore[attr-defined]
        ctypes.addressof(OLD), b"dlpack_exchange_api", None
    )
    with pytest.raises(RelvmTypeError, match="no C exchange API of DLPack version 1"):
        made.set_array_type(Array)
