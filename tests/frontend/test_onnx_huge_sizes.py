"""Small ONNX files with huge sizes are quickly imported as a small program, or rejected with a typed error."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from relvm.errors import RelvmError
from relvm.frontend.onnx import from_onnx

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
SIZES = (10**5, 10**8, 1 << 40, (1 << 62) + 1)
MEMORY = 3 << 30  # limit on the address space of the process that imports all cases
SECONDS = 100

_TREE = {
    **{f"nodes_{name}": [0] for name in ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")},
    **{f"target_{name}": [0] for name in ("ids", "nodeids", "treeids")},
    "nodes_values": [0.0],
    "nodes_modes": ["LEAF"],
    "target_weights": [1.0],
}
_GRAMS = {"mode": "TF", "min_gram_length": 1, "ngram_counts": [0], "pool_int64s": [3]}
_CUBE = [1, 1, 4, 4]


def cases(n: int) -> dict[str, tuple]:
    """Return, by name, the operator, inputs and attributes of nodes whose sizes depend on `n`.

    An input is the shape of a float input (a tuple), a constant, or None.
    """
    return {
        "BlackmanWindow": ("BlackmanWindow", [n], {}),
        "Bernoulli": ("Bernoulli", [(n,)], {}),
        "CenterCropPad": ("CenterCropPad", [np.ones(3, np.float32), [n]], {}),
        "Col2Im": ("Col2Im", [(1, n, 4), [n, 2], [n, 1]], {}),
        "ConstantOfShape": ("ConstantOfShape", [[n]], {}),
        "ConvTranspose": ("ConvTranspose", [(1, 1, 3, 3), (1, 1, 3, 3)], {"strides": [n, n]}),
        "DFT": ("DFT", [(1, 4, 1), n], {}),
        "DeformConv": ("DeformConv", [(1, 1, n + 5, 5), (1, 1, n, 1), (1, 2 * n, 6, 5)], {}),
        "Expand": ("Expand", [np.ones(1, np.float32), [n]], {}),
        "EyeLike": ("EyeLike", [(n, n)], {}),
        "GRU": ("GRU", [(2, 1, 3), (1, 3 * n, 3), (1, 3 * n, n)], {"hidden_size": n}),
        "HannWindow": ("HannWindow", [n], {}),
        "LSTM": ("LSTM", [(2, 1, 3), (1, 4 * n, 3), (1, 4 * n, n)], {"hidden_size": n}),
        "MaxPool": ("MaxPool", [(1, 1, n + 3, n + 3)], {"kernel_shape": [n, n]}),
        "MelWeightMatrix": ("MelWeightMatrix", [n, n, 16000, np.float32(0), np.float32(8000)], {}),
        "Multinomial": ("Multinomial", [(1, 4)], {"sample_size": n}),
        "OneHot": ("OneHot", [[1], n, np.array([0, 1], np.float32)], {}),
        "Pad": ("Pad", [np.ones(3, np.float32), [n, n]], {}),
        "RNN": ("RNN", [(2, 1, 3), (1, n, 3), (1, n, n)], {"hidden_size": n}),
        "RandomNormal": ("RandomNormal", [], {"shape": [n]}),
        "Range": ("Range", [0, n, 1], {}),
        "Resize, antialias": ("Resize", [(1, 1, n, 4), None, np.float32([1, 1, 1e-7, 1])], {"antialias": 1}),
        "Resize, cubic": ("Resize", [_CUBE, None, None, [1, 1, n, 4]], {"mode": "cubic"}),
        "STFT": ("STFT", [(1, n, 1), 1, None, n], {}),
        "SplitToSequence, one each": ("SplitToSequence", [(n,)], {}),
        "SplitToSequence, two each": ("SplitToSequence", [(n,), 2], {}),
        "Tile": ("Tile", [np.ones(7, np.float32), [n]], {}),
        "TfIdf, indices": (
            "TfIdfVectorizer",
            [[1, 2]],
            {**_GRAMS, "max_gram_length": 1, "max_skip_count": 0, "ngram_indexes": [n]},
        ),
        "TfIdf, skips": (
            "TfIdfVectorizer",
            [[1, 2]],
            {**_GRAMS, "max_gram_length": n, "max_skip_count": n, "ngram_indexes": [0]},
        ),
        "trees": ("ai.onnx.ml.TreeEnsembleRegressor", [(2, 3)], {**_TREE, "n_targets": n}),
    }


def model(operator: str, inputs: list, attributes: dict) -> ModelProto:
    """Return a model of one node."""
    domain, _, op = operator.rpartition(".")
    names, given, constants = [], [], []
    for i, value in enumerate(inputs):
        names.append("" if value is None else f"x{i}")
        if isinstance(value, tuple) or value is _CUBE:
            given.append(helper.make_tensor_value_info(f"x{i}", F32, list(value)))
        elif value is not None:
            array = value if isinstance(value, np.ndarray | np.generic) else np.array(value, np.int64)
            constants.append(numpy_helper.from_array(np.asarray(array), f"x{i}"))
    node = helper.make_node(op, names, ["y"], domain=domain, **attributes)
    result = helper.make_value_info("y", helper.make_tensor_type_proto(F32, None))
    if op == "SplitToSequence":
        result = helper.make_tensor_sequence_value_info("y", F32, None)
    graph = helper.make_graph([node], "g", given, [result], constants)
    opsets = [helper.make_opsetid("", 20), *([helper.make_opsetid(domain, 3)] if domain else [])]
    return helper.make_model(graph, opset_imports=opsets)


def main() -> None:
    """Import each case with limited memory.  Print the cases that were neither imported nor rejected."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for n in SIZES:
        for name, case in cases(n).items():
            try:
                from_onnx(model(*case))
            except RelvmError as error:
                assert "the node is malformed" not in str(error), f"{name} of {n}: {error}"
            except ValueError as error:  # protobuf or NumPy cannot represent the number, so there is no such model
                assert n > 1 << 61, f"{name} of {n}: {error}"


def test_huge_sizes_take_neither_time_nor_memory() -> None:
    command = [sys.executable, "-P", __file__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize(("name", "message"), [("trees", "at most 65536"), ("DFT", "expected 1 to 16777216")])
def test_rejected_sizes_are_named(name: str, message: str) -> None:
    with pytest.raises(RelvmError, match=message):
        from_onnx(model(*cases(1 << 40)[name]))


if __name__ == "__main__":
    main()
