"""The executor of hosted exports: set inputs, run, get outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relvm._native import ffi
from relvm.aot.hosted.library import AotLibrary
from relvm.aot.metadata_model import TensorInfo, range_text
from relvm.aot.project.self_test import expect_number
from relvm.bytecode.program import Program
from relvm.errors import (
    RelvmArgumentError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
)
from relvm.frontend.text.parser import parse_type
from relvm.ir.dtypes import dtype_of
from relvm.ir.symbolic import AnyDim, as_var, evaluate_with
from relvm.ir.types import TensorType
from relvm.numpy_dtypes import canonical_array
from relvm.runtime.executable import Executable
from relvm.runtime.executor import Executor
from relvm.runtime.status import STATUS_NUMBERS, failure
from relvm.runtime.virtual_machine import VirtualMachine
from relvm.tables import DTYPES, TAGS, numbers

_CALLBACK_ERROR = STATUS_NUMBERS["CALLBACK_ERROR"]
_CPU = 1  # kDLCPU
_ROWS = numbers(DTYPES)
_TENSOR = numbers(TAGS)["TENSOR"]


class AotExecutor(Executor):
    """An executor of a model that was compiled ahead of time.  Each executor has its own memory for runs.

    Executors of the same factory can run in different threads at the same time, because they share only code and
    constants.

    Parameters
    ----------
    factory
        The result of `compile_library` or `load_module`.
    device
        The device of the executor: "cpu", "cpu:0", or the pair (1, 0) of DLPack.  The only device is the first CPU.

    Raises
    ------
    RelvmTypeError
        `factory` is not a factory, or `device` is not a device.
    RelvmUnsupportedError
        `device` is another device than the first CPU, or several devices.
    """

    def __init__(self, factory: AotLibrary, device: str | tuple[int, int] = "cpu") -> None:
        if not isinstance(factory, AotLibrary):
            raise RelvmTypeError(f"expected an ExecutorFactory, as load_module returns, got {factory!r}")
        _expect_cpu(device)
        metadata = factory.metadata
        super().__init__([info.name for info in metadata.inputs])
        self._factory = factory  # keeps the library alive
        self._inputs, self._outputs = metadata.inputs, metadata.outputs
        # A machine without functions, with which Python functions of the host convert their arguments and results.
        host = VirtualMachine(Executable.from_program(Program(()))) if factory.calls_host_functions else None
        self._host = host._runner if host else None
        self._bound: dict[int, np.ndarray] = {}  # index of an output -> array of the caller to which runs write
        self._bounds = {size.name: size for size in metadata.sizes}
        self._pools = [_aligned(int(pool.shape[0]), metadata.alignment) for pool in metadata.pools]

    @property
    def _output_names(self) -> Sequence[str]:
        return [info.name for info in self._outputs]

    def get_input_info(self) -> dict[str, TensorInfo]:
        """Return the shape and dtype of each input, by name.  A dimension that depends on run-time sizes is a str."""
        return {info.name: info for info in self._inputs}

    def get_output_info(self) -> dict[str, TensorInfo]:
        """Return the shape and dtype of each output, by name.  A dimension that depends on run-time sizes is a str."""
        return {info.name: info for info in self._outputs}

    def set_input_zero_copy(self, key: int | str, array: np.ndarray) -> None:
        """Bind an input to an array of the caller.  Runs read the array directly, without copying it.

        Parameters
        ----------
        key
            Index or name of the input.
        array
            A dense, row-major and aligned array of the dtype and shape of the input.  It must not change during a run.
            If runs update the input (`TensorInfo.is_updated`), they change the array.  It must then be writable, and
            must not overlap other inputs.

        Raises
        ------
        RelvmTypeError
            `array` is not an array, has another layout, or is read-only although runs update the input.
        RelvmNameError, RelvmIndexError, RelvmTypeError
            The input does not exist, or the key is neither an int nor a str.
        RelvmTypeError, RelvmShapeError
            The array has another dtype or shape, or its bytes are not elements of the dtype, such as a bool of 2.
        """
        index = self._find_input(key)
        info, what = self._inputs[index], f"input {self._inputs[index].name}"
        array = _expect_usable(what, info, array)
        if canonical_array(array) is not array:
            raise RelvmTypeError(f"{what}: some bytes are not elements of dtype {info.dtype}; use set_input instead")
        if info.is_updated and not array.flags.writeable:
            raise RelvmTypeError(
                f"{what} is updated: expected a writable array, got a read-only one; use set_input instead"
            )
        self._input_values[index] = array

    def set_output_zero_copy(self, key: int | str, array: np.ndarray | None) -> None:
        """Bind an output to an array of the caller.  Runs write the output directly to the array.

        Parameters
        ----------
        key
            Index or name of the output.
        array
            A writable, dense, row-major and aligned array of the dtype and shape of the output.  It must not overlap
            inputs or other outputs.  If it is None, an existing binding is removed, and each run allocates a new array.

        Raises
        ------
        RelvmTypeError
            `array` is not an array, is read-only, or has another layout.
        RelvmNameError, RelvmIndexError, RelvmTypeError
            The output does not exist, or the key is neither an int nor a str.
        RelvmTypeError, RelvmShapeError
            The array has another dtype or shape.
        """
        index = self._find_output(key)
        self._bound.pop(index, None)
        if array is None:
            return
        what = f"output {self._outputs[index].name}"
        array = _expect_usable(what, self._outputs[index], array)
        if not array.flags.writeable:
            raise RelvmTypeError(f"{what}: expected a writable array, got a read-only one")
        self._bound[index] = array

    def _convert_input(self, index: int, value: Any) -> np.ndarray:
        return _checked_copy(self._inputs[index], value)

    def _run(self) -> list[np.ndarray]:
        inputs: list[np.ndarray] = self._input_values
        sizes = self._sizes(inputs)
        outputs = [self._output(index, _shape(info, sizes)) for index, info in enumerate(self._outputs)]
        for index, array in self._bound.items():
            others = [*inputs, *outputs[:index], *outputs[index + 1 :]]
            if any(np.may_share_memory(array, other) for other in others):
                raise RelvmArgumentError(
                    f"output {self._outputs[index].name}: the bound array shares memory with an input or another"
                    " output; use a separate array"
                )
        for index, info in enumerate(self._inputs):
            others = [*inputs[:index], *inputs[index + 1 :]]
            if info.is_updated and any(np.may_share_memory(inputs[index], other) for other in others):
                reason = "its array shares memory with another input; use a separate array"
                raise RelvmArgumentError(f"input {info.name} is updated, but {reason}")
        tensors = [*inputs, *outputs, *self._pools]
        views, shapes = ffi.new("rvm_tensor[]", max(1, len(tensors))), []
        arguments, result = ffi.new("rvm_value[]", max(1, len(tensors))), ffi.new("rvm_value *")
        for number, tensor in enumerate(tensors):
            shapes.append(_view(views[number], tensor))
            arguments[number].tag = _TENSOR
            getattr(arguments[number], "as").tensor = views + number
        host = self._host
        outer = host.begin("run") if host else None
        try:
            status = self._factory.run(ffi.NULL, arguments, len(tensors), result)
            if host and status == _CALLBACK_ERROR:
                raise host.run_error(status, result)
        finally:
            if host:
                host.end(outer)
        if status:
            raise failure(status, result, self._factory.metadata.mod_name)
        return outputs

    def _output(self, index: int, shape: tuple[int, ...]) -> np.ndarray:
        bound, info = self._bound.get(index), self._outputs[index]
        if bound is None:
            return np.empty(shape, dtype_of(info.dtype).numpy)
        if bound.shape != shape:
            raise RelvmShapeError(f"output {info.name}: bound to shape {bound.shape}, but this run returns {shape}")
        return bound

    def _sizes(self, inputs: list[np.ndarray]) -> dict[str, int]:
        """Return the run-time sizes that the shapes and scalars in `inputs` determine, by name.

        Raise RelvmShapeError if inputs contradict each other, or if a size is out of bounds.
        """
        sizes: dict[str, int] = {}
        for info, array in zip(self._inputs, inputs, strict=True):
            if not info.shape and info.name in self._bounds:
                sizes.setdefault(info.name, int(array))
            for dim, actual in zip(_dims(info), array.shape, strict=True):
                if var := as_var(dim):
                    sizes.setdefault(var.name, actual)
        for info, array in zip(self._inputs, inputs, strict=True):
            if (expected := _shape(info, sizes)) != array.shape:
                raise RelvmShapeError(f"input {info.name}: expected shape {expected}, got {array.shape}")
        for name, size in sizes.items():
            bounds = self._bounds[name]
            if size < bounds.least or (bounds.most is not None and size > bounds.most):
                allowed = range_text(bounds.least, bounds.most)
                raise RelvmShapeError(f"size {name}: expected {allowed}, got {size}")
        return sizes


def _expect_cpu(device: Any) -> None:
    """Check that `device` is the first CPU.  Raise RelvmTypeError or RelvmUnsupportedError otherwise."""
    devices = list(device) if isinstance(device, list) else [device]
    for each in devices:
        is_pair = isinstance(each, tuple) and len(each) == 2 and all(type(part) is int for part in each)
        if not isinstance(each, str) and not is_pair:
            raise RelvmTypeError(f'device: expected "cpu" or a pair such as (1, 0), got {each!r:.80}')
    if len(devices) != 1:
        raise RelvmUnsupportedError(f"device: expected exactly one device, got {len(devices)}")
    if devices[0] not in ("cpu", "cpu:0", (_CPU, 0)):
        raise RelvmUnsupportedError(f'device: expected "cpu", the only device, got {devices[0]!r}')


def _checked_copy(info: TensorInfo, value: Any) -> np.ndarray:
    """Return a copy of `value` as an array, after checking its dtype and shape.

    info: the input, which defines the expected dtype and shape.
    """
    dtype = dtype_of(info.dtype).numpy
    if not info.shape and isinstance(value, bool | int | float):
        return np.array(expect_number(f"input {info.name}", dtype_of(info.dtype), value), dtype)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise RelvmTypeError(f"input {info.name}: expected an array: {error}") from None
    _expect_type(f"input {info.name}", info, array)
    return canonical_array(np.array(array, order="C", copy=True))


def _expect_usable(what: str, info: TensorInfo, array: Any) -> np.ndarray:
    """Return `array` after checking its dtype, its shape, and that C code can access it without a copy.

    what: the name of the array in messages.   info: the input or output to which the array is bound.
    """
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous or not array.flags.aligned:
        raise RelvmTypeError(f"{what}: expected a dense, row-major, aligned array, got {array!r:.80}")
    _expect_type(what, info, array)
    return array


def _expect_type(what: str, info: TensorInfo, array: np.ndarray) -> None:
    """Check that an array has the dtype and shape of the input or output `info`.

    Raise RelvmTypeError or RelvmShapeError otherwise.   what: the name of the array in messages.
    """
    if array.dtype != dtype_of(info.dtype).numpy:
        raise RelvmTypeError(f"{what}: expected dtype {info.dtype}, got {array.dtype}")
    fits = len(array.shape) == len(info.shape) and all(
        isinstance(expected, str) or expected == actual
        for expected, actual in zip(info.shape, array.shape, strict=True)
    )
    if not fits:
        expected = ", ".join(map(str, info.shape))
        raise RelvmShapeError(f"{what}: expected shape ({expected}), got {array.shape}")


def _dims(info: TensorInfo) -> tuple[AnyDim, ...]:
    type_ = parse_type(f"{info.dtype}[{', '.join(map(str, info.shape))}]")
    assert isinstance(type_, TensorType)
    return type_.known_shape


def _shape(info: TensorInfo, sizes: dict[str, int]) -> tuple[int, ...]:
    """Return the shape of the input or output `info`.   sizes: the values of the run-time sizes, by name.

    Raise RelvmShapeError if a dimension is negative, or if its expression divides by 0.
    """
    found = tuple(evaluate_with(dim, lambda var: sizes[var.name]) for dim in _dims(info))
    known = tuple(dim for dim in found if isinstance(dim, int) and dim >= 0)
    if len(known) != len(found):
        raise RelvmShapeError(f"{info.name}: invalid shape ({', '.join(map(str, info.shape))}) for sizes {sizes}")
    return known


def _aligned(size_bytes: int, alignment: int) -> np.ndarray:
    block = np.empty(size_bytes + alignment, np.uint8)
    skipped = -block.ctypes.data % alignment
    return block[skipped : skipped + size_bytes]


def _view(view: Any, array: np.ndarray) -> Any:
    """Make the C tensor `view` refer to the elements of `array`.

    Return the C array of the dimensions.  The caller must keep this C array alive as long as `view` is used.
    """
    row = _ROWS[dtype_of(array.dtype).name]
    shape = ffi.new("int64_t[]", array.shape or (0,))
    view.base.tag, view.base.references = _TENSOR, -1
    view.dtype = row
    dl = view.dl
    dl.data = ffi.cast("void *", array.ctypes.data)
    dl.device_type, dl.ndim, dl.shape = _CPU, array.ndim, shape
    dl.dtype.code, dl.dtype.bits, dl.dtype.lanes = DTYPES[row].code, DTYPES[row].bits, 1
    return shape
