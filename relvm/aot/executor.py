"""Runs a hosted export: inputs are set, it runs, outputs are taken."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from relvm.aot.factory import ExecutorFactory
from relvm.aot.metadata import TensorInfo
from relvm.aot.trial import expect_number
from relvm.errors import (
    RelvmArgumentError,
    RelvmBusyError,
    RelvmIndexError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
    near_matches,
)
from relvm.frontend.text import parse_type
from relvm.ir.dims import AnyDim, as_var, evaluate_with
from relvm.ir.dtypes import dtype_of
from relvm.tables import DTYPES, TAGS, numbers
from relvm.vm.runtime._native import ffi
from relvm.vm.runtime.failure import failure

_CPU = 1  # kDLCPU
_ROWS = numbers(DTYPES)
_TENSOR = numbers(TAGS)["TENSOR"]


class AotExecutor:
    """A model that was compiled ahead of time, with memory of its own for its runs.

    Any number of executors of one factory may run at the same time, each in a thread: nothing is shared but code and
    constants.

    Parameters
    ----------
    factory
        Of `compile_library` or `load_module`.
    """

    def __init__(self, factory: ExecutorFactory) -> None:
        if not isinstance(factory, ExecutorFactory):
            raise RelvmTypeError(f"expected an ExecutorFactory, as load_module gives it, got {factory!r}")
        metadata = factory.metadata
        self._factory = factory  # keeps the library
        self._inputs, self._outputs = metadata.inputs, metadata.outputs
        self._given: list[np.ndarray | None] = [None] * len(metadata.inputs)
        self._made: list[np.ndarray] | None = None
        self._bounds = {size.name: size for size in metadata.sizes}
        self._pools = [_aligned(pool.shape[0], metadata.alignment) for pool in metadata.pools]
        self._running = threading.Lock()

    def get_num_inputs(self) -> int:
        """How many inputs there are."""
        return len(self._inputs)

    def get_num_outputs(self) -> int:
        """How many outputs there are."""
        return len(self._outputs)

    def get_input_index(self, name: str) -> int:
        """The place of an input.  Raises RelvmNameError: none has the name; RelvmTypeError: that is no str."""
        if not isinstance(name, str):
            raise RelvmTypeError(f"the name of an input: expected a str, got {name!r}")
        return _place(self._inputs, name, "input")

    def get_input_name(self, index: int) -> str:
        """The name of the input at `index`.  Raises RelvmIndexError: there is none there."""
        return self._inputs[_index(self._inputs, index, "input")].name

    def get_input_info(self) -> dict[str, TensorInfo]:
        """The shape and dtype of each input, by name; a dimension that is a text is a size of the model's."""
        return {info.name: info for info in self._inputs}

    def get_output_info(self) -> dict[str, TensorInfo]:
        """The same of outputs."""
        return {info.name: info for info in self._outputs}

    def set_input(self, key: int | str, value: Any) -> None:
        """Give a value to an input; it is copied.

        Parameters
        ----------
        key
            Its index or its name.
        value
            An array of its dtype and shape; for an input without dimensions a number will do.

        Raises
        ------
        RelvmNameError, RelvmIndexError, RelvmTypeError
            There is no such input, or the key is neither an int nor a str.
        RelvmTypeError
            An array of another dtype.
        RelvmShapeError
            One of another rank, or with another dimension where that is a number.
        """
        place = _place(self._inputs, key, "input")
        self._given[place] = _fitting(self._inputs[place], value)

    def get_input(self, key: int | str) -> np.ndarray | None:
        """What an input was set to, a copy; None: nothing yet.  Raises as `set_input` does of its key."""
        given = self._given[_place(self._inputs, key, "input")]
        return None if given is None else given.copy()

    def run(self, /, **inputs: Any) -> None:
        """Run the model on its inputs.

        Parameters
        ----------
        **inputs
            Set before, by name.

        Raises
        ------
        RelvmArgumentError
            An input has no value.
        RelvmShapeError
            Inputs whose sizes do not go together, or are outside their bounds.
        RelvmBusyError
            Another thread is running this executor.
        RelvmError
            What the model fails with, of the class that the machine would raise.
        """
        if not self._running.acquire(blocking=False):
            raise RelvmBusyError("the executor is being run by another thread: each thread needs one of its own")
        try:
            for name, value in inputs.items():
                self.set_input(name, value)
            self._made = self._run()
        finally:
            self._running.release()

    def get_output(self, key: int | str) -> np.ndarray:
        """An output of the last run, by index or name; later runs leave it as it is.

        Raises
        ------
        RelvmArgumentError
            Nothing has run yet, or the last run failed.
        RelvmNameError, RelvmIndexError, RelvmTypeError
            There is no such output, or the key is neither an int nor a str.
        """
        place = _place(self._outputs, key, "output")
        if self._made is None:
            raise RelvmArgumentError("there is no output: no run has succeeded since the last one began")
        return self._made[place]

    def _run(self) -> list[np.ndarray]:
        self._made = None
        missing = [info.name for info, given in zip(self._inputs, self._given, strict=True) if given is None]
        if missing:
            raise RelvmArgumentError(f"run: no value for {', '.join(missing)}")
        sizes = self._sizes()
        outputs = [np.empty(_shape(info, sizes), dtype_of(info.dtype).numpy) for info in self._outputs]
        tensors = [*self._given, *outputs, *self._pools]
        views, keep = ffi.new("rvm_tensor[]", max(1, len(tensors))), []
        arguments, result = ffi.new("rvm_value[]", max(1, len(tensors))), ffi.new("rvm_value *")
        for number, tensor in enumerate(tensors):
            keep.append(_view(views[number], tensor))
            arguments[number].tag = _TENSOR
            getattr(arguments[number], "as").tensor = views + number
        status = self._factory.run(ffi.NULL, arguments, len(tensors), result)
        if status:
            raise failure(status, result, self._factory.metadata.mod_name)
        return outputs

    def _sizes(self) -> dict[str, int]:
        """The sizes that the inputs have."""
        sizes: dict[str, int] = {}
        for info, array in zip(self._inputs, self._given, strict=True):
            if not info.shape and info.name in self._bounds:
                sizes.setdefault(info.name, int(array))
            for dim, have in zip(_dims(info), array.shape, strict=True):
                if var := as_var(dim):
                    sizes.setdefault(var.name, have)
        for info, array in zip(self._inputs, self._given, strict=True):
            if (want := _shape(info, sizes)) != array.shape:
                raise RelvmShapeError(f"input {info.name}: expected shape {want}, got {array.shape}")
        for name, size in sizes.items():
            bounds = self._bounds[name]
            if size < bounds.least or (bounds.most is not None and size > bounds.most):
                most = "any" if bounds.most is None else bounds.most
                raise RelvmShapeError(f"size {name}: expected {bounds.least} to {most}, got {size}")
        return sizes


def _place(infos: tuple[TensorInfo, ...], key: int | str, what: str) -> int:
    if isinstance(key, str):
        names = [info.name for info in infos]
        if key not in names:
            raise RelvmNameError(f"no {what} {key}: there are {', '.join(names)}{near_matches(key, names)}")
        return names.index(key)
    return _index(infos, key, what)


def _index(infos: tuple[TensorInfo, ...], key: int, what: str) -> int:
    if not isinstance(key, int | np.integer) or isinstance(key, bool):
        raise RelvmTypeError(f"the key of an {what}: expected an index or a name, got {key!r}")
    if not 0 <= key < len(infos):
        raise RelvmIndexError(f"no {what} {key}: there are {len(infos)}")
    return int(key)


def _fitting(info: TensorInfo, value: Any) -> np.ndarray:
    """A copy of a value as an input takes it."""
    dtype = dtype_of(info.dtype).numpy
    if not info.shape and isinstance(value, bool | int | float):
        return np.array(expect_number(f"input {info.name}", dtype_of(info.dtype), value), dtype)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise RelvmTypeError(f"input {info.name}: expected an array: {error}") from None
    if array.dtype != dtype:
        raise RelvmTypeError(f"input {info.name}: expected dtype {info.dtype}, got {array.dtype}")
    fits = len(array.shape) == len(info.shape) and all(
        isinstance(want, str) or want == have for want, have in zip(info.shape, array.shape, strict=True)
    )
    if not fits:
        want = ", ".join(map(str, info.shape))
        raise RelvmShapeError(f"input {info.name}: expected shape ({want}), got {array.shape}")
    return np.array(array, order="C", copy=True)


def _dims(info: TensorInfo) -> tuple[AnyDim, ...]:
    return parse_type(f"{info.dtype}[{', '.join(map(str, info.shape))}]").shape


def _shape(info: TensorInfo, sizes: dict[str, int]) -> tuple[int, ...]:
    """The dimensions where sizes are known.  Raises RelvmShapeError: one is below 0, or divides by 0."""
    found = tuple(evaluate_with(dim, lambda var: sizes[var.name]) for dim in _dims(info))
    if any(not isinstance(dim, int) or dim < 0 for dim in found):
        raise RelvmShapeError(f"{info.name}: no shape ({', '.join(map(str, info.shape))}) of sizes {sizes}")
    return found


def _aligned(size_bytes: int, alignment: int) -> np.ndarray:
    block = np.empty(size_bytes + alignment, np.uint8)
    skipped = -block.ctypes.data % alignment
    return block[skipped : skipped + size_bytes]


def _view(view: Any, array: np.ndarray) -> Any:
    """Makes a tensor of C a view of an array; what it returns must live as long."""
    row = _ROWS[dtype_of(array.dtype).name]
    shape = ffi.new("int64_t[]", array.shape or (0,))
    view.base.tag, view.base.references = _TENSOR, -1
    view.dtype = row
    dl = view.dl
    dl.data = ffi.cast("void *", array.ctypes.data)
    dl.device_type, dl.ndim, dl.shape = _CPU, array.ndim, shape
    dl.dtype.code, dl.dtype.bits, dl.dtype.lanes = DTYPES[row].code, DTYPES[row].bits, 1
    return shape
