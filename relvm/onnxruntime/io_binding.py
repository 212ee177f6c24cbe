"""IOBinding: inputs and outputs that are bound to a session before it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relvm.onnxruntime.errors import Status
from relvm.onnxruntime.options import RunOptions
from relvm.onnxruntime.values import OrtValue, array_at, expect_cpu, is_cpu, unwrap
from relvm.quoting import terminal


class IOBinding:
    """The inputs and outputs of a session that are bound to arrays or to memory of the caller.

    If an output is bound to memory, a run computes the result in other memory, and then copies it to the bound memory.

    Parameters
    ----------
    session
        The InferenceSession.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._targets: dict[str, np.ndarray | None] = {}
        self._outputs: list[OrtValue] = []

    @property
    def _iobinding(self) -> SessionIOBinding:
        return SessionIOBinding.of(self)

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """Bind an input to an array.

        name: the input.
        arr_on_cpu: the array.
        """
        _check_name(self._session.expect_input, name)
        self._inputs[name] = arr_on_cpu

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Bind an input to memory of the caller.

        name: the input.
        device_type: "cpu".
        device_id: ignored.
        element_type: a NumPy type, or a number of onnx.TensorProto.DataType.
        shape: the sizes.
        buffer_ptr: the address of the first element.
        """
        _check_name(self._session.expect_input, name)
        expect_cpu(device_type)
        self._inputs[name] = array_at(buffer_ptr, element_type, shape)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an input to an OrtValue.

        name: the input.
        ortvalue: the value.
        """
        _check_name(self._session.expect_input, name)
        self._inputs[name] = unwrap(ortvalue)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Request an output, and bind it to memory of the caller if `buffer_ptr` is given.

        name: the output.
        device_type: the kind of device.  If `buffer_ptr` is given, it must be "cpu".  Otherwise any kind is accepted,
        and the result is in memory of the CPU.
        device_id: ignored.
        element_type: a NumPy type, or a number of onnx.TensorProto.DataType.
        shape: the sizes.
        buffer_ptr: the address of the first element.
        """
        _check_name(self._session.expect_output, name)
        is_cpu(device_type)  # raises an exception for an unknown kind of device
        if buffer_ptr is None:
            self._targets[name] = None  # also for another device, as in ONNX Runtime for the CPU
            return
        expect_cpu(device_type)
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        self._targets[name] = array_at(buffer_ptr, element_type, shape)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an output to an OrtValue, which gets the result.

        name: the output.
        ortvalue: a tensor.
        """
        _check_name(self._session.expect_output, name)
        self._targets[name] = ortvalue.numpy()

    def synchronize_inputs(self) -> None:
        """Have no effect: there is no other device."""

    def synchronize_outputs(self) -> None:
        """Have no effect: there is no other device."""

    def get_outputs(self) -> list[OrtValue]:
        """Return the bound outputs of the last run, in the order in which they were bound."""
        return list(self._outputs)

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        """Return the same as get_outputs."""
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Return copies of the bound outputs of the last run."""
        return [value.copy() if isinstance(value := unwrap(each), np.ndarray) else value for each in self._outputs]

    def clear_binding_inputs(self) -> None:
        """Forget the bound inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the bound outputs."""
        self._targets.clear()
        self._outputs = []

    def run(self, run_options: RunOptions | None) -> None:
        """Run the session; InferenceSession.run_with_iobinding calls this.

        run_options: the options of the run.
        """
        names = list(self._targets)
        try:
            results = self._session.run(names, self._inputs, run_options) if names else []
        except Status as error:
            raise RuntimeError(f"Error in execution: {error}") from error
        outputs = []
        for name, result in zip(names, results, strict=True):
            target = self._targets[name]
            if target is not None:
                if not isinstance(result, np.ndarray) or (result.dtype, result.shape) != (target.dtype, target.shape):
                    got = f"{result.dtype} of shape {result.shape}" if isinstance(result, np.ndarray) else "no tensor"
                    raise RuntimeError(
                        f"Error in execution: output {terminal(name)}: expected {target.dtype} of shape {target.shape},"
                        f" as bound, got {got}"
                    )
                np.copyto(target, result)
            outputs.append(OrtValue(result if target is None else target))
        self._outputs = outputs


class SessionIOBinding(IOBinding):
    """The binding of onnxruntime.capi.onnxruntime_pybind11_state, to which the attribute `_iobinding` refers.

    Its methods take a device as one argument, not as `device_type` and `device_id`.  The parameter `session` of the
    constructor is the attribute `_sess` of an InferenceSession.
    """

    def __init__(self, session: Any) -> None:
        super().__init__(session.owner)

    @classmethod
    def of(cls, binding: IOBinding) -> SessionIOBinding:
        """Return the SessionIOBinding that shares all state with `binding`."""
        shared = cls.__new__(cls)
        shared.__dict__ = binding.__dict__
        return shared

    def bind_input(self, name: str, *arguments: Any) -> None:
        """Bind an input to an array, or to memory of the caller.

        name: the input.
        arguments: an array, or the device, element type, shape and address of the memory.
        """
        if len(arguments) == 1:
            self.bind_cpu_input(name, arguments[0])
        else:
            device, element_type, shape, address = arguments
            super().bind_input(name, device, 0, element_type, shape, address)

    def bind_output(self, name: str, *arguments: Any) -> None:
        """Request an output, and bind it to memory of the caller if its address is given.

        name: the output.
        arguments: the device, or the device, element type, shape and address of the memory.
        """
        device, *memory = arguments
        super().bind_output(name, device, 0, *memory)


def _check_name(check: Callable[[str], None], name: str) -> None:
    """Call check(name), and raise RuntimeError if it rejects the name, as ONNX Runtime does for all errors of
    bindings."""
    try:
        check(name)
    except Status as error:
        raise RuntimeError(f"Error when binding: {error}") from error
