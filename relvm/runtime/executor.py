"""Executors: set inputs, run, get outputs.  The interface is the same for machines and for ahead-of-time exports."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from relvm.bytecode.program import input_names, signature_entry
from relvm.data_classes import dataclass
from relvm.errors import (
    RelvmArgumentError,
    RelvmBusyError,
    RelvmIndexError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
    near_matches,
)
from relvm.runtime.signature import tuple_fields
from relvm.runtime.tensor import Tensor
from relvm.runtime.virtual_machine import VirtualMachine
from relvm.tables import BUILTIN_PREFIX


class Executor(ABC):
    """Base class of executors, which run one function: set its inputs, run it, and get its outputs.

    `MachineExecutor` runs a function of a virtual machine, `DebugExecutor` also records its calls, and
    `relvm.aot.AotExecutor` runs an ahead-of-time export.  Code that uses only the methods of this class works with all
    of them.

    Parameters
    ----------
    input_names
        The names of the inputs.
    """

    def __init__(self, input_names: Sequence[str]) -> None:
        self._input_names = tuple(input_names)
        self._input_values: list[Any] = [None] * len(self._input_names)
        self._last_outputs: list[Any] | None = None
        self._running = threading.Lock()

    @property
    @abstractmethod
    def _output_names(self) -> Sequence[str]:
        """The names of the outputs."""

    @abstractmethod
    def _convert_input(self, index: int, value: Any) -> Any:
        """Return a copy of a value for the input at `index`.

        Raise RelvmTypeError or RelvmShapeError if it cannot be this input.  A subclass can leave these checks to
        `_run`.
        """

    @abstractmethod
    def _run(self) -> list[Any]:
        """Run the function on the input values, which are all set, and return the outputs."""

    # ---- names ----

    def get_num_inputs(self) -> int:
        """Return the number of inputs."""
        return len(self._input_names)

    def get_num_outputs(self) -> int:
        """Return the number of outputs."""
        return len(self._output_names)

    def get_input_index(self, name: str) -> int:
        """Return the index of the input `name`.

        Raise RelvmNameError if there is no such input, and RelvmTypeError if `name` is not a str.
        """
        if not isinstance(name, str):
            raise RelvmTypeError(f"expected an input name as a str, got {name!r}")
        return self._find_input(name)

    def get_input_name(self, index: int) -> str:
        """Return the name of the input at `index`.  Raise RelvmIndexError if there is no such input."""
        return self._input_names[_check_index(self._input_names, index, "input")]

    def get_output_index(self, name: str) -> int:
        """Return the index of the output `name`.

        Raise RelvmNameError if there is no such output, and RelvmTypeError if `name` is not a str.
        """
        if not isinstance(name, str):
            raise RelvmTypeError(f"expected an output name as a str, got {name!r}")
        return self._find_output(name)

    def _find_input(self, key: int | str) -> int:
        return _find_index(self._input_names, key, "input")

    def _find_output(self, key: int | str) -> int:
        return _find_index(self._output_names, key, "output")

    # ---- runs ----

    def set_input(self, key: int | str | None = None, value: Any = None, /, **inputs: Any) -> None:
        """Set inputs to copies of values.  If an error is raised, no input changes.

        Parameters
        ----------
        key
            Index or name of an input.
        value
            An array of the dtype and shape of the input, or a number if the input is a scalar.
        **inputs
            Further inputs, by name.

        Raises
        ------
        RelvmArgumentError
            There is a key without a value, or an input occurs twice.
        RelvmNameError, RelvmIndexError, RelvmTypeError
            The input does not exist, or the key is neither an int nor a str.
        RelvmTypeError
            The array has another dtype.
        RelvmShapeError
            The array has another rank, or differs in a dimension of known size.  A MachineExecutor checks the dtype and
            the shape only in `run`.
        """
        given: list[tuple[Any, Any]] = list(inputs.items())
        if key is not None or value is not None:
            if key is not None and value is None:
                raise RelvmArgumentError(f"set_input: expected a value for input {key!r}")
            given.insert(0, (key, value))
        found: dict[int, Any] = {}
        for each, number_or_array in given:
            index = self._find_input(each)
            if index in found:
                raise RelvmArgumentError(f"set_input: input {self._input_names[index]} is given twice")
            found[index] = self._convert_input(index, number_or_array)
        for index, array in found.items():
            self._input_values[index] = array

    def get_input(self, key: int | str, out: np.ndarray | None = None) -> Any:
        """Return a copy of the value of an input, or None if the input is not set.

        The value of an input that runs update is the value after the last run.

        Parameters
        ----------
        key
            Index or name of the input.
        out
            The array to copy the value to and to return, or None for a new array.

        Raises
        ------
        RelvmArgumentError
            `out` is given, and the input is not set.
        RelvmTypeError, RelvmShapeError
            `out` has another dtype or shape, or is read-only.
        RelvmNameError, RelvmIndexError, RelvmTypeError
            The input does not exist, or the key is neither an int nor a str.
        """
        index = self._find_input(key)
        array = self._input_values[index]
        if out is None:
            return copied(array)
        if array is None:
            raise RelvmArgumentError(f"get_input: input {self._input_names[index]} is not set; call set_input first")
        return _copy_to("get_input", array, out)

    def run(self, /, **inputs: Any) -> None:
        """Run the function on its inputs.

        Parameters
        ----------
        **inputs
            Inputs to set before the run, by name.

        Raises
        ------
        RelvmArgumentError
            An input is not set.
        RelvmTypeError
            An input has another dtype.
        RelvmShapeError
            An input has another shape, or sizes of inputs contradict each other or are out of bounds.
        RelvmBusyError
            Another thread is running this executor.
        RelvmError
            The run failed.  The class of the error is the same for all executors.
        """
        if not self._running.acquire(blocking=False):
            raise RelvmBusyError("the executor is running in another thread; create one executor per thread")
        try:
            self.set_input(**inputs)
            self._last_outputs = None
            pairs = zip(self._input_names, self._input_values, strict=True)
            if missing := [name for name, value in pairs if value is None]:
                raise RelvmArgumentError(f"run: missing inputs: {', '.join(missing)}; set them with set_input")
            self._last_outputs = self._run()
        finally:
            self._running.release()

    def get_output(self, key: int | str, out: np.ndarray | None = None) -> Any:
        """Return an output of the last run.

        A tensor or a number is returned as an array.  Later runs do not change it, unless the method
        `set_output_zero_copy` of an AotExecutor has bound the output to an array, which each run overwrites.

        Parameters
        ----------
        key
            Index or name of the output.
        out
            The array to copy the output to and to return.  If `out` is None, the output is returned without a copy.

        Raises
        ------
        RelvmTypeError, RelvmShapeError
            `out` has another dtype or shape, or is read-only.
        RelvmArgumentError
            There was no run yet, or the last run failed.
        RelvmNameError, RelvmIndexError, RelvmTypeError
            The output does not exist, or the key is neither an int nor a str.
        """
        index = self._find_output(key)
        if self._last_outputs is None:
            raise RelvmArgumentError("get_output: no outputs yet, or the last run failed; call run first")
        output = self._last_outputs[index]
        return output if out is None else _copy_to("get_output", output, out)


class MachineExecutor(Executor):
    """An executor of one function of a virtual machine.

    The inputs are the parameters of the function.  The outputs are the fields of its result, in order, or the result
    itself if it is not a tuple.  A tensor or a number is returned as an array.

    Parameters
    ----------
    machine
        The machine.
    function
        The name of the function.

    Raises
    ------
    RelvmTypeError
        `machine` is not a VirtualMachine.
    RelvmNameError
        The machine has no such function.
    RelvmArgumentError
        The executable does not state the types of the function, because it was not built from a module.

    Examples
    --------
    >>> import numpy as np
    >>> from relvm import vm
    >>> from relvm.frontend.text import parse_module
    >>> module = parse_module("def main(x: f32[n], y: f32[n]) -> f32[n] { return add(x, y) }")
    >>> executor = vm.MachineExecutor(vm.VirtualMachine(vm.build(module)))
    >>> executor.set_input("x", np.ones(2, np.float32))
    >>> executor.run(y=np.ones(2, np.float32))
    >>> executor.get_output(0)
    array([2., 2.], dtype=float32)
    """

    def __init__(self, machine: VirtualMachine, function: str = "main") -> None:
        if not isinstance(machine, VirtualMachine):
            raise RelvmTypeError(f"expected a VirtualMachine, got {machine!r:.80}")
        self._machine, self._function = machine, machine[function]
        entry = signature_entry(machine.executable.signature, function)
        if entry is None:
            raise RelvmArgumentError(
                f"{function}: the executable does not state the types of this function; an executor needs an "
                "executable that vm.build made"
            )
        super().__init__(input_names(entry))
        self._result_type: str = entry["result"]
        count = _leaf_count(self._result_type)
        attributes = entry["attributes"]
        names = attributes.get("output_tensor_names", attributes.get("output_names"))
        if not isinstance(names, list) or len(names) != count:
            names = ["output"] if count == 1 else [f"output{i}" for i in range(count)]
        self._outputs = tuple(map(str, names))

    @property
    def _output_names(self) -> Sequence[str]:
        return self._outputs

    def _convert_input(self, index: int, value: Any) -> Any:
        return copied(np.asarray(value) if hasattr(value, "__dlpack__") or isinstance(value, Tensor) else value)

    def _run(self) -> list[Any]:
        result = self._function(*self._input_values)
        return [_as_array(leaf) for leaf in _leaves(result, self._result_type)]


@dataclass(frozen=True)
class RecordedCall:
    """A call that a DebugExecutor recorded.

    name: the name of the kernel or function.
    arguments: copies of the arguments after the call.  The last arguments of a kernel are the tensors that it wrote.
    result: a copy of the result, None for a kernel.
    """

    name: str
    arguments: tuple[Any, ...]
    result: Any


class DebugExecutor(MachineExecutor):
    """An executor that also records the calls of kernels, packed functions and functions of the module.

    A run replaces the instrument of the machine, and removes it at the end.

    Parameters
    ----------
    machine, function
        See MachineExecutor, which also describes the errors.

    Attributes
    ----------
    calls
        The calls of the last run, in the order in which they ended.  After a run that failed, these are the calls that
        ended before the error.
    """

    def __init__(self, machine: VirtualMachine, function: str = "main") -> None:
        super().__init__(machine, function)
        self.calls: list[RecordedCall] = []

    def _run(self) -> list[Any]:
        self.calls = []
        self._machine.set_instrument(self._record)
        try:
            return super()._run()
        finally:
            self._machine.set_instrument(None)

    def _record(self, name: str, before: bool, result: Any, *arguments: Any) -> None:
        if not before and not name.startswith(BUILTIN_PREFIX):
            self.calls.append(RecordedCall(name, tuple(map(_snapshot, arguments)), _snapshot(result)))


def copied(value: Any) -> Any:
    """Return a value with copies of the arrays in it, which may be inside tuples and lists."""
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)(map(copied, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def _snapshot(value: Any) -> Any:
    """Return a value of the machine with copies of the tensors in it, as arrays."""
    if type(value) in (tuple, list):
        return type(value)(map(_snapshot, value))
    return value.numpy().copy() if isinstance(value, Tensor) else value


def _leaf_count(type_text: str) -> int:
    """Return the number of values in a type, where a tuple counts as its fields."""
    fields = tuple_fields(type_text)
    return 1 if fields is None else sum(map(_leaf_count, fields))


def _leaves(value: Any, type_text: str) -> Iterator[Any]:
    """Yield the values in a result of the type `type_text`: the fields of its tuples, in order."""
    fields = tuple_fields(type_text)
    if fields is None:
        yield value
    else:
        for part, field in zip(value, fields, strict=True):
            yield from _leaves(part, field)


def _as_array(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.numpy()
    return np.array(value) if isinstance(value, bool | int | float) else value


def _find_index(names: Sequence[str], key: int | str, what: str) -> int:
    """Return the index of the input or output `key`, which is an index or a name.   what: "input" or "output"."""
    if isinstance(key, str):
        if key not in names:
            raise RelvmNameError(f"unknown {what} {key}; expected one of {', '.join(names)}{near_matches(key, names)}")
        return list(names).index(key)
    return _check_index(names, key, what)


def _check_index(names: Sequence[str], key: int, what: str) -> int:
    if not isinstance(key, int | np.integer) or isinstance(key, bool):
        raise RelvmTypeError(f"{what}: expected an index or a name, got {key!r}")
    if not 0 <= key < len(names):
        known = f"expected 0 to {len(names) - 1}" if names else f"there is no {what}"
        raise RelvmIndexError(f"{what} index {key} is out of range; {known}")
    return int(key)


def _copy_to(where: str, array: np.ndarray, out: Any) -> np.ndarray:
    """Copy an array to the array `out` of a caller, and return `out`.   where: the called method, for messages."""
    if not isinstance(array, np.ndarray):
        raise RelvmTypeError(f"{where}: out: expected a value that is an array, got {type(array).__name__}")
    if not isinstance(out, np.ndarray) or out.dtype != array.dtype or not out.flags.writeable:
        raise RelvmTypeError(f"{where}: out: expected a writable array of dtype {array.dtype}, got {out!r:.80}")
    if out.shape != array.shape:
        raise RelvmShapeError(f"{where}: out: expected shape {array.shape}, got {out.shape}")
    np.copyto(out, array)
    return out
