"""The onnx package's test cases of single operators (onnx.backend.test)."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from frontend.onnx_models import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests


@dataclass(frozen=True, eq=False)
class Case:
    """A model of one node, its inputs and its outputs."""

    model: onnx.ModelProto
    inputs: list[np.ndarray]
    outputs: list[np.ndarray]

    @property
    def operator(self) -> str:
        return self.model.graph.node[0].op_type

    def with_known(self, places: Iterable[int]) -> tuple[onnx.ModelProto, list[np.ndarray]]:
        """Return the model with the inputs `places` of the node as initializers, and the values of the other inputs."""
        model, values = onnx.ModelProto(), []
        model.CopyFrom(self.model)
        given = model.graph.node[0].input
        known = [given[place] for place in places if place < len(given)]
        for info, value in zip(model.graph.input, self.inputs, strict=True):
            if info.name in known:
                model.graph.initializer.append(numpy_helper.from_array(value, info.name))
            else:
                values.append(value)
        return model, values


def _element_type(type_: onnx.TypeProto) -> int:
    """Return the element type of a tensor, or of the tensors in a sequence or an optional value."""
    match type_.WhichOneof("value"):
        case "sequence_type":
            return _element_type(type_.sequence_type.elem_type)
        case "optional_type":
            return _element_type(type_.optional_type.elem_type)
    return type_.tensor_type.elem_type


@cache
def node_cases() -> dict[str, Any]:
    """Return the suite's cases of operators by name.  Cases named `_expanded` contain the body of an ONNX function."""
    with warnings.catch_warnings():  # NumPy warns about overflow, which is intended in these cases
        warnings.simplefilter("ignore")
        loaded = load_model_tests(kind="node")
    return {case.name: case for case in loaded if case.model is not None}


@cache
def _suite() -> dict[str, Any]:
    """Return the suite's cases with a single node, by name."""
    return {name: case for name, case in node_cases().items() if len(case.model.graph.node) == 1}


def suite_models() -> list[onnx.ModelProto]:
    """Return the models of all cases with a single node."""
    return [case.model for case in _suite().values()]


def suite_cases(operators: Collection[str]) -> dict[str, Case]:
    """Return the suite's cases with a single node of one of `operators`, by name."""
    cases = {}
    for name, case in _suite().items():
        if case.model.graph.node[0].op_type in operators:
            ((inputs, outputs),) = case.data_sets
            cases[name] = Case(case.model, list(map(_array, inputs)), list(map(_array, outputs)))
    return cases


def _array(value: Any) -> Any:
    """Convert a TensorProto to an array.  Return any other value unchanged."""
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
