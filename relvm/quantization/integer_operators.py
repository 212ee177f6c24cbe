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
from relvm.quantization.graphs import all_nodes, attribute

# ONNX Runtime also has quantized forms of LSTM and Attention, but these are operators of its own domain.
_DYNAMIC = ["Conv", "MatMul", "Gemm", "Gather"]
_DOUBLE = 11  # TensorProto.DOUBLE
_NORMALIZATIONS = {"BatchNormalization", "InstanceNormalization", "LayerNormalization"}  # computed with floats anyway


def prepare(model: Any) -> Any:
    """Return a simplified form of a model: constant expressions are folded, and batch normalization is fused.

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
    return model


def quantize_dynamic(prepared: Any) -> Any:
    """Quantize weights to u8, and activations to u8 with a range that each run computes.

    Weights of u8 are exact on every processor: on x86 processors without VNNI instructions, the sums that ONNX Runtime
    computes of products of u8 and i8 saturate.

    prepared: the result of `prepare`.
    """
    batches = _batch_products(prepared.graph)
    result = _dynamic(prepared, per_channel=True, nodes_to_exclude=batches)
    return _dynamic(result, per_channel=False, nodes_to_quantize=batches) if batches else result


def _batch_products(graph: Any) -> list[str]:
    """Return the names of the matrix products with several matrices as weights.

    ONNX Runtime can run such products only if all matrices have the same scale.
    """
    ranks = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    return [node.name for node in graph.node if node.op_type == "MatMul" and ranks.get(node.input[1], 0) > 2]


def _dynamic(model: Any, **options: Any) -> Any:
    import onnx
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
        return onnx.load(target)


def quantize_static(prepared: Any, samples: Sequence[Mapping[str, np.ndarray]]) -> Any:
    """Quantize weights and activations to i8, with the ranges of the activations in the runs on `samples`.

    prepared: the result of `prepare`.   samples: inputs by name.
    """
    import onnx
    from onnxruntime import quantization
    from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

    class Samples(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter(samples)

        def get_next(self) -> Mapping[str, np.ndarray] | None:
            return next(self.rest, None)

    _flatten_gemm_biases(prepared.graph)
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
        return onnx.load(target)


def _flatten_gemm_biases(graph: Any) -> None:
    """Give constant biases of Gemm the shape (columns,), in place.  The tools expect this shape."""
    from onnx import numpy_helper

    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type != "Gemm" or len(node.input) < 3:
            continue
        weight, bias = (tensors.get(name) for name in node.input[1:])
        if weight is None or bias is None:
            continue
        columns = weight.dims[0 if attribute(node, "transB", 0) else 1]
        values = numpy_helper.to_array(bias)
        if values.shape == (columns,) or values.shape[:-1] not in ((), (1,)):
            continue
        node.input[2] = f"{node.name}_bias"
        flat = np.broadcast_to(values.reshape(-1), (columns,))
        graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(flat), node.input[2]))
    read = {name for node in all_nodes(graph) for name in node.input} | {output.name for output in graph.output}
    for tensor in [each for each in graph.initializer if each.name not in read]:
        graph.initializer.remove(tensor)


def _unquantizable(graph: Any) -> list[str]:
    """Return the names of the nodes at which the tools fail.

    These are nodes with a result of unknown type or f64, which the tools do not calibrate, and Gemm with a bias that
    differs between rows.
    """
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    known = [each for each in (*graph.value_info, *graph.output) if each.type.HasField("tensor_type")]
    typed = {each.name for each in known if each.type.tensor_type.elem_type not in (0, _DOUBLE)}
    found = []
    for node in graph.node:
        bias = tensors.get(node.input[2]) if node.op_type == "Gemm" and len(node.input) > 2 else None
        if not typed.issuperset(filter(None, node.output)) or (bias is not None and len(bias.dims) != 1):
            found.append(node.name)
    return found


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
    """Context manager: omit the warnings of the quantization tools, which advise on their own options."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)


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
