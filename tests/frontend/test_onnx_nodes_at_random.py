"""Tests of random ONNX nodes, compared with ONNX Runtime.

The nodes vary in opset, dtypes, shapes, attributes, symbolic sizes, and in which inputs are constants.  Kernels are
NumPy functions or bytecode.  The environment variable RELVM_ONNX_ROUNDS states the number of nodes of each operator."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from frontend.onnx_answers import assert_answers, onnxruntime_answers, outputs
from frontend.onnx_models import make_model, onnx
from modes import machines, plain
from onnx import defs, helper

from relvm.frontend.onnx import from_onnx

# Cases in which ONNX Runtime does not compute what ONNX defines.  The drafts below avoid them.
FAULTS_OF_ONNXRUNTIME = {
    "InstanceNormalization": "the result for a channel of one element is not exactly the bias",
    "NonZero": "the result for a tensor of rank 0 has the shape (1, n) instead of (0, n)",
    "ReduceLogSum": "the logarithm of integers is rounded down after an inexact computation",
    "ReduceLogSumExp": "the logarithm of integers is rounded down after an inexact computation",
}
ROUNDS = int(os.environ.get("RELVM_ONNX_ROUNDS", "8"))
NEWEST = 22  # the newest opset for which ONNX Runtime has all kernels
DTYPES = ("float32", "float64", "int32", "int64", "float32")
MOVED = (*DTYPES, "float16", "uint8", "int8", "uint16", "int16", "uint32", "uint64", "bool")  # of data movement


@dataclass
class Draft:
    """A node under construction.  arrays: its inputs, with None for an omitted input."""

    random: np.random.Generator
    arrays: list[np.ndarray | None] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1

    def number(self, low: int, high: int) -> int:
        """Draw an integer from `low` to `high`, both included."""
        return int(self.random.integers(low, high + 1))

    def one_of(self, *choices: Any) -> Any:
        return choices[self.number(0, len(choices) - 1)]

    def shape(self, least: int = 0, most: int = 4) -> list[int]:
        sizes = [self.number(1, 4) for _ in range(self.number(least, most))]
        if sizes and self.number(0, 9) == 0:
            sizes[self.number(0, len(sizes) - 1)] = 0
        return sizes

    def tensor(self, shape: list[int], dtype: str = "float32", low: float = -4, high: float = 4) -> np.ndarray:
        self.arrays.append(np.asarray(self.random.uniform(low, high, shape).round(1)).astype(dtype))
        return self.arrays[-1]

    def numbers(self, *values: int) -> None:
        self.arrays.append(np.array(values, np.int64))

    def axis(self, shape: list[int]) -> int:
        return self.number(-len(shape), len(shape) - 1)


def broadcast(draft: Draft, opset: int) -> None:
    shape, dtype = draft.shape(), draft.one_of(*DTYPES)
    for _ in range(2):
        sizes = [size if draft.number(0, 3) else 1 for size in shape]
        array = draft.tensor(sizes[draft.number(0, len(sizes)) if draft.number(0, 2) == 0 else 0 :], dtype)
        array[array == 0] = 1


def reduction(draft: Draft, opset: int) -> None:
    """Draw a reduction of a nonempty tensor, because ONNX Runtime does not reduce empty tensors without axes."""
    shape = [size or 1 for size in draft.shape()]
    draft.tensor(shape, draft.one_of(*DTYPES), 1)
    axes = [int(axis) - draft.one_of(0, len(shape)) for axis in draft.random.permutation(len(shape))]
    axes = axes[: draft.number(1, max(len(axes), 1))]
    if axes and opset < 18:
        draft.attributes["axes"] = axes
    elif axes:
        draft.numbers(*axes)
    draft.attributes["keepdims"] = draft.number(0, 1)


def reduction_of_floats(draft: Draft, opset: int) -> None:
    reduction(draft, opset)
    draft.arrays[0] = draft.arrays[0].astype(np.float32)


def reduction_by_input(draft: Draft, opset: int) -> None:
    """Draw a reduction whose axes are an input in every opset from 13 on."""
    reduction(draft, 18)


def position(draft: Draft, opset: int) -> None:
    shape = [size or 1 for size in draft.shape(1)]
    draft.tensor(shape, draft.one_of(*DTYPES))
    draft.attributes.update(axis=draft.axis(shape), keepdims=draft.number(0, 1))


def sliced(draft: Draft, opset: int) -> None:
    shape = draft.shape(1)
    draft.tensor(shape, draft.one_of(*DTYPES))
    axis, ends = draft.axis(shape), (-(2**63), -9, -2, -1, 0, 1, 2, 9, 2**62)
    for value in (draft.one_of(*ends), draft.one_of(*ends), axis, draft.one_of(1, 2, -1, -3)):
        draft.numbers(value)


def margin(draft: Draft, opset: int) -> None:
    shape = [size or 1 for size in draft.shape(1)]
    mode = draft.one_of("constant", "edge", "reflect")
    draft.tensor(shape)
    draft.numbers(*(draft.number(0, min(2, size - 1)) for size in shape * 2))
    draft.attributes["mode"] = mode


def gathered(draft: Draft, opset: int) -> None:
    shape = [size or 1 for size in draft.shape(1)]
    axis = draft.axis(shape)
    draft.tensor(shape, draft.one_of(*DTYPES))
    draft.arrays.append(draft.random.integers(-shape[axis], shape[axis], draft.shape(0, 2)))
    draft.attributes["axis"] = axis


def window(draft: Draft, opset: int) -> None:
    axes = draft.number(1, 3)
    sizes = [draft.number(3, 6) for _ in range(axes)]
    draft.tensor([draft.number(1, 2), draft.number(1, 3), *sizes])
    kernel = [draft.number(1, 3) for _ in sizes]
    draft.attributes.update(kernel_shape=kernel, strides=[draft.number(1, 2) for _ in sizes])
    if draft.number(0, 1):
        draft.attributes["pads"] = [draft.number(0, size - 1) for size in kernel * 2]


def convolution(draft: Draft, opset: int) -> None:
    window(draft, opset)
    channels, groups = draft.arrays[0].shape[1], draft.one_of(1, draft.arrays[0].shape[1])
    draft.tensor([groups * draft.number(1, 2), channels // groups, *draft.attributes["kernel_shape"]])
    draft.attributes["group"] = groups


def product(draft: Draft, opset: int) -> None:
    batch, (rows, inner, columns) = draft.shape(0, 2), (draft.number(1, 5) for _ in range(3))
    dtype = draft.one_of(*DTYPES)
    draft.tensor([*batch, rows, inner], dtype)
    draft.tensor([*(size if draft.number(0, 2) else 1 for size in batch), inner, columns], dtype)


def resized(draft: Draft, opset: int) -> None:
    sizes = [draft.number(1, 5) for _ in range(2)]
    draft.tensor(sizes)
    draft.arrays += [None, None]
    draft.numbers(*(draft.number(1, 7) for _ in sizes))
    how = draft.one_of("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    draft.attributes.update(mode=draft.one_of("nearest", "linear"), coordinate_transformation_mode=how)


def plain_tensor(draft: Draft, opset: int) -> None:
    draft.tensor(draft.shape())


def along_an_axis(draft: Draft, opset: int) -> None:
    shape = draft.shape(1)
    draft.tensor(shape)
    draft.attributes["axis"] = draft.axis(shape)


def moved(draft: Draft, opset: int) -> None:
    draft.tensor(draft.shape(), draft.one_of(*MOVED))


def positions_of_nonzeros(draft: Draft, opset: int) -> None:
    draft.tensor(draft.shape(1), draft.one_of(*MOVED))


def matrices(draft: Draft, opset: int) -> None:
    rows = draft.number(1, 4)
    draft.tensor([*draft.shape(0, 2), rows, rows])


def transposed(draft: Draft, opset: int) -> None:
    moved(draft, opset)
    if draft.arrays[0].ndim:
        draft.attributes["perm"] = [int(axis) for axis in draft.random.permutation(draft.arrays[0].ndim)]


def joined(draft: Draft, opset: int) -> None:
    shape, dtype = draft.shape(1), draft.one_of(*MOVED)
    axis = draft.axis(shape)
    for _ in range(draft.number(1, 3)):
        shape[axis] = draft.number(0, 3)
        draft.tensor(shape, dtype)
    draft.attributes["axis"] = axis


def reshaped(draft: Draft, opset: int) -> None:
    shape = [size or 1 for size in draft.shape()]
    draft.tensor(shape, draft.one_of(*MOVED))
    rest = int(np.prod(shape))
    first = draft.one_of(*(size for size in range(1, rest + 1) if rest % size == 0))
    draft.numbers(*draft.one_of((first, rest // first), (1, rest), (rest,), (-1, first), (first, -1, 1)))


def expanded(draft: Draft, opset: int) -> None:
    shape = draft.shape()
    draft.tensor([size if draft.number(0, 1) else 1 for size in shape], draft.one_of(*MOVED))
    draft.numbers(*([2] * draft.number(0, 1)), *shape)


def tiled(draft: Draft, opset: int) -> None:
    moved(draft, opset)
    draft.numbers(*(draft.number(0, 3) for _ in draft.arrays[0].shape))


def with_new_axes(draft: Draft, opset: int) -> None:
    moved(draft, opset)
    rank = draft.arrays[0].ndim + 2
    axes = draft.random.permutation(rank)[:2]
    draft.numbers(*(int(axis) - draft.one_of(0, rank) for axis in axes))


def without_axes(draft: Draft, opset: int) -> None:
    draft.tensor([2, 1, draft.number(0, 3), 1], draft.one_of(*MOVED))
    draft.numbers(*draft.one_of((1,), (3,), (1, 3), (-1,), (-3, -1)))


def in_parts(draft: Draft, opset: int) -> None:
    shape = draft.shape(1)
    axis = draft.axis(shape)
    parts = [draft.number(0, 3), draft.number(0, 3)]
    shape[axis] = sum(parts)
    draft.tensor(shape, draft.one_of(*DTYPES))
    draft.numbers(*parts)
    draft.attributes["axis"] = axis
    draft.outputs = 2


def largest(draft: Draft, opset: int) -> None:
    shape = [size or 1 for size in draft.shape(1)]
    axis = draft.axis(shape)
    draft.tensor(shape, draft.one_of(*DTYPES))
    draft.arrays[0] = draft.random.permutation(draft.arrays[0].size).astype(draft.arrays[0].dtype).reshape(shape)
    draft.numbers(draft.number(0, shape[axis]))
    draft.attributes.update(axis=axis, largest=draft.number(0, 1))
    draft.outputs = 2


def summed_up(draft: Draft, opset: int) -> None:
    shape = draft.shape(1)
    draft.tensor(shape, draft.one_of(*DTYPES))
    draft.arrays.append(np.array(draft.axis(shape), np.int64))
    draft.attributes.update(exclusive=draft.number(0, 1), reverse=draft.number(0, 1))


def selected(draft: Draft, opset: int) -> None:
    shape, dtype = draft.shape(), draft.one_of("float32", "int32", "int64", "uint8")
    draft.tensor(shape, "bool")
    draft.tensor([size if draft.number(0, 2) else 1 for size in shape], dtype)
    draft.tensor(shape[draft.number(0, len(shape)) :], dtype)


def limited(draft: Draft, opset: int) -> None:
    moved(draft, opset)
    dtype = draft.one_of(*DTYPES)
    draft.arrays[0] = draft.arrays[0].astype(dtype)
    draft.arrays += [np.array(limit, dtype) if draft.number(0, 2) else None for limit in (-1, 2)]


def gathered_elements(draft: Draft, opset: int) -> None:
    shape = [size or 1 for size in draft.shape(1)]
    axis = draft.axis(shape)
    draft.tensor(shape, draft.one_of(*MOVED))
    sizes = [draft.number(0, size) for size in shape]
    draft.arrays.append(draft.random.integers(-shape[axis], shape[axis], sizes))
    draft.attributes["axis"] = axis


def scattered(draft: Draft, opset: int) -> None:
    shape = [size or 1 for size in draft.shape(1)]
    axis = draft.axis(shape)
    dtype = draft.one_of(*DTYPES)
    draft.tensor(shape, dtype)
    sizes = [draft.number(0, size) for size in shape]
    sizes[axis] = min(sizes[axis], 1)  # a position is written once
    draft.arrays.append(draft.random.integers(-shape[axis], shape[axis], sizes))
    draft.tensor(sizes, dtype)
    draft.attributes["axis"] = axis


def triangle(draft: Draft, opset: int) -> None:
    draft.tensor(draft.shape(2), draft.one_of("float32", "float64", "int64", "bool"))
    if draft.number(0, 1):
        draft.arrays.append(np.array(draft.number(-5, 5), np.int64))
    draft.attributes["upper"] = draft.number(0, 1)


def powers(draft: Draft, opset: int) -> None:
    shape = draft.shape()
    draft.tensor(shape, draft.one_of("float32", "float64", "int32", "int64"), 1)
    draft.tensor(shape[draft.number(0, len(shape)) :], draft.one_of("float32", "float64", "int32", "int64"), 0, 3)


def quantized(draft: Draft, opset: int) -> None:
    draft.tensor(draft.shape(), low=-100, high=100)
    draft.arrays.append(np.array(draft.one_of(0.5, 1, 4), np.float32))
    draft.arrays.append(np.array(draft.number(0, 100), draft.one_of("uint8", "int8")))


def dequantized(draft: Draft, opset: int) -> None:
    dtype = draft.one_of("uint8", "int8")
    draft.tensor(draft.shape(), dtype, 0, 100)
    draft.arrays.append(np.array(draft.one_of(0.5, 1, 4), np.float32))
    draft.arrays.append(np.array(draft.number(0, 100), dtype))


def neighbors(draft: Draft, opset: int) -> None:
    draft.tensor([draft.number(0, 2), draft.number(0, 4), draft.number(0, 3), draft.number(1, 3)])
    draft.attributes["size"] = draft.one_of(1, 3, 5)


def image(draft: Draft, opset: int) -> None:
    draft.tensor([draft.number(0, 2), 4, 2 * draft.number(0, 2), 4])
    draft.attributes["blocksize"] = 2


def channels(draft: Draft, opset: int) -> None:
    draft.tensor([draft.number(1, 2), draft.number(1, 3), *(draft.number(2, 4) for _ in range(draft.number(1, 2)))])


def normalized(draft: Draft, opset: int) -> None:
    channels(draft, opset)
    for _ in range(2):
        draft.tensor([draft.arrays[0].shape[1]])


def nearby(draft: Draft, opset: int) -> None:
    shape = [size or 1 for size in draft.shape(1)]
    draft.tensor(shape)
    axis = draft.axis(shape)
    for _ in range(2):
        draft.tensor(shape[axis:] if axis < 0 else shape[axis - len(shape) :])
    draft.attributes["axis"] = axis


UNARY = ("Abs", "Exp", "Erf", "Sigmoid", "Floor", "Softplus", "Elu", "LeakyRelu", "Sign", "Ceil", "Round", "Neg")
UNARY += (
    "Relu",
    "Selu",
    "Celu",
    "Softsign",
    "HardSigmoid",
    "HardSwish",
    "ThresholdedRelu",
    "Mish",
    "Tanh",
    "Sin",
    "Cos",
)
UNARY += ("Atan", "Sinh", "Cosh", "Asinh", "IsNaN", "IsInf", "Shrink", "Gelu")
REDUCTIONS = ("Mean", "Max", "Min", "Prod", "Sum", "SumSquare", "L1", "L2")
COMPARED = ("Add", "Sub", "Mul", "Div", "Less", "Equal", "Greater", "Max", "Min", "GreaterOrEqual", "LessOrEqual")

OPERATORS: dict[str, Callable[[Draft, int], None]] = {
    **dict.fromkeys(COMPARED, broadcast),
    **{f"Reduce{name}": reduction for name in REDUCTIONS},
    "ReduceSum": reduction_by_input,
    "ReduceLogSum": reduction_of_floats,
    "ReduceLogSumExp": reduction_of_floats,
    **dict.fromkeys(("ArgMax", "ArgMin"), position),
    **dict.fromkeys(UNARY, plain_tensor),
    **dict.fromkeys(("Softmax", "LogSoftmax", "LpNormalization", "Hardmax", "Flatten"), along_an_axis),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), window),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), channels),
    **dict.fromkeys(("Identity", "Shape", "Size"), moved),
    **dict.fromkeys(("SpaceToDepth", "DepthToSpace"), image),
    "Clip": limited,
    "Concat": joined,
    "CumSum": summed_up,
    "DequantizeLinear": dequantized,
    "Det": matrices,
    "Expand": expanded,
    "GatherElements": gathered_elements,
    "InstanceNormalization": normalized,
    "LRN": neighbors,
    "LayerNormalization": nearby,
    "NonZero": positions_of_nonzeros,
    "Pow": powers,
    "QuantizeLinear": quantized,
    "Reshape": reshaped,
    "ScatterElements": scattered,
    "Split": in_parts,
    "Squeeze": without_axes,
    "Tile": tiled,
    "TopK": largest,
    "Transpose": transposed,
    "Trilu": triangle,
    "Unsqueeze": with_new_axes,
    "Where": selected,
    "Conv": convolution,
    "Gather": gathered,
    "MatMul": product,
    "Pad": margin,
    "Resize": resized,
    "Slice": sliced,
}


def versions(op: str) -> list[int]:
    """Return 13 and all later opsets up to NEWEST that change the definition of the operator."""
    found = {schema.since_version for schema in defs.get_all_schemas_with_history() if schema.name == op}
    first = max(13, min(found))
    return sorted({first} | {version for version in found if 13 < version <= NEWEST})


def known_size(name: str, array: np.ndarray, axis: int) -> int:
    return array.shape[axis]


def size_by_value(name: str, array: np.ndarray, axis: int) -> str | int:
    """Return a name for a size of the first input, which equal sizes share.  Channels and sizes of 1 have no name."""
    size = array.shape[axis]
    return f"n{size}" if name == "x0" and axis != 1 and size != 1 else size


def size_by_axis(name: str, array: np.ndarray, axis: int) -> str | int:
    """Return a name for a size of a tensor, which no other size has.  The length of a list of sizes has no name."""
    is_list = array.dtype == np.int64 and array.ndim == 1 and name != "x0"
    return array.shape[axis] if is_list else f"{name}_{axis}"


def made(op: str, seed: int) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    """Return a model of one random node, and its inputs.  seed: the seed of all random choices."""
    draft = Draft(np.random.default_rng([seed, *op.encode()]))
    opset = draft.one_of(*versions(op))
    OPERATORS[op](draft, opset)
    named = [(f"x{i}", array) for i, array in enumerate(draft.arrays)]
    are_lifted = draft.number(0, 2)  # 0: no operands but the first, 1: some, 2: all
    given = [
        name
        for name, array in named
        if array is not None and (name == "x0" or are_lifted == 2 or (are_lifted == 1 and draft.number(0, 1)))
    ]
    symbolic = draft.one_of(known_size, size_by_value, size_by_axis)
    inputs = [
        (name, array.dtype, [symbolic(name, array, axis) for axis in range(array.ndim)])
        for name, array in named
        if array is not None and name in given
    ]
    constants = {name: array for name, array in named if array is not None and name not in given}
    outputs = [f"y{i}" for i in range(draft.outputs)]
    node = helper.make_node(op, ["" if array is None else name for name, array in named], outputs, **draft.attributes)
    return make_model([node], inputs, outputs, constants, opset), [array for name, array in named if name in given]


def test_the_table_of_faults_names_operators() -> None:
    assert FAULTS_OF_ONNXRUNTIME.keys() <= OPERATORS.keys()


@pytest.mark.parametrize("op", OPERATORS)
def test_as_onnxruntime_has_it(op: str) -> None:
    ran = 0
    for seed in range(ROUNDS):
        model, arrays = made(op, seed)
        try:
            wanted = onnxruntime_answers(model, arrays)
        except Exception:  # ONNX Runtime has no kernel for the dtype
            continue
        target = "numpy" if seed % 2 else "bytecode"
        ((machine),) = machines(from_onnx(model), [("bytecode", target)]).values()
        assert_answers(outputs(plain(machine["main"](*arrays))), wanted, 1e-4, 1e-5)
        ran += 1
    assert ran > ROUNDS // 3
