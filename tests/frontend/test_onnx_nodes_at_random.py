"""Tests of random ONNX nodes, compared with ONNX Runtime, or with ONNX's reference if ONNX Runtime has no kernel.

The nodes vary in opset, dtypes, shapes, attributes, symbolic sizes, and in which inputs are constants.  Kernels are
NumPy functions or bytecode.  The environment variable RELVM_ONNX_ROUNDS states the number of nodes of each operator."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pytest
from frontend.drafts.draft import Draft
from frontend.drafts.operators import OPERATORS
from frontend.onnx_answers import assert_answers, onnxruntime_answers, outputs
from frontend.onnx_models import make_model, onnx
from onnx import defs, helper
from onnx.reference import ReferenceEvaluator
from support.modes import machines, plain

from relvm.frontend.onnx import from_onnx

# Cases in which ONNX Runtime does not compute what ONNX defines.  The drafts avoid them.
FAULTS_OF_ONNXRUNTIME = {
    "Dropout": "before opset 12, the mask is false where nothing is dropped",
    "GridSample": "cubic interpolation at a border replicates other elements than those at the border",
    "InstanceNormalization": "the result for a channel of one element is not exactly the bias",
    "MeanVarianceNormalization": "the result for one element is NaN instead of 0",
    "NonZero": "the result for a tensor of rank 0 has the shape (1, n) instead of (0, n)",
    "ReduceLogSum": "the logarithm of integers is rounded down after an inexact computation",
    "ReduceLogSumExp": "the logarithm of integers is rounded down after an inexact computation",
    "ReduceProd": "a product of integers that exceeds their range is the largest integer",
    "Resize": "scales are applied to align_corners after the size of the result has been rounded down",
}
ROUNDS = int(os.environ.get("RELVM_ONNX_ROUNDS", "8"))
OLDEST, NEWEST = 7, 22  # the range of opsets for which ONNX Runtime has all kernels


def versions(op: str) -> list[int]:
    """Return the opsets from OLDEST to NEWEST with different definitions of the operator, or only its first opset."""
    found = {
        schema.since_version
        for schema in defs.get_all_schemas_with_history()
        if schema.name == op and schema.domain == "" and not schema.deprecated
    }
    first = max(OLDEST, min(found))
    return sorted({first} | {version for version in found if first < version <= NEWEST})


def known_size(name: str, array: np.ndarray, axis: int) -> int:
    return array.shape[axis]


def size_by_value(name: str, array: np.ndarray, axis: int) -> str | int:
    """Return a name for a size of the first input, which equal sizes share.  Channels and sizes of 1 have no name."""
    size = array.shape[axis]
    return f"n{size}" if name == "x0" and axis != 1 and size != 1 else size


def size_by_axis(name: str, array: np.ndarray, axis: int) -> str | int:
    """Return a name for a size of a tensor, which no other size has."""
    return f"{name}_{axis}"


def made(op: str, seed: int) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    """Return a model of one random node, and its inputs.  seed: the seed of all random choices."""
    random = np.random.default_rng([seed, *op.encode()])
    draft = Draft(random, int(random.choice(versions(op))))
    OPERATORS[op](draft)
    named = [(f"x{i}", array) for i, array in enumerate(draft.arrays)]
    are_lifted = draft.number(0, 2)  # 0: no operands but the first, 1: some, 2: all
    given = [
        name
        for name, array in named
        if array is not None and (name == "x0" or are_lifted == 2 or (are_lifted == 1 and draft.number(0, 1)))
    ]
    symbolic = draft.one_of(known_size, size_by_value, size_by_axis)
    inputs = [
        (name, array.dtype, [(known_size if i in draft.known else symbolic)(name, array, k) for k in range(array.ndim)])
        for i, (name, array) in enumerate(named)
        if array is not None and name in given
    ]
    constants = {name: array for name, array in named if array is not None and name not in given}
    outputs = [f"y{i}" for i in range(draft.outputs)]
    operands = ["" if array is None else name for name, array in named]
    nodes = []
    if draft.sequence:
        items, operands = operands[: draft.sequence], ["items", *operands[draft.sequence :]]
        nodes.append(helper.make_node("SequenceConstruct", items, ["items"]))
    nodes.append(helper.make_node(op, operands, outputs, **draft.attributes))
    arrays = [array for name, array in named if array is not None and name in given]
    return make_model(nodes, inputs, outputs, constants, draft.opset), arrays


def is_valid(model: onnx.ModelProto) -> bool:
    """Return whether the node has the dtypes that ONNX defines for its opset."""
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError:
        return False
    return True


def expected_answers(model: onnx.ModelProto, arrays: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """Return the outputs in ONNX Runtime or ONNX's reference, or None if both do not support the node."""
    try:
        return onnxruntime_answers(model, arrays)
    except Exception:  # ONNX Runtime has no kernel for the opset or the dtype
        pass
    names = [item.name for item in model.graph.input]
    try:
        return ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))
    except Exception:  # nor has the reference
        return None


def test_the_table_of_faults_names_operators() -> None:
    assert FAULTS_OF_ONNXRUNTIME.keys() <= OPERATORS.keys()


@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_the_results_are_as_defined(op: str) -> None:
    ran = 0
    for seed in range(ROUNDS):
        model, arrays = made(op, seed)
        if not is_valid(model):
            continue
        wanted = expected_answers(model, arrays)
        if wanted is None:
            continue
        target = "numpy" if seed % 2 else "bytecode"
        ((machine),) = machines(from_onnx(model), [("bytecode", target)]).values()
        assert_answers(outputs(plain(machine["main"](*arrays))), wanted, 1e-4, 1e-5)
        ran += 1
    assert ran > ROUNDS // 3
