"""The models: each is an ONNX model with one input and the result of ONNX Runtime."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.models.catalogue import MODELS as REAL_MODELS
from benchmarks.models.catalogue import numbers


@dataclass(frozen=True, eq=False)
class Model:
    """A model with one input and one output, both float32 with fixed sizes.

    trained: the corresponding scikit-learn model, or None.  tolerance: the allowed difference of results, relative to
    the largest value.
    """

    proto: onnx.ModelProto
    input: np.ndarray
    trained: object | None = None
    tolerance: float = 1e-5

    @property
    def name(self) -> str:
        return self.proto.graph.name

    @property
    def output_shape(self) -> tuple[int, ...]:
        return tuple(dim.dim_value for dim in self.proto.graph.output[0].type.tensor_type.shape.dim)

    @property
    def weights_bytes(self) -> int:
        return sum(numpy_helper.to_array(one).nbytes for one in self.proto.graph.initializer)

    @cached_property
    def expected(self) -> np.ndarray:
        import onnxruntime

        session = onnxruntime.InferenceSession(self.proto.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, {session.get_inputs()[0].name: self.input})[0]


def digits_mlp() -> Model:
    """Return a 64-32-10 network, trained by scikit-learn on its digits data set."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    images, labels = load_digits(return_X_y=True)
    with np.errstate(all="ignore"):  # importing emlearn makes NumPy raise floating-point errors
        network = MLPClassifier((32,), random_state=0, max_iter=500).fit(images[:1500] / 16, labels[:1500])
    nodes, values = [], {}
    for i, (weights, bias) in enumerate(zip(network.coefs_, network.intercepts_, strict=True)):
        values |= {f"weights{i}": weights, f"bias{i}": bias}
        nodes += [_node("Gemm", [f"relu{i - 1}" if i else "x", f"weights{i}", f"bias{i}"], f"gemm{i}")]
        nodes += [_node("Relu", [f"gemm{i}"], f"relu{i}")]
    nodes[-1] = _node("Softmax", [f"gemm{i}"], "y")
    sample = (images[1500:1501] / 16).astype(np.float32)
    return Model(_model("digits_mlp", nodes, values, sample.shape, (1, 10)), sample, network)


def digits_forest() -> Model:
    """Return a random forest of ten trees of depth 8, trained by scikit-learn on its digits data set.

    The ten outputs are the means of the class probabilities in the leaves.
    """
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier

    images, labels = load_digits(return_X_y=True)
    images = images * 16
    forest = RandomForestClassifier(10, max_depth=8, random_state=0).fit(images[:1500], labels[:1500])
    nodes, leaves = [], []
    for number, tree in enumerate(one.tree_ for one in forest.estimators_):
        children = zip(tree.feature, tree.threshold, tree.children_left, tree.children_right, strict=True)
        for node, (feature, threshold, left, right) in enumerate(children):
            is_leaf = left < 0
            mode = "LEAF" if is_leaf else "BRANCH_LEQ"
            split = (0, 0.0, 0, 0) if is_leaf else (int(feature), float(threshold), int(left), int(right))
            nodes.append((number, node, mode, *split))
            if is_leaf:
                leaves += [(number, node, k, float(part)) for k, part in enumerate(tree.value[node][0])]
    fields = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
    attributes = {f"nodes_{name}": list(values) for name, values in zip(fields, zip(*nodes, strict=True), strict=True)}
    fields = ("treeids", "nodeids", "ids", "weights")
    attributes |= {
        f"target_{name}": list(values) for name, values in zip(fields, zip(*leaves, strict=True), strict=True)
    }
    trees = _node("TreeEnsembleRegressor", ["x"], "y", aggregate_function="AVERAGE", n_targets=10, **attributes)
    trees.domain = "ai.onnx.ml"
    # emlearn rounds thresholds, and takes the other branch if a feature equals the threshold.  Thresholds are multiples
    # of 8, and adding 1 to the features avoids both differences.
    sample = (images[1500:1501] + 1).astype(np.float32)
    return Model(
        _model("digits_forest", [trees], {}, (1, 64), (1, 10)), sample, forest, tolerance=0.02
    )  # emlearn stores bytes in leaves


def lenet() -> Model:
    """Return LeNet-5 for 28 x 28 pixels, with ReLU, max pooling and random weights."""
    shapes = {"conv0": (6, 1, 5, 5), "conv1": (16, 6, 5, 5), "gemm0": (256, 120), "gemm1": (120, 84), "gemm2": (84, 10)}
    values, nodes, last = {}, [], "x"
    for seed, (name, shape) in enumerate(shapes.items()):
        is_conv = name.startswith("conv")
        fan_in, width = (np.prod(shape[1:]), shape[0]) if is_conv else shape
        values |= {f"{name}_w": numbers(seed, *shape) / np.sqrt(fan_in), f"{name}_b": numbers(10 + seed, width) / 10}
        nodes.append(_node("Conv" if is_conv else "Gemm", [last, f"{name}_w", f"{name}_b"], name))
        last = name
        if name != "gemm2":
            nodes.append(_node("Relu", [last], last := f"{name}_relu"))
        if is_conv:
            nodes.append(_node("MaxPool", [last], last := f"{name}_pool", kernel_shape=[2, 2], strides=[2, 2]))
        if name == "conv1":
            nodes.append(_node("Flatten", [last], last := "flat"))
    nodes.append(_node("Softmax", [last], "y"))
    return Model(_model("lenet", nodes, values, (1, 1, 28, 28), (1, 10)), numbers(20, 1, 1, 28, 28))


def lenet_int8() -> Model:
    """Return the 8-bit model that ONNX Runtime's quantization creates from `lenet`, with QLinearConv and QGemm."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Samples(CalibrationDataReader):
        def __init__(self) -> None:
            self.samples = iter([{"x": numbers(seed, 1, 1, 28, 28)} for seed in range(20, 28)])

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self.samples, None)

    real = lenet()
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "real.onnx"), Path(folder, "bytes.onnx")
        onnx.save(real.proto, source)
        quantize_static(source, made, Samples(), quant_format=QuantFormat.QOperator)
        proto = onnx.load(made)
    proto.graph.name = "lenet_int8"
    return Model(proto, real.input, tolerance=0.03)  # several steps of 1/256


def oww_alexa() -> Model:
    """Return a wake word detector, 1536-128-128-1, from a pip package."""
    real = REAL_MODELS["oww_alexa"]
    proto = onnx.load(real.path())
    proto.graph.name = "oww_alexa"
    (sample,) = real.cases()[0].values()
    return Model(proto, sample)


_OPSETS = (("", 17), ("ai.onnx.ml", 3))

MODELS: tuple[Callable[[], Model], ...] = (digits_mlp, digits_forest, lenet, lenet_int8, oww_alexa)


def _node(operator: str, inputs: list[str], output: str, **attributes) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, [output], name=output, **attributes)


def _model(name: str, nodes: list, values: dict[str, np.ndarray], x: tuple, y: tuple) -> onnx.ModelProto:
    ports = [helper.make_tensor_value_info(port, TensorProto.FLOAT, shape) for port, shape in (("x", x), ("y", y))]
    weights = [numpy_helper.from_array(value.astype(np.float32), key) for key, value in values.items()]
    graph = helper.make_graph(nodes, name, ports[:1], ports[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*one) for one in _OPSETS], ir_version=8)
