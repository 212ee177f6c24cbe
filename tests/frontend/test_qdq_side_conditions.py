"""Tests of the side conditions of QDQ rewrites, which docs/architecture/front-ends.md lists in a table.

For each condition of the table, models that break it must be imported without the rewrite, and must have the results of
ONNX Runtime without optimizations.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from frontend.onnx_answers import Machines, answers, assert_answers, onnxruntime_answers
from frontend.onnx_models import make_model, onnx
from onnx import helper
from support.documents import ROOT
from support.modes import FEWER_WAYS, assert_same_bits, machines_of_forms

from relvm.compiler.build import build
from relvm.frontend.onnx import from_onnx
from relvm.frontend.onnx.ops import qdq_fusion, quantized
from relvm.ir.expr import Module
from relvm.ir.visitor import structural_equal
from relvm.runtime.virtual_machine import VirtualMachine

RANDOM = np.random.default_rng(3)
F, NAN, INF = np.float32, np.float32(np.nan), np.float32(np.inf)
LARGEST = np.finfo(F).max


def bytes_of(dtype: str, *shape: int) -> np.ndarray:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return RANDOM.integers(low, high, shape, endpoint=True).astype(dtype)


def as_scale(value: Any) -> np.ndarray:
    return np.asarray(F(value) if isinstance(value, float) else value)


@dataclass(frozen=True, eq=False)
class Case:
    """A model in which the quantized tensor x is dequantized with `scale` and `zero`.  The result is "d".

    nodes: the operator, its inputs, outputs and attributes.  Outputs of the model are "y" and, if a node has it, "q".
    constants: initializers.   inputs: further inputs.   axis: the axis of DequantizeLinear.
    tolerance: the tolerance of results.   symbolic: whether the last size of x, and the first of other inputs, is n.
    in_onnxruntime: whether ONNX Runtime defines the result.
    """

    x: np.ndarray
    nodes: tuple[tuple[str, str, str, dict[str, Any]], ...]
    scale: Any = 0.25
    zero: Any = 3
    constants: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    axis: int | None = None
    opset: int = 21
    tolerance: float = 0.0
    symbolic: bool = False
    in_onnxruntime: bool = True

    def model(self) -> onnx.ModelProto:
        constants = {"s": as_scale(self.scale), **self.constants}
        if self.zero is not None:
            constants["z"] = np.asarray(self.zero).astype(self.x.dtype)
        names = "x s z" if self.zero is not None else "x s"
        rows = [("DequantizeLinear", names, "d", {} if self.axis is None else {"axis": self.axis}), *self.nodes]
        nodes = [helper.make_node(op, ins.split(" "), outs.split(" "), **more) for op, ins, outs, more in rows]
        shape = ["n" if self.symbolic and i == self.x.ndim - 1 else size for i, size in enumerate(self.x.shape)]
        inputs = [("x", self.x.dtype, shape)]
        for name, value in self.inputs.items():
            shape = ["n" if self.symbolic and i == 0 else size for i, size in enumerate(value.shape)]
            inputs.append((name, value.dtype, shape))
        outputs = [name for node in nodes for name in node.output if name in ("y", "q")]
        constants = {name: value for name, value in constants.items() if name not in self.inputs}
        return make_model(nodes, inputs, outputs, constants, self.opset)

    def feeds(self) -> list[np.ndarray]:
        return [self.x, *self.inputs.values()]


IMAGE = bytes_of("int8", 1, 2, 4, 6)
VECTOR = np.arange(-128, 128).astype(np.int8)
POOL: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}


def pooled(scale: Any = 0.25, **more: Any) -> Case:
    attributes = POOL | more.pop("attributes", {})
    outputs = "y i" if more.pop("with_indices", False) else "y"
    return Case(more.pop("x", IMAGE), (("MaxPool", "d", outputs, attributes),), scale, **more)


def requantized(scale: Any = 0.25, *, new: Any = None, new_zero: Any = 3, **more: Any) -> Case:
    """Return a case that quantizes again, with the same scale and zero point if the new ones are not stated."""
    x = more.pop("x", VECTOR)
    attributes = more.pop("attributes", {})
    zero = np.asarray(new_zero).astype(more.pop("dtype", x.dtype))
    constants = {"t": as_scale(scale if new is None else new), "u": zero}
    nodes = (("QuantizeLinear", "d t u", "q", attributes),)
    return Case(x, nodes, scale, constants=constants, **more)


def product(a: Any = 0.02, b: Any = 0.05, *, depth: int = 6, zero: Any = 3, **more: Any) -> Case:
    """Return a case that multiplies x, a matrix of `depth` columns, by a constant matrix of bytes."""
    x = more.pop("x", None)
    x = bytes_of("uint8", 3, depth) if x is None else x
    w = more.pop("w", None)
    w = bytes_of("uint8", depth, 4) if w is None else w
    w_axis, op = more.pop("w_axis", 1), more.pop("op", "MatMul")
    w_zero = np.asarray(more.pop("w_zero", np.full(np.shape(b), 2))).astype(w.dtype)
    constants = {"w": w, "ws": as_scale(b), "wz": w_zero}
    nodes = (("DequantizeLinear", "w ws wz", "e", {"axis": w_axis}), (op, "d e", "y", more.pop("attributes", {})))
    return Case(x, nodes, a, zero, constants, tolerance=more.pop("tolerance", 1e-4), **more)


def convolution(a: Any = 0.02, b: Any = 0.05, **more: Any) -> Case:
    w = more.pop("w", None)
    w = np.clip(bytes_of("int8", 3, 2, 2, 2), -100, 100) if w is None else w
    more.setdefault("w_zero", np.zeros(np.shape(b)))
    more.setdefault("x", bytes_of("uint8", 1, 2, 4, 5))
    return product(a, b, w=w, w_axis=more.pop("w_axis", 0), op="Conv", **more)


NEGATIVE_AXIS = F([0.25, -0.5])
DILATED = {"kernel_shape": [2], "strides": [1], "dilations": [4], "pads": [4, 4]}
SCALES_WITHOUT_ORDER = {"NaN": NAN, "infinite": INF, "overflow": LARGEST / 10}

# (rewrite, condition) in the order of the table -> models that break the condition, by name
BROKEN: dict[tuple[str, str], dict[str, Case]] = {
    ("all", "i8 or u8 bytes and an f32 scale"): {
        "int16": requantized(x=bytes_of("int16", 40)),
        "uint16": requantized(x=bytes_of("uint16", 40)),
        "f16 scale": requantized(np.float16(0.25)),
    },
    ("all", "no blocks"): {
        "blocks": Case(
            bytes_of("int8", 2, 4),
            (
                ("DequantizeLinear", "x bs bz", "b", {"axis": 1, "block_size": 2}),
                ("QuantizeLinear", "b bs bz", "q", {"axis": 1, "block_size": 2}),
            ),
            constants={"bs": F([[0.25, 0.5], [0.5, 1]]), "bz": bytes_of("int8", 2, 2)},
        ),
    },
    ("movement", "a single scale"): {
        "transposed": Case(IMAGE, (("Transpose", "d", "y", {}),), NEGATIVE_AXIS, [3, 4]),
        "pooled": pooled(NEGATIVE_AXIS, zero=[3, 4]),
    },
    ("movement", "the first output is the only one"): {"indices": pooled(with_indices=True)},
    ("MaxPool", "the scale is a positive constant"): {
        "negative": pooled(F(-0.25)),
        "zero": pooled(F(0)),
        "negative zero": pooled(F(-0.0)),
        "not constant": pooled(inputs={"s": np.asarray(F(-0.25))}),
    },
    ("MaxPool", "every dequantized element is finite"): {
        name: pooled(scale) for name, scale in SCALES_WITHOUT_ORDER.items()
    },
    ("MaxPool", "every window contains an element"): {
        "dilated": pooled(x=bytes_of("int8", 1, 1, 2), attributes=DILATED, in_onnxruntime=False),
    },
    ("restoration", "a single scale"): {
        "one for each row": requantized(F([0.25, 0.5]), x=bytes_of("int8", 3, 2), zero=[3, 4], new_zero=[3, 4]),
    },
    ("restoration", "the same dtype, scale and zero point"): {
        "dtype": requantized(x=np.abs(VECTOR[1:]), dtype="uint8"),
        "scale": requantized(new=F(0.5)),
        "opposite scale": requantized(new=F(-0.25)),
        "zero point": requantized(new_zero=4),
    },
    ("restoration", "the scale is a constant other than 0"): {
        "zero": requantized(F(0)),
        "not constant": Case(
            VECTOR, (("QuantizeLinear", "d s z", "q", {}),), inputs={"s": np.asarray(F(0))}, symbolic=True
        ),
    },
    ("restoration", "every dequantized element is finite"): {
        name: requantized(scale) for name, scale in SCALES_WITHOUT_ORDER.items()
    },
    ("restoration", "the quotient is f32"): {
        "f16 quotients": requantized(1000.0, attributes={"precision": onnx.TensorProto.FLOAT16}, opset=23),
    },
    ("product", "a single scale on the left, one for each column on the right"): {
        "rows": product(b=F([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), w_axis=0),
        "columns of the left side": product(F([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), zero=[1, 2, 3, 4, 5, 6]),
        "channels of x": convolution(F([0.1, 0.2]), zero=[1, 2]),
        "channels of w": convolution(b=F([0.1, 0.2]), w_axis=1),
    },
    ("product", "the scales are constants, and every dequantized element is finite"): {
        "NaN": product(NAN),
        "infinite": product(b=INF),
        "overflow": product(LARGEST / 10, F(1e-30)),
        "not constant": product(inputs={"s": np.asarray(F(0.5))}),
        "one NaN": product(b=F([1, 2, NAN, 3])),
        "convolution": convolution(NAN),
        "convolution with one infinite filter": convolution(b=F([1, INF, 2])),
    },
    ("product", "the product of the scales is a normal number, or a scale is 0"): {
        "underflow": product(F(1e-25), F(1e-20)),
        "overflow": product(F(1e30), F(1e30)),
        "one column": product(F(1e-20), F([1, 1e-20, 1, 1])),
        "convolution": convolution(F(1e-25), F(1e-20)),
    },
    ("product", "the sums fit into i32"): {
        "long": product(
            x=np.full((1, 40000), 255, np.uint8), w=np.full((40000, 1), 255, np.uint8), zero=0, tolerance=1e-3
        ),
        "symbolic": Case(
            bytes_of("uint8", 2, 5),
            (("DequantizeLinear", "v s", "e", {}), ("MatMul", "d e", "y", {})),
            inputs={"v": bytes_of("uint8", 5, 2)},
            symbolic=True,
            tolerance=1e-5,
        ),
    },
    ("Conv", "constant weights that fit i8 without their zero point"): {
        "unsigned": convolution(w=bytes_of("uint8", 3, 2, 2, 2) | np.uint8(128)),
    },
}

# Models for which the rewrite is applied.
REWRITTEN: dict[str, Case] = {
    "transposed": Case(IMAGE, (("Transpose", "d", "y", {}), ("QuantizeLinear", "y s z", "q", {})), F(-0.25)),
    "pooled": pooled(),
    "pooled without zero point": pooled(zero=None),
    "pooled by the smallest scale": pooled(F(1e-45)),
    "pooled with padding": pooled(attributes={"pads": [1, 1, 1, 1]}),
    "pooled with dilations": pooled(attributes={"dilations": [2, 2]}),
    "pooled to the end": pooled(x=bytes_of("uint8", 1, 2, 5, 5), attributes={"ceil_mode": 1}),
    "pooled, as much as before": pooled(attributes={"auto_pad": "SAME_UPPER"}),
    **{f"pooled in opset {opset}": pooled(opset=opset) for opset in (10, 11, 13, 19)},
    "requantized": requantized(),
    "requantized with a negative scale": requantized(F(-0.3)),
    "requantized with the smallest scale": requantized(F(1e-45)),
    "requantized with a large scale": requantized(LARGEST / 256),
    "product": product(),
    "product with negative scales": product(F(-0.02), F([-1, 2, -3, 4])),
    "product with a column of scale 0": product(b=F([0.1, 0, 0.2, 0.3])),
    "product of the greatest depth": product(depth=33025, w=bytes_of("uint8", 33025, 2)),
    "product with scales of rank 1": product(F([0.02]), F([0.05]), zero=[3]),
    "requantized with a scale of rank 1": requantized(F([0.25]), zero=[3], new_zero=[3]),
    "convolution": convolution(attributes={"pads": [1, 1, 1, 1]}),
    "convolution with negative scales": convolution(F(-0.02), F([-1, 2, -3])),
}

# Models around which no rewrite has been written.  The results must be right in any case.
OTHERS: dict[str, Case] = {
    "relu": Case(VECTOR, (("Relu", "d", "y", {}), ("QuantizeLinear", "y s z", "q", {})), F(-0.25)),
    "clip": Case(
        VECTOR,
        (("Clip", "d low high", "y", {}), ("QuantizeLinear", "y s z", "q", {})),
        F(-0.25),
        constants={"low": F(-3), "high": F(6)},
    ),
    "concatenation of different scales": Case(
        VECTOR,
        (
            ("DequantizeLinear", "x t u", "e", {}),
            ("Concat", "d e", "y", {"axis": 0}),
            ("QuantizeLinear", "y s z", "q", {}),
        ),
        constants={"t": F(0.5), "u": np.int8(4)},
    ),
    "used twice": Case(
        IMAGE,
        (("MaxPool", "d", "p", POOL), ("AveragePool", "d", "a", POOL), ("Sub", "p a", "y", {})),
        tolerance=1e-5,
    ),
    "reshaped with a scale for each row": Case(
        bytes_of("int8", 3, 4),
        (("Reshape", "d shape", "y", {}), ("QuantizeLinear", "y s3 z3", "q", {"axis": 0})),
        F([1, -2, 3]),
        [0, 1, 2],
        axis=0,
        constants={"shape": np.array([4, 3]), "s3": F([1, -2, 3, 4]), "z3": np.int8([0, 1, 2, 3])},
    ),
    "pooled twice": Case(
        IMAGE, (("MaxPool", "d", "p", POOL), ("MaxPool", "p", "y", POOL), ("QuantizeLinear", "y s z", "q", {})), F(-1)
    ),
    **{
        dtype: Case(
            IMAGE,
            (
                ("QuantizeLinear", "d s", "c", {"output_dtype": getattr(onnx.TensorProto, dtype)}),
                ("DequantizeLinear", "c s", "e", {}),
                ("MaxPool", "e", "y", POOL),
                ("QuantizeLinear", "y s z", "q", {}),
            ),
            -2.0,
        )
        for dtype in ("INT4", "UINT4", "INT16", "FLOAT8E4M3FN")
    },
    "f16": Case(IMAGE, (("MaxPool", "d", "y", POOL),), np.float16(-0.5)),
}

ALL = {f"{'/'.join(key)}/{name}": case for key, cases in BROKEN.items() for name, case in cases.items()}
ALL |= {f"rewritten/{name}": case for name, case in REWRITTEN.items()}
ALL |= {f"other/{name}": case for name, case in OTHERS.items()}


@cache
def module_of(name: str, rewritten: bool) -> Module:
    """Import a model, with QDQ rewrites or without: then no dequantized tensor is recorded."""
    with pytest.MonkeyPatch.context() as patch:
        if not rewritten:
            for module in (qdq_fusion, quantized):
                patch.setattr(module, "record_dequantized", lambda *args: None)
        return from_onnx(ALL[name].model())


@pytest.mark.parametrize("name", ALL)
def test_a_model_is_rewritten_only_if_the_conditions_hold(name: str) -> None:
    same = structural_equal(module_of(name, True), module_of(name, False))
    if not name.startswith("other/"):
        assert same == (not name.startswith("rewritten/"))


@cache
def built() -> dict[bool, Machines]:
    """Return machines with a function for each model, with rewrites and without."""
    made = {}
    for rewritten in (True, False):
        functions = [replace(module_of(name, rewritten)["main"], name=name) for name in ALL]
        made[rewritten] = machines_of_forms(Module(tuple(functions)), FEWER_WAYS)
    return made


@cache
def unfused() -> VirtualMachine:
    """Return a machine with a function for each model, with rewrites but without fusion."""
    functions = tuple(replace(module_of(name, True)["main"], name=name) for name in ALL)
    return VirtualMachine(build(Module(functions), target="bytecode", fused=False))


@pytest.mark.parametrize("name", ALL)
def test_results(name: str) -> None:
    """Rewrites that only move bytes have the same bits as without them.  All results are those of ONNX Runtime."""
    case = ALL[name]
    expected = onnxruntime_answers(case.model(), case.feeds()) if case.in_onnxruntime else None
    plain = answers(built()[False], name, case.feeds())
    results = answers(built()[True], name, case.feeds())
    results |= answers({("bytecode", "bytecode"): unfused()}, name, case.feeds())
    for target, got in results.items():
        if expected is not None:
            assert_answers(got, expected, rtol=case.tolerance, atol=case.tolerance)
        if not case.tolerance:
            assert_same_bits(got, plain.get(target, plain["c"]))


def test_the_documentation_lists_every_condition() -> None:
    page = (ROOT / "docs" / "architecture" / "front-ends.md").read_text()
    table = page.partition("| rewrite | condition |")[2].partition("\n\n")[0].split("\n")[2:]
    rows = [tuple(cell.strip() for cell in row.strip(" |").split("|")[:2]) for row in table]
    assert rows == list(BROKEN)
