"""relvm as an ONNX backend.  This module implements the interface of `onnx.backend.base`, which the ONNX test suite and
other programs use.  Example::

    import relvm.onnx_backend as backend

    rep = backend.prepare(model, exec_mode="compiled")
    (y,) = rep.run([x])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper
from onnx.backend.base import Backend, BackendRep

from relvm import vm
from relvm.errors import RelvmArgumentError, RelvmNameError, counted, known_names, near_matches
from relvm.frontend.onnx import from_onnx
from relvm.frontend.onnx.node_schemas import newest_opsets
from relvm.runtime.plain_values import plain_output

__all__ = ["RelvmBackend", "RelvmRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


class RelvmRep(BackendRep):
    """A compiled model, ready to run.

    Parameters
    ----------
    machine
        A machine whose function `main` is the model.
    inputs, outputs
        The names of the inputs and outputs in the graph.
    maps
        The names of the outputs whose ONNX type is a map, or a sequence of maps.
    """

    def __init__(
        self, machine: vm.VirtualMachine, inputs: Sequence[str], outputs: Sequence[str], maps: Sequence[str] = ()
    ) -> None:
        self.machine = machine
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.maps = frozenset(maps)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the model and return its outputs.

        Parameters
        ----------
        inputs
            A list of the inputs in the order of the graph, or a mapping of input names to inputs.  For a single input,
            the array itself is also accepted.

        Returns
        -------
        tuple
            A value for each output: an array for a tensor, a list of arrays for a sequence, None for a missing optional
            value, a dict for a map, and a list of dicts for a sequence of maps.

        Raises
        ------
        RelvmError
            The run failed.  For example, RelvmShapeError is raised if an array does not have the shape that the model
            requires.
        """
        if kwargs:
            raise RelvmArgumentError(f"run: unknown option {next(iter(kwargs))}")
        result = self.machine["main"](*self._inputs_in_order(inputs))
        results = (result,) if len(self.outputs) == 1 else result
        pairs = zip(self.outputs, results, strict=True)
        return tuple(plain_output(value, name in self.maps) for name, value in pairs)

    def _inputs_in_order(self, inputs: Any) -> list[Any]:
        if isinstance(inputs, np.ndarray):
            return [inputs]
        if not isinstance(inputs, Mapping):
            return list(inputs)
        for name in inputs:
            if name not in self.inputs:
                raise RelvmNameError(f"the model has no input {name}{known_names(name, self.inputs)}")
        missing = [name for name in self.inputs if name not in inputs]
        if missing:
            raise RelvmNameError(f"missing inputs: {', '.join(missing)}")
        return [inputs[name] for name in self.inputs]


class RelvmBackend(Backend):
    """An ONNX backend that builds models with relvm.

    A subclass can set another `exec_mode` or `target` (see relvm.vm.build).
    """

    exec_mode = "bytecode"
    target = "c"

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> RelvmRep:
        """Build a model.

        Parameters
        ----------
        model
            The model: an onnx.ModelProto, the bytes of an .onnx file, or the path of an .onnx file.
        device
            The device, which must be "CPU".
        kwargs
            The options exec_mode and target of `relvm.vm.build`, and dims and inputs of `from_onnx`.

        Raises
        ------
        RelvmArgumentError
            The device or an option is unknown.
        RelvmUnsupportedError
            A node cannot be imported.
        RelvmFormatError
            The file is not an ONNX model, or its graph is inconsistent.
        """
        _expect_device(device)
        options: dict[str, Any] = {"exec_mode": cls.exec_mode, "target": cls.target, "dims": None, "inputs": ()}
        for name in kwargs:
            if name not in options:
                raise RelvmArgumentError(f"prepare: unknown option {name}{near_matches(name, options)}")
        options |= kwargs
        module = from_onnx(model, dims=options.pop("dims"), inputs=options.pop("inputs"))
        names = dict(module["main"].attributes)
        machine = vm.VirtualMachine(vm.build(module, **options))
        return RelvmRep(machine, names["input_names"], names["output_names"], names.get("map_outputs", ()))

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Build a model, run it once, and return its outputs."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Run a model that consists of a single node, and return its outputs.

        Parameters
        ----------
        node
            The node.
        inputs
            A list of the node's inputs in order, or a mapping from their names to values.
        device
            The device, which must be the CPU.
        outputs_info
            Ignored, because the types of the outputs are inferred from the inputs.
        kwargs
            The options of `prepare`, and `opset_version`, the opset version of the node.  The default is the newest
            version.
        """
        names = [name for name in node.input if name]
        arrays = [inputs[name] for name in names] if isinstance(inputs, Mapping) else list(inputs)
        if len(arrays) != len(names):
            raise RelvmArgumentError(
                f"run_node: {node.op_type} has {counted(len(names), 'input')}, got {len(arrays)} arrays"
            )
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), np.shape(x))
            for name, x in zip(names, arrays, strict=True)
        ]
        results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], node.op_type, infos, results)
        version = kwargs.pop("opset_version", None) or newest_opsets().get(node.domain, 1)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
        return cls.run_model(model, list(map(np.asarray, arrays)), device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether models can be built for a device.  Only the CPU is supported."""
        return device.partition(":")[0] == "CPU"


def _expect_device(device: str) -> None:
    if not RelvmBackend.supports_device(device):
        raise RelvmArgumentError(f"prepare: unsupported device {device}; expected CPU")


is_compatible = RelvmBackend.is_compatible
prepare = RelvmBackend.prepare
run_model = RelvmBackend.run_model
run_node = RelvmBackend.run_node
supports_device = RelvmBackend.supports_device
