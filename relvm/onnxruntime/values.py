"""Values outside of a run: OrtValue and OrtDevice, and the conversion of inputs."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from relvm.errors import RelvmTypeError
from relvm.frontend.onnx_element_types import ELEMENT_TYPES
from relvm.frontend.onnx_info import OnnxValue
from relvm.numpy_dtypes import STRINGS, element_types, import_ml_dtypes, plain_array
from relvm.onnxruntime.errors import Fail, InvalidArgument, unsupported_error
from relvm.quoting import terminal
from relvm.runtime.dlpack import array_of_dlpack, dlpack_of_array

_ELEMENTS = tuple(each.text for each in ELEMENT_TYPES)
_NUMPY_NAMES = {each.text: each.numpy for each in ELEMENT_TYPES if each.numpy}
_ELEMENT_OF_DTYPE = {numpy: element for element, numpy in _NUMPY_NAMES.items()}


@cache
def numpy_dtype(element: str) -> np.dtype:
    """Return the NumPy dtype of an element type, such as "float".

    Raise InvalidArgument if neither NumPy nor ml_dtypes has such a dtype.
    """
    name = _NUMPY_NAMES.get(element, element)
    try:
        return np.dtype(name)
    except TypeError:
        ml_dtypes = import_ml_dtypes(f"tensors of element type {terminal(element)}")
    if not hasattr(ml_dtypes, name):
        raise InvalidArgument.of(f"element type {terminal(element)} has no dtype in NumPy or ml_dtypes")
    return np.dtype(getattr(ml_dtypes, name))


@cache
def element_type(dtype: np.dtype) -> str:
    """Return the ONNX element type of a dtype, such as "float" for float32."""
    name = "object" if dtype.kind in "UTO" else dtype.name
    element = _ELEMENT_OF_DTYPE.get(name)
    if element is None:
        raise RuntimeError(f"Unsupported array dtype {dtype}; expected one that ONNX has, such as float32")
    return element


def _dtype_of(element_type: Any) -> np.dtype:
    """Return the dtype of `element_type`, which is a NumPy type or a number of TensorProto.DataType."""
    if isinstance(element_type, int) and not isinstance(element_type, bool):
        if not 0 < element_type < len(_ELEMENTS):
            raise InvalidArgument.of(
                f"unknown element type {element_type}; expected a value of onnx.TensorProto.DataType"
            )
        return numpy_dtype(_ELEMENTS[element_type])
    dtype = np.dtype(element_type)
    return STRINGS if dtype.kind in "UT" else dtype


_DEVICE_TYPES = {"cpu": 0, "cuda": 1, "dml": 1, "gpu": 1, "webgpu": 1, "cann": 3, "npu": 3}
_VENDORS = {"cuda": 0x10DE, "dml": 0x1414, "cann": 0x19E5}


class CDevice:
    """A device, as onnxruntime.capi.onnxruntime_pybind11_state.OrtDevice describes it.

    Parameters
    ----------
    device_type
        The number of the kind of device, such as `CDevice.cpu()`.
    mem_type
        The number of the kind of memory.
    *vendor_and_id
        The number of the vendor, which can be omitted, and the number of the device.
    """

    def __init__(self, device_type: int, mem_type: int, *vendor_and_id: int) -> None:
        vendor, device = (0, *vendor_and_id)[-2:]
        self._numbers = int(device_type), int(mem_type), int(device), int(vendor)

    def device_type(self) -> int:
        """Return the number of the kind of device."""
        return self._numbers[0]

    def mem_type(self) -> int:
        """Return the number of the kind of memory."""
        return self._numbers[1]

    def device_id(self) -> int:
        """Return the number of the device."""
        return self._numbers[2]

    def vendor_id(self) -> int:
        """Return the number of the vendor."""
        return self._numbers[3]

    # The numbers of the kinds of devices and memory.
    cpu = staticmethod(lambda: 0)
    cuda = gpu = webgpu = staticmethod(lambda: 1)
    fpga = staticmethod(lambda: 2)
    cann = npu = staticmethod(lambda: 3)
    dml = staticmethod(lambda: 4)
    default_memory = staticmethod(lambda: 0)


class OrtDevice:
    """A device.  relvm has only the CPU, but a program can describe others.

    Parameters
    ----------
    c_ort_device
        The device as described by onnxruntime.capi.onnxruntime_pybind11_state.OrtDevice.
    """

    def __init__(self, c_ort_device: CDevice) -> None:
        if not isinstance(c_ort_device, CDevice):
            raise ValueError(
                "`Provided object` needs to be of type `onnxruntime.capi.onnxruntime_pybind11_state.OrtDevice`"
            )
        self._ort_device = c_ort_device

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """Return a device.

        ort_device_name: the kind of device: "cpu", "cuda", "dml", "gpu", "webgpu", "cann" or "npu".
        device_id: the number of the device.
        vendor_id: the number of the vendor, or -1 to derive it from the name.
        """
        if ort_device_name not in _DEVICE_TYPES:
            raise Exception(f"Unsupported device type: {terminal(str(ort_device_name))}")
        vendor = _VENDORS.get(ort_device_name, 0) if vendor_id < 0 else vendor_id
        return OrtDevice(CDevice(_DEVICE_TYPES[ort_device_name], CDevice.default_memory(), vendor, device_id))

    def _get_c_device(self) -> CDevice:
        return self._ort_device

    def device_type(self) -> int:
        """Return the number of the kind of device: 0 for the CPU."""
        return self._ort_device.device_type()

    def device_id(self) -> int:
        """Return the number of the device."""
        return self._ort_device.device_id()

    def device_vendor_id(self) -> int:
        """Return the number of the vendor: 0 for the CPU."""
        return self._ort_device.vendor_id()

    def device_mem_type(self) -> int:
        """Return the number of the kind of memory: 0 for the default memory."""
        return self._ort_device.mem_type()


def is_cpu(device: Any) -> bool:
    """Return whether a device is the CPU.

    device: the name of a kind of device, an OrtDevice or a CDevice.

    Raise Exception if there is no such kind of device.
    """
    device = OrtDevice.make(device, 0) if isinstance(device, str) else device
    return device.device_type() == CDevice.cpu()


def expect_cpu(device: Any) -> None:
    """Raise RuntimeError if memory of a device other than the CPU is requested.   device: as for `is_cpu`."""
    if not is_cpu(device):
        raise RuntimeError(
            f"Can't allocate memory on the device {terminal(str(device))!r} using this package of OnnxRuntime: relvm"
            " runs on the CPU. Please pass 'cpu'."
        )


class OrtValue:
    """A tensor, a sequence, a map, or an empty optional value.

    A tensor shares the memory of the array from which it is created.

    Parameters
    ----------
    value
        An array, a list, a dict, or None.
    type
        The type, such as "tensor(float)", or None to derive it.
    """

    def __init__(self, value: Any, type: str | None = None) -> None:
        self._value = unwrap(value)
        self._type = type

    @property
    def _ortvalue(self) -> CValue:
        return self._get_c_value()

    def _get_c_value(self) -> CValue:
        return CValue(self._value, self._type)

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: np.ndarray, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Return a value that shares the memory of an array, if the array is dense and row-major.

        numpy_obj: the array.
        device_type: "cpu".
        device_id, vendor_id: ignored.
        """
        expect_cpu(device_type)
        array = np.asarray(numpy_obj)
        element_type(array.dtype)  # raises an error for an unsupported dtype
        return cls(plain_array(array))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, /, onnx_element_type: int) -> OrtValue:
        """Return a value that shares the memory of an array, with another element type of the same size.

        data: the array.
        onnx_element_type: a number of onnx.TensorProto.DataType.
        """
        dtype, array = _dtype_of(onnx_element_type), plain_array(np.asarray(data))
        if dtype.itemsize != array.itemsize or STRINGS in (dtype, array.dtype):
            raise InvalidArgument.of(f"elements of {array.dtype} cannot be reinterpreted as {dtype}")
        return cls(array.view(dtype))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: Any = None,
    ) -> OrtValue:
        """Return a new tensor.  Its elements are arbitrary.

        shape: the sizes.
        element_type: a NumPy type, or a number of onnx.TensorProto.DataType.
        device_type: "cpu".
        device_id, vendor_id, memory_info: ignored.
        """
        expect_cpu(device_type)
        dtype = _dtype_of(element_type)
        return cls(np.full(tuple(shape), "", STRINGS) if dtype == STRINGS else np.empty(tuple(shape), dtype))

    @classmethod
    def from_dlpack(cls, data: Any, /, is_bool_tensor: bool = False) -> OrtValue:
        """Return a tensor that shares the memory of another library's tensor.

        data: an object with `__dlpack__`.
        is_bool_tensor: whether elements of type uint8 are booleans.
        """
        array = array_of_dlpack(data)
        return cls(array.view(np.bool_) if is_bool_tensor and array.dtype == np.uint8 else array)

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: Any) -> OrtValue:
        """Raise relvm.onnxruntime.errors.NotImplemented.

        sparse_tensor: a SparseTensor.
        """
        raise unsupported_error("OrtValue.ort_value_from_sparse_tensor", "pass a dense array")

    def as_sparse_tensor(self) -> Any:
        """Raise relvm.onnxruntime.errors.NotImplemented."""
        raise unsupported_error("OrtValue.as_sparse_tensor", "use numpy()")

    def numpy(self) -> Any:
        """Return the array of a tensor.  Raise RuntimeError for other values."""
        if not isinstance(self._value, np.ndarray):
            raise RuntimeError("Only OrtValues that are Tensors/SparseTensors are currently supported")
        return self._value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        return dlpack_of_array(self.numpy(), **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.numpy().__dlpack_device__()

    def update_inplace(self, np_arr: np.ndarray) -> None:
        """Copy the elements of an array of the same dtype and shape into the tensor.

        np_arr: the array.
        """
        array = self.numpy()
        if array.dtype != np_arr.dtype or array.shape != np_arr.shape:
            raise InvalidArgument.of(
                f"update_inplace: expected {array.dtype} of shape {array.shape},"
                f" got {np_arr.dtype} of shape {np_arr.shape}"
            )
        np.copyto(array, np_arr)

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self.numpy().ctypes.data

    def device_name(self) -> str:
        """Return "cpu"."""
        return "cpu"

    def shape(self) -> list[int]:
        """Return the sizes of a tensor."""
        return list(self.numpy().shape)

    def data_type(self) -> str:
        """Return the type, such as "tensor(float)"."""
        return self._type or type_text(self._value)

    def element_type(self) -> int:
        """Return the number of a tensor's element type in onnx.TensorProto.DataType."""
        return _ELEMENTS.index(element_type(self.numpy().dtype))

    def tensor_size_in_bytes(self) -> int:
        """Return the size of the elements in bytes."""
        return self.numpy().nbytes

    def has_value(self) -> bool:
        """Return False for an empty optional value, otherwise True."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """Return whether the value is a tensor."""
        return isinstance(self._value, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        """Return False: relvm has no sparse tensors."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Return whether the value is a sequence of tensors."""
        return isinstance(self._value, list)


class CValue(OrtValue):
    """An OrtValue as onnxruntime.capi.onnxruntime_pybind11_state.OrtValue, to which the attribute `_ortvalue` of
    onnxruntime's class refers."""

    def device_name(self) -> str:
        """Return "Cpu"."""
        return "Cpu"

    def to_dlpack(self) -> Any:
        """Return a DLPack capsule that shares the memory of the tensor."""
        return self.__dlpack__()


def type_text(value: Any) -> str:
    """Return the type of a value as ONNX Runtime writes it, such as "tensor(float)"."""
    match value:
        case np.ndarray():
            return f"tensor({element_type(value.dtype)})"
        case [first, *_]:
            return f"seq({type_text(first)})"
        case []:
            return "seq(tensor(float))"
        case dict():
            key, item = next(iter(value.items()), (0, 0.0))
            names = {str: "string", int: "int64", float: "float"}
            return f"map({names.get(type(key), 'int64')},tensor({names.get(type(item), 'float')}))"
    return ""


def unwrap(value: Any) -> Any:
    """Return the value that an OrtValue contains.  Return any other value unchanged."""
    return value._value if isinstance(value, OrtValue) else value


# ---- inputs ----

Converter = Callable[[Any], Any]


def make_converter(info: OnnxValue) -> Converter:
    """Return a function that checks a value for the input `info`, and converts it to a value that virtual machines
    accept."""
    kind, _, inner = info.type.partition("(")
    inner = inner[:-1]
    if kind == "tensor":
        return _tensor_converter(info, inner)
    if kind == "map":
        return lambda value: _keys_and_values(info, unwrap(value), inner)
    if kind in ("seq", "optional"):
        item = make_converter(OnnxValue(info.name, inner))
        if kind == "seq":
            return lambda value: [item(each) for each in _items(info, unwrap(value))]
        return lambda value: None if unwrap(value) is None else item(unwrap(value))
    return unwrap


def _tensor_converter(info: OnnxValue, element: str) -> Converter:
    expected, shape, wanted = numpy_dtype(element), info.shape, f"tensor({element})"

    def convert(value: Any) -> Any:
        array = unwrap(value)
        if array is None:
            raise Fail.of(f"input {terminal(info.name)}: expected {wanted}, got None")
        if isinstance(array, list):
            array = _array_of_list(info, array, expected)
        elif not isinstance(array, np.ndarray):
            if hasattr(array, "__dlpack__"):
                return convert(_array_of_dlpack(info, array))
            raise RuntimeError(f"Unable to handle object of type {terminal(str(type(value)))}")
        if array.dtype is not expected:
            if array.dtype.kind == "S" and element == "string":
                array = np.char.decode(array, "utf-8")
            if (got := element_type(array.dtype)) != element:
                raise InvalidArgument.of(f"Unexpected input data type. Actual: (tensor({got})) , expected: ({wanted})")
            array = plain_array(array)
        elif element == "string":
            array = _to_strings(array)
        if shape is not None:
            if not shape and array.size == 1:  # an array of one element is accepted as a scalar
                array = array.reshape(())
            _expect_shape(info, array.shape, shape)
        return array

    return convert


def _array_of_dlpack(info: OnnxValue, value: Any) -> np.ndarray:
    try:
        return array_of_dlpack(value)
    except RelvmTypeError as error:
        raise RelvmTypeError(f"input {terminal(info.name)}: {error}") from None


def _to_strings(array: np.ndarray) -> np.ndarray:
    """Convert each object in an array of objects to a string."""
    if all(issubclass(type_, str) for type_ in element_types(array)):
        return array
    return np.array([str(each) for each in array.flat], STRINGS).reshape(array.shape)


def _array_of_list(info: OnnxValue, value: list, expected: np.dtype) -> np.ndarray:
    try:
        return np.array(value, expected)
    except (TypeError, ValueError) as error:
        raise RuntimeError(
            f"input {terminal(info.name)}: the list does not convert to {expected}: {terminal(str(error))}"
        ) from None


def _expect_shape(info: OnnxValue, got: tuple[int, ...], shape: tuple[int | str | None, ...]) -> None:
    if len(got) != len(shape):
        raise InvalidArgument.of(
            f"Invalid rank for input: {terminal(info.name)} Got: {len(got)} Expected: {len(shape)}"
            " Please fix either the inputs/outputs or the model."
        )
    wrong = [at for at, size in enumerate(shape) if isinstance(size, int) and size != got[at]]
    if wrong:
        lines = "".join(f"\n index: {at} Got: {got[at]} Expected: {shape[at]}" for at in wrong)
        raise InvalidArgument.of(
            f"Got invalid dimensions for input: {terminal(info.name)} for the following indices{lines}"
            "\n Please fix either the inputs/outputs or the model."
        )


def _items(info: OnnxValue, value: Any) -> list:
    if not isinstance(value, list):
        raise RuntimeError(
            f"Iterable of {terminal(str(type(value)))} should be given as array for input '{terminal(info.name)}'."
        )
    return value


def _keys_and_values(info: OnnxValue, value: Any, inner: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys and the values of the dict `value` as arrays.

    inner: the types of keys and values, such as "int64,tensor(float)".
    """
    if not isinstance(value, Mapping):
        raise RuntimeError(f"Unable to handle object of type {terminal(str(type(value)))}")
    key, _, item = inner.partition(",")
    item = item.partition("(")[2][:-1] or item
    try:
        return np.array(list(value), numpy_dtype(key)), np.array(list(value.values()), numpy_dtype(item))
    except (TypeError, ValueError) as error:
        expected = terminal(info.type)
        message = f"input {terminal(info.name)}: the dict does not convert to {expected}: {terminal(str(error))}"
        raise InvalidArgument.of(message) from None


def array_at(address: int, dtype: Any, shape: Sequence[int]) -> np.ndarray:
    """Return the array at `address` in memory, without a copy.

    dtype: a NumPy type, or a number of onnx.TensorProto.DataType.
    shape: the sizes of the array.
    """
    numpy_type = _dtype_of(dtype)
    if numpy_type == STRINGS:
        raise RelvmTypeError("strings have no address; bind an OrtValue")
    size_bytes = math.prod(shape) * numpy_type.itemsize
    content = (ctypes.c_char * size_bytes).from_address(address) if size_bytes else b""
    return np.frombuffer(memoryview(content), numpy_type).reshape(tuple(shape))
