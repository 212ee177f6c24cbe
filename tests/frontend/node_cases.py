"""The ONNX suite's cases of single operators (onnx.backend.test), as one module for each family of operators.

A table says which operators, which inputs must be known when a model is imported (they become initializers), and which
cases are left out and why; those of element types that relvm does not have are left out, too.  All cases of a table
are functions of one module, so that there is one build for each mode.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from modes import assert_same_bits, plain

from relvm import vm
from relvm.frontend.onnx import from_onnx
from relvm.ir.expr import Module


@dataclass(frozen=True)
class Operator:
    """known: the inputs, by number, that must be known.  skipped: case -> why relvm refuses it, part of what it
    says."""

    known: tuple[int, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)


_ELEMENT_TYPES = ("BOOL", "FLOAT", "DOUBLE", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
_TRIGONOMETRY = ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh")
_ACTIVATIONS = ("HardSigmoid", "HardSwish", "PRelu", "Elu", "Selu", "Softplus", "Softsign", "Mish", "ThresholdedRelu")
_ACTIVATIONS += ("Gelu", "Celu", "Swish", "Shrink", "LogSoftmax", "Hardmax", "Relu", "LeakyRelu", "Sigmoid", "Softmax")
_NORMALIZATIONS = ("BatchNormalization", "InstanceNormalization", "GroupNormalization", "LRN", "LayerNormalization")
_NORMALIZATIONS += ("RMSNormalization", "MeanVarianceNormalization", "LpNormalization")
_WINDOWS = ("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "Conv", "ConvTranspose")

NEURAL_OPERATORS: dict[str, Operator] = {
    **{name: Operator() for name in (*_TRIGONOMETRY, *_ACTIVATIONS, *_NORMALIZATIONS, *_WINDOWS)},
    "Col2Im": Operator(known=(1, 2)),
    "Pad": Operator(known=(1, 3)),
    "Resize": Operator(known=(1, 2, 3)),
    "Upsample": Operator(known=(1,)),
    "DepthToSpace": Operator(),
    "SpaceToDepth": Operator(),
}

_POSITIONS = ("GatherElements", "GatherND", "ScatterElements", "ScatterND", "Scatter", "TopK", "NonZero", "Compress")
_LOGIC = ("IsNaN", "IsInf", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift", "Mod")
_SIZES = ("Size", "Shape", "Einsum", "Trilu", "EyeLike", "ArgMax", "ArgMin", "Range", "CastLike", "Tile", "OneHot")
_SPECTRA = ("HannWindow", "HammingWindow", "BlackmanWindow")
_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "SumSquare", "Sum", "Mean", "Max", "Min", "Prod")

INDEXING_OPERATORS: dict[str, Operator] = {
    **{name: Operator() for name in (*_POSITIONS, *_LOGIC, *_SIZES, *_SPECTRA)},
    "DFT": Operator(known=(1, 2)),
    "STFT": Operator(known=(1, 3)),
    **{f"Reduce{name}": Operator(known=(1,)) for name in _REDUCTIONS},
    **{name: Operator(known=(1,)) for name in ("Split", "CumSum", "CumProd")},
}

ATTENTION_OPERATORS = {name: Operator() for name in ("Attention", "RotaryEmbedding", "SwiGLU")}


@cache
def _single_cases() -> list[Any]:
    """The suite's cases of one node."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():  # of NumPy, about overflow that the cases mean
        warnings.simplefilter("ignore")
        loaded = load_model_tests(kind="node")
    return [case for case in loaded if case.model is not None and len(case.model.graph.node) == 1]


def _has_known_dtypes(case: Any) -> bool:
    from onnx import TensorProto

    known = {TensorProto.DataType.Value(name) for name in _ELEMENT_TYPES}
    graph = case.model.graph
    return all(info.type.tensor_type.elem_type in known for info in (*graph.input, *graph.output))


def _array(value: Any) -> np.ndarray:
    """A case's value, which may be a TensorProto."""
    from onnx import numpy_helper

    return numpy_helper.to_array(value) if hasattr(value, "HasField") else np.asarray(value)


class Suite:
    """The cases of a table's operators, and the machines that run them."""

    def __init__(self, table: dict[str, Operator]) -> None:
        self.table = table
        self.cases = {c.name: c for c in _single_cases() if c.model.graph.node[0].op_type in table}
        self.skipped = {case: reason for operator in table.values() for case, reason in operator.skipped.items()}
        self.skipped |= {name: "element type" for name, case in self.cases.items() if not _has_known_dtypes(case)}
        assert self.skipped.keys() <= self.cases.keys()
        self.running = sorted(self.cases.keys() - self.skipped.keys())

    def model_and_inputs(self, name: str) -> tuple[Any, list[np.ndarray]]:
        """The case's model, the inputs that must be known made initializers, and the others' values."""
        import onnx

        case, model, values = self.cases[name], onnx.ModelProto(), []
        model.CopyFrom(case.model)
        node = model.graph.node[0]
        known = [node.input[i] for i in self.table[node.op_type].known if i < len(node.input)]
        for info, value in zip(case.model.graph.input, map(_array, case.data_sets[0][0]), strict=True):
            if info.name in known:
                model.graph.initializer.append(onnx.numpy_helper.from_array(value, info.name))
            else:
                values.append(value)
        return model, values

    @cached_property
    def machines(self) -> dict[tuple[str, str], vm.VirtualMachine]:
        """One machine for each way, with a function for each case."""
        functions = [replace(from_onnx(self.model_and_inputs(n)[0])["main"], name=n) for n in self.running]
        ways = [("bytecode", "c"), ("compiled", "c"), ("bytecode", "numpy")]
        return {way: vm.VirtualMachine(vm.build(Module(tuple(functions)), *way)) for way in ways}

    def check(self, name: str) -> None:
        """The case gives what the suite says: on both targets, and in both modes to the last bit."""
        inputs = self.model_and_inputs(name)[1]
        results = {way: plain(machine[name](*inputs)) for way, machine in self.machines.items()}
        assert_same_bits(results["bytecode", "c"], results["compiled", "c"])
        case = self.cases[name]
        for target in ("c", "numpy"):
            result = results["bytecode", target]
            outputs = result if isinstance(result, tuple) else (result,)
            for got, want in zip(outputs, map(_array, case.data_sets[0][1]), strict=True):
                assert got.dtype == want.dtype and got.shape == want.shape
                np.testing.assert_allclose(got, want, rtol=case.rtol, atol=1e-5)
