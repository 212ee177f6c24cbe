"""Dynamic and static quantization with the tools of ONNX Runtime (onnxruntime.quantization)."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmUnsupportedError
from relvm.quantization.graphs import FLOAT, all_nodes, attribute, axes_of, sort_nodes

# ONNX Runtime also has quantized forms of LSTM and Attention, but these are operators of its own domain.
_DYNAMIC = ["Conv", "MatMul", "Gemm", "Gather"]
_WARNINGS, _ERRORS = 2, 3  # log levels of ONNX Runtime, the first of which is its default
_DOUBLE = 11  # TensorProto.DOUBLE
_NORMALIZATIONS = {"BatchNormalization", "InstanceNormalization", "LayerNormalization"}  # computed with floats anyway


def prepare(model: Any) -> Any:
    """Return a form of a model that the tools can quantize.

    Constant expressions are folded, batch normalization is fused, all nodes have names, and Gemm and shared weights are
    rewritten.

    model: an onnx.ModelProto.
    """
    import onnx
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with TemporaryDirectory() as folder, _quiet(), _onnxruntime_errors("cannot read the model"):
        source, target = Path(folder, "model.onnx"), Path(folder, "prepared.onnx")
        _save(model, source)
        quant_pre_process(
            str(source),
            str(target),
            skip_symbolic_shape=True,
            save_as_external_data=True,
            all_tensors_to_one_file=True,
            external_data_location="prepared.data",
        )
        model = onnx.load(target)
    for number, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}_{number}"
    _normalize_gemms(model.graph)
    _copy_shared_weights(model.graph)
    return model


def quantize_dynamic(prepared: Any) -> Any:
    """Quantize weights to u8, and activations to u8 with a range that each run computes.

    Weights of u8 are exact on every processor: on x86 processors without VNNI instructions, the sums that ONNX Runtime
    computes of products of u8 and i8 saturate.

    prepared: the result of `prepare`.
    """
    infinite, batches = _with_infinite_constants(prepared.graph), _batch_products(prepared.graph)
    result = _dynamic(prepared, per_channel=True, nodes_to_exclude=[*infinite, *batches])
    batches = [name for name in batches if name not in infinite]
    return _dynamic(result, per_channel=False, nodes_to_quantize=batches) if batches else result


def _batch_products(graph: Any) -> list[str]:
    """Return the names of the matrix products with several matrices as weights.

    ONNX Runtime can run such products only if all matrices have the same scale.
    """
    ranks = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    return [node.name for node in graph.node if node.op_type == "MatMul" and ranks.get(node.input[1], 0) > 2]


def _dynamic(model: Any, **options: Any) -> Any:
    from onnxruntime import quantization

    with TemporaryDirectory() as folder, _quiet(), _onnxruntime_errors("cannot quantize the model"):
        source, target = Path(folder, "model.onnx"), Path(folder, "quantized.onnx")
        _save(model, source)
        quantization.quantize_dynamic(
            source,
            target,
            op_types_to_quantize=_DYNAMIC,
            weight_type=quantization.QuantType.QUInt8,
            use_external_data_format=True,
            extra_options={"WeightSymmetric": True},
            **options,
        )
        return _loaded(target)


def quantize_static(prepared: Any, samples: Sequence[Mapping[str, np.ndarray]]) -> Any:
    """Quantize weights and activations to i8, with the ranges of the activations in the runs on `samples`.

    prepared: the result of `prepare`.   samples: inputs by name.
    """
    from onnxruntime import quantization
    from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

    class Samples(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter(samples)

        def get_next(self) -> Mapping[str, np.ndarray] | None:
            return next(self.rest, None)

    with TemporaryDirectory() as folder, _quiet(), _onnxruntime_errors("cannot quantize the model"):
        source, target = Path(folder, "model.onnx"), Path(folder, "quantized.onnx")
        _save(prepared, source)
        quantization.quantize_static(
            source,
            target,
            Samples(),
            op_types_to_quantize=sorted({*QDQRegistry, *QLinearOpsRegistry} - _NORMALIZATIONS),
            nodes_to_exclude=_unquantizable(prepared.graph),
            per_channel=True,
            activation_type=quantization.QuantType.QInt8,
            weight_type=quantization.QuantType.QInt8,
            use_external_data_format=True,
        )
        return _loaded(target)


def _normalize_gemms(graph: Any) -> None:
    """Rewrite Gemm such that alpha and beta are 1, and the bias is a constant vector, in place.

    The tools quantize only this form correctly.  Other biases become additions.
    """
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    nodes: list[Any] = []
    for node in graph.node:
        nodes.append(node)
        if node.op_type == "Gemm" and node.input[1] in tensors and tensors[node.input[1]].data_type == FLOAT:
            nodes += _normalize_gemm(graph, node, tensors)
    del graph.node[:]
    graph.node.extend(nodes)
    read = {name for node in all_nodes(graph) for name in node.input} | {output.name for output in graph.output}
    for tensor in [each for each in graph.initializer if each.name not in read]:
        graph.initializer.remove(tensor)


def _normalize_gemm(graph: Any, node: Any, tensors: Mapping[str, Any]) -> list[Any]:
    """Rewrite a Gemm with constant weights, and return the nodes to add after it."""
    from onnx import helper, numpy_helper

    def constant(name: str, values: np.ndarray) -> str:
        graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(values, np.float32), name))
        return name

    result = node.output[0]
    alpha, beta = attribute(node, "alpha", 1.0), attribute(node, "beta", 1.0)
    for each in [each for each in node.attribute if each.name in ("alpha", "beta")]:
        node.attribute.remove(each)
    weights = numpy_helper.to_array(tensors[node.input[1]])
    if alpha != 1:
        node.input[1] = constant(f"{result}_weights", weights * np.float32(alpha))
    if not node.input[2:] or not node.input[2]:
        return []
    bias = node.input[2]
    if bias in tensors:
        values = numpy_helper.to_array(tensors[bias])
        columns = weights.shape[0 if attribute(node, "transB", 0) else 1]
        if beta == 1 and values.shape == (columns,):
            return []
        if values.size in (1, *values.shape[-1:]):
            row = np.broadcast_to(values.reshape(-1) * np.float32(beta), (columns,))
            node.input[2] = constant(f"{result}_bias", row)
            return []
    product, scaled = f"{result}_product", f"{result}_scaled_bias"
    graph.value_info.extend(helper.make_tensor_value_info(name, FLOAT, None) for name in (product, scaled))
    node.output[0] = product
    del node.input[2]
    if beta == 1:
        return [helper.make_node("Add", [product, bias], [result], f"{node.name}_add")]
    factor = constant(f"{result}_beta", np.array(beta))
    return [
        helper.make_node("Mul", [bias, factor], [scaled], scaled),
        helper.make_node("Add", [product, scaled], [result], f"{node.name}_add"),
    ]


def _copy_shared_weights(graph: Any) -> None:
    """If operators use the same weight with different channel axes, give each of them its own copy, in place.

    The tools choose one axis for each weight.
    """
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    first: dict[str, int] = {}  # the axis of the channels for the first operator that uses a weight
    for node in graph.node:
        for index, name in enumerate(node.input):
            tensor = tensors.get(name)
            axes = None if tensor is None else axes_of(node, index, len(tensor.dims))
            if tensor is None or axes is None or first.setdefault(name, axes.channel) == axes.channel:
                continue
            node.input[index] = f"{name}_by_axis_{axes.channel}"
            if node.input[index] not in tensors:
                copy = graph.initializer.add()
                copy.CopyFrom(tensor)
                copy.name = node.input[index]
                tensors[copy.name] = copy
                first[copy.name] = axes.channel


def _unquantizable(graph: Any) -> list[str]:
    """Return the names of the nodes at which the tools fail.

    These are nodes with infinite constants, and nodes with a result of unknown type or f64, which the tools do not
    calibrate.
    """
    known = [each for each in (*graph.value_info, *graph.output) if each.type.HasField("tensor_type")]
    typed = {each.name for each in known if each.type.tensor_type.elem_type not in (0, _DOUBLE)}
    untyped = [node.name for node in graph.node if not typed.issuperset(filter(None, node.output))]
    return [*untyped, *_with_infinite_constants(graph)]


def _with_infinite_constants(graph: Any) -> list[str]:
    """Return the names of the nodes with a constant that contains an infinite element or NaN."""
    from onnx import numpy_helper

    floats = (tensor for tensor in graph.initializer if tensor.data_type == FLOAT)
    infinite = {tensor.name for tensor in floats if not np.isfinite(numpy_helper.to_array(tensor)).all()}
    return [node.name for node in graph.node if not infinite.isdisjoint(node.input)]


def _loaded(path: Path) -> Any:
    """Read a model that the tools have written, and sort its nodes.

    The tools order the nodes as if subgraphs used no values of the graph.
    """
    import onnx

    model = onnx.load(path)
    sort_nodes(model.graph)
    return model


def _save(model: Any, path: Path) -> None:
    """Save a model with its weights in a second file, so that models of more than 2 GB can be saved, too.

    The model itself is unchanged: onnx.save_model would move the weights out of it.
    """
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    onnx.save_model(copy, path, save_as_external_data=True, location=f"{path.name}.data", size_threshold=1024)


@contextmanager
def _quiet() -> Iterator[None]:
    """Context manager: omit the warnings of ONNX Runtime and its tools, which are about intermediate models."""
    import onnxruntime

    before = logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    onnxruntime.set_default_logger_severity(_ERRORS)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)
        onnxruntime.set_default_logger_severity(_WARNINGS)


@contextmanager
def _onnxruntime_errors(message: str) -> Iterator[None]:
    """Context manager: translate the exceptions of ONNX Runtime and its tools, which have no common base class."""
    try:
        yield
    except (OSError, MemoryError, RelvmArgumentError):
        raise
    except Exception as error:
        reason = str(error).strip().split("\n")[0]
        raise RelvmUnsupportedError(f"quantize: ONNX Runtime {message}: {type(error).__name__}: {reason}") from error
