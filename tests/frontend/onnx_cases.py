"""What tests of the ONNX importer share: the suite of the onnx package, small models, and ONNX Runtime's answers."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from modes import MODES, assert_same_bits, plain
from onnx import helper, numpy_helper

from relvm import vm
from relvm.frontend.onnx import from_onnx


def suite_cases(*operators: str) -> dict[str, Any]:
    """The cases of onnx.backend.test that are one node of these operators, by name."""
    folder = "onnx.backend.test.case.node"
    for operator in operators:
        importlib.import_module(f"{folder}.{operator.lower()}")
    cases = importlib.import_module(folder)._NodeTestCases
    wanted = [[operator] for operator in operators]
    return {case.name: case for case in cases if [node.op_type for node in case.model.graph.node] in wanted}


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Iterable[tuple[str, np.ndarray, Sequence[Any]]],
    outputs: Iterable[str],
    constants: Mapping[str, np.ndarray] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    """A model of nodes.  inputs: the name, an array of the dtype, and the shape, sizes or names of sizes."""
    graph = helper.make_graph(
        nodes,
        "test",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)
            for name, array, shape in inputs
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    domains = sorted({node.domain for node in nodes} - {""})
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def onnxruntime_answers(proto: onnx.ModelProto, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """ONNX Runtime's outputs, without its optimisations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=True)))


def answers_of(proto: onnx.ModelProto, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """relvm's outputs, of kernels in C, the same bits in both modes."""
    module = from_onnx(proto)
    results = [plain(vm.VirtualMachine(vm.build(module, mode, "c"))["main"](*arrays)) for mode in MODES]
    assert_same_bits(*results)
    return list(results[0]) if isinstance(results[0], tuple) else [results[0]]


def assert_answers(
    got: Sequence[np.ndarray], wanted: Sequence[np.ndarray], rtol: float = 1e-4, atol: float = 1e-5
) -> None:
    """The same dtypes and shapes, and numbers that are as close; integers are equal."""
    assert len(got) == len(wanted)
    for ours, theirs in zip(got, map(np.asarray, wanted), strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), f"{ours.shape} and {theirs.shape}"
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(ours, theirs)
