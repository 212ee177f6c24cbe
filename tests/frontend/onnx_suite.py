"""The cases of single operators that the onnx package brings (onnx.backend.test)."""

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
        """The model with the node's inputs at these places made initializers, and the values of the other inputs."""
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
    """The element type of a tensor, or of the tensors in a sequence or an optional value."""
    match type_.WhichOneof("value"):
        case "sequence_type":
            return _element_type(type_.sequence_type.elem_type)
        case "optional_type":
            return _element_type(type_.optional_type.elem_type)
    return type_.tensor_type.elem_type


@cache
def node_cases() -> dict[str, Any]:
    """The suite's cases of operators, by name; those named `_expanded` have the nodes of a function's body."""
    with warnings.catch_warnings():  # of NumPy, about overflow that the cases mean
        warnings.simplefilter("ignore")
        loaded = load_model_tests(kind="node")
    return {case.name: case for case in loaded if case.model is not None}


@cache
def _suite() -> dict[str, Any]:
    """The suite's cases of one node, by name."""
    return {name: case for name, case in node_cases().items() if len(case.model.graph.node) == 1}


def suite_models() -> list[onnx.ModelProto]:
    """The models of all of them."""
    return [case.model for case in _suite().values()]


def suite_cases(operators: Collection[str]) -> dict[str, Case]:
    """The suite's cases of one node of these operators, by name."""
    cases = {}
    for name, case in _suite().items():
        if case.model.graph.node[0].op_type in operators:
            ((inputs, outputs),) = case.data_sets
            cases[name] = Case(case.model, list(map(_array, inputs)), list(map(_array, outputs)))
    return cases


def _array(value: Any) -> Any:
    """A case's value, which may be a TensorProto; what is no tensor stays."""
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
