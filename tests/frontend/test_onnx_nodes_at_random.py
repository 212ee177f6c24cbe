"""Tests of random ONNX nodes, compared with ONNX Runtime.

The nodes vary in opset, dtypes, shapes, attributes, symbolic sizes, and in which inputs are constants."""

from __future__ import annotations

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

ROUNDS = 12
NEWEST = 22  # the newest opset for which ONNX Runtime has all kernels
DTYPES = ("float32", "float64", "int32", "int64", "float32")


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


OPERATORS: dict[str, Callable[[Draft, int], None]] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Less", "Equal", "Max", "GreaterOrEqual"), broadcast),
    **{f"Reduce{name}": reduction for name in ("Mean", "Max", "Prod", "SumSquare", "L1", "L2")},
    **dict.fromkeys(("ArgMax", "ArgMin"), position),
    **dict.fromkeys(("Abs", "Exp", "Erf", "Sigmoid", "Floor", "Softplus", "Elu", "LeakyRelu", "Sign"), plain_tensor),
    **dict.fromkeys(("Softmax", "LogSoftmax", "LpNormalization"), along_an_axis),
    **dict.fromkeys(("MaxPool", "AveragePool"), window),
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
    return sorted({13} | {version for version in found if 13 < version <= NEWEST})


def made(op: str, seed: int) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    """Return a model of one random node, and its inputs.  seed: the seed of all random choices."""
    draft = Draft(np.random.default_rng([seed, *op.encode()]))
    opset = draft.one_of(*versions(op))
    OPERATORS[op](draft, opset)
    named = [(f"x{i}", array) for i, array in enumerate(draft.arrays)]
    given = [name for name, array in named if array is not None and (name == "x0" or draft.number(0, 1))]
    symbolic = draft.number(0, 1)
    inputs = [
        (name, array.dtype, [f"n{size}" if symbolic and name == "x0" and axis != 1 and size != 1 else size
                             for axis, size in enumerate(array.shape)])
        for name, array in named if name in given
    ]  # fmt: skip
    constants = {name: array for name, array in named if array is not None and name not in given}
    node = helper.make_node(op, ["" if array is None else name for name, array in named], ["y"], **draft.attributes)
    return make_model([node], inputs, ["y"], constants, opset), [array for name, array in named if name in given]


@pytest.mark.parametrize("op", OPERATORS)
def test_as_onnxruntime_has_it(op: str) -> None:
    ran = 0
    for seed in range(ROUNDS):
        model, arrays = made(op, seed)
        try:
            wanted = onnxruntime_answers(model, arrays)
        except Exception:  # ONNX Runtime has no kernel for the dtype
            continue
        ((machine),) = machines(from_onnx(model), [("bytecode", "numpy")]).values()
        assert_answers(outputs(plain(machine["main"](*arrays))), wanted, 1e-4, 1e-5)
        ran += 1
    assert ran > ROUNDS // 3
