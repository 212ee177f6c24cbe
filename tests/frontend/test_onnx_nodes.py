"""The ONNX suite's cases of single operators (onnx.backend.test), in both modes: neural operators.

`TABLE` says which operators, which inputs must be known when a model is imported (they become initializers), and which
cases are left out and why.  All cases are functions of one module, so that there is one build for each mode.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pytest
from modes import assert_same_bits, plain

from relvm import vm
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx
from relvm.ir.expr import Module

onnx = pytest.importorskip("onnx")
from onnx import numpy_helper  # noqa: E402  (after the check that onnx is there)
from onnx.backend.test.loader import load_model_tests  # noqa: E402


@dataclass(frozen=True)
class Operator:
    """known: the inputs, by number, that must be known.  skipped: case -> why relvm refuses it, part of what it
    says."""

    known: tuple[int, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)


_TRIGONOMETRY = ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh")
_ACTIVATIONS = ("HardSigmoid", "HardSwish", "PRelu", "Elu", "Selu", "Softplus", "Softsign", "Mish", "ThresholdedRelu")
_ACTIVATIONS += ("Gelu", "Swish", "Shrink", "LogSoftmax", "Hardmax", "Relu", "LeakyRelu", "Sigmoid", "Softmax")
_NORMALIZATIONS = ("BatchNormalization", "InstanceNormalization", "GroupNormalization", "LRN", "LayerNormalization")
_NORMALIZATIONS += ("RMSNormalization", "MeanVarianceNormalization", "LpNormalization")
_WINDOWS = ("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "Conv", "ConvTranspose")

TABLE: dict[str, Operator] = {
    **{name: Operator() for name in (*_TRIGONOMETRY, *_ACTIVATIONS, *_NORMALIZATIONS, *_WINDOWS)},
    "Celu": Operator(skipped={"test_celu_float16": "FLOAT16", "test_celu_bfloat16": "BFLOAT16"}),
    "Pad": Operator(known=(1, 3)),
    "Resize": Operator(known=(1, 2, 3)),
    "Upsample": Operator(known=(1,)),
    "DepthToSpace": Operator(),
    "SpaceToDepth": Operator(),
}


@cache
def cases() -> dict:
    """Case by name, for the operators of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = load_model_tests(kind="node")
    single = [case for case in loaded if case.model is not None and len(case.model.graph.node) == 1]
    return {case.name: case for case in single if case.model.graph.node[0].op_type in TABLE}


def operator_of(name: str) -> Operator:
    return TABLE[cases()[name].model.graph.node[0].op_type]


NAMES = sorted(cases())
RUNNING = [name for name in NAMES if name not in operator_of(name).skipped]


def model_and_inputs(name: str):
    """The case's model, the inputs that must be known made initializers, and the others' values."""
    case, known = cases()[name], operator_of(name).known
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    node, values = model.graph.node[0], {}
    for info, value in zip(case.model.graph.input, case.data_sets[0][0], strict=True):
        if any(i < len(node.input) and node.input[i] == info.name for i in known):
            model.graph.initializer.append(numpy_helper.from_array(value, info.name))
        else:
            values[info.name] = value
    return model, values


@cache
def machines() -> dict[tuple[str, str], vm.VirtualMachine]:
    """One machine for each way, with a function for each case."""
    functions = []
    for name in RUNNING:
        functions.append(replace(from_onnx(model_and_inputs(name)[0])["main"], name=name))
    ways = [("bytecode", "c"), ("compiled", "c"), ("bytecode", "numpy")]
    return {way: vm.VirtualMachine(vm.build(Module(tuple(functions)), *way)) for way in ways}


@pytest.mark.parametrize("name", RUNNING)
def test_case(name: str) -> None:
    inputs = list(model_and_inputs(name)[1].values())
    results = {way: plain(machine[name](*inputs)) for way, machine in machines().items()}
    assert_same_bits(results["bytecode", "c"], results["compiled", "c"])
    expected = cases()[name].data_sets[0][1]
    for target in ("c", "numpy"):
        result = results["bytecode", target]
        outputs = result if isinstance(result, tuple) else (result,)
        for got, want in zip(outputs, expected, strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=cases()[name].rtol, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in RUNNING])
def test_what_is_left_out_is_refused(name: str) -> None:
    with pytest.raises(RelvmUnsupportedError, match=operator_of(name).skipped[name]):
        from_onnx(model_and_inputs(name)[0])
