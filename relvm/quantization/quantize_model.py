"""`relvm.quantize`: write a quantized form of an ONNX model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relvm.distributed.batch import FileBatch, find_array_files, load_arguments
from relvm.distributed.inputs import FunctionSignature
from relvm.errors import (
    RelvmArgumentError,
    RelvmFormatError,
    RelvmUnsupportedError,
    expect_choice,
    expect_path,
    known_names,
)
from relvm.model import Model, load_model
from relvm.quantization import graphs, integer_operators
from relvm.quantization.report import ErrorMeter, OperatorCount, QuantizationReport
from relvm.quantization.weight_only import quantize_weights
from relvm.runtime.file_io import complete_file
from relvm.runtime.python_arguments import as_tensor

MODES = ("dynamic", "static", "int8-weights", "int4-weights")
_OPSETS = {"dynamic": 11, "static": 13, "int8-weights": 13, "int4-weights": 21}
_HALF_OPSET = 19  # the first in which DequantizeLinear accepts f16 and bf16 scales
_LIMITS = {
    "dynamic": "it quantizes finite weights of Conv and Gather, and finite second factors of MatMul and Gemm, but "
    "none in subgraphs; try mode int8-weights",
    "static": "it quantizes neither LSTM, GRU and RNN nor operators in subgraphs, and only finite weights; try mode "
    "int8-weights",
    "int8-weights": "the weights are not finite, or so small that their scales would take more memory",
    "int4-weights": "the weights are not finite, or so small that their scales would take more memory",
}
_MEASURED = 16  # maximum number of inputs on which the errors are measured
_LARGEST_FILE = (1 << 31) - (1 << 20)  # bytes that protobuf can store, less some for the graph
_QUANTIZED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulNBits", "GatherBlockQuantized")

Inputs = Mapping[str, Any]


def quantize(
    model: Any,
    output: str | os.PathLike[str],
    mode: str = "dynamic",
    *,
    calibration: str | os.PathLike[str] | Iterable[Inputs | str | os.PathLike[str]] | None = None,
    inputs: Inputs | None = None,
    block_size: int = 32,
) -> QuantizationReport:
    """Quantize an ONNX model, and write the result as a standard ONNX model.

    The result contains only operators and dtypes of the ONNX standard, besides operators of other domains that the
    model already contains.

    Parameters
    ----------
    model
        The path of an .onnx file, the bytes of such a file, or an onnx.ModelProto.
    output
        The file to write.  If the model is too large for one file, the weights are written to a second file, with the
        suffix .data.
    mode
        "dynamic": 8-bit weights and activations, with ranges of activations that each run computes.  "static": the
        same with ranges from `calibration`.  "int8-weights" and "int4-weights": only weights are integers, and the
        operators compute with floats.
    calibration
        Typical inputs, for mode "static": the path of a folder of .npz files, or of a single file, which contains an
        array for each input; or an iterable of such paths and of mappings from input names to arrays.  A .npy file
        contains the first input.
    inputs
        The inputs on which to measure the errors, by name.  If omitted, the errors are measured on the first 16 samples
        of `calibration`.
    block_size
        The number of weights that share a scale, for mode "int4-weights".

    Returns
    -------
    QuantizationReport
        The sizes, the numbers of quantized operators, and the errors of the outputs if there are inputs.

    Raises
    ------
    RelvmArgumentError
        An argument is invalid, or mode "static" has no calibration data.
    RelvmUnsupportedError
        The model is already quantized, contains no weights that the mode can quantize, or cannot be converted to the
        opset that the mode needs.  The error is also raised if the package onnx or onnxruntime is missing: pip install
        'relvm[quantize]'.
    RelvmFormatError
        The model is not an ONNX model.
    RelvmError
        The errors of load_model and of a run, because relvm runs both models to measure the errors.
    OSError
        A file cannot be read or written.
    """
    expect_choice("mode", mode, MODES)
    expect_path("output", output)
    _expect_packages(mode)
    _expect_block_size(block_size)
    if not isinstance(model, bytes) and not hasattr(model, "SerializeToString"):
        expect_path("model", model)
        if Path(model).suffix != ".onnx":
            raise RelvmFormatError(f"quantize: expected an .onnx model, got {model}")
        if os.path.exists(output) and os.path.samefile(model, output):
            raise RelvmArgumentError(f"quantize: output {output} is the model itself; write another file")
    if mode == "static" and calibration is None:
        raise RelvmArgumentError(
            'quantize: mode "static" needs calibration data: a list of typical inputs, or a folder of .npz files'
        )
    original = load_model(model)
    proto, bytes_before = _read(model)
    _expect_floats(proto)
    samples = [] if calibration is None else _samples(calibration, original)
    measured = samples[:_MEASURED] if inputs is None else [_named(inputs, original, "inputs")]
    expected = [original.run(None, sample) for sample in measured]
    quantized = _quantized(proto, mode, samples, block_size)
    del proto
    bytes_after = _write(quantized, Path(output))
    counts = {name: OperatorCount(*each) for name, each in graphs.count_operators(quantized.graph).items()}
    meter = ErrorMeter(original.output_names)
    if measured:
        result = load_model(output)
        for sample, values in zip(measured, expected, strict=True):
            meter.add(values, result.run(None, sample))
    errors = meter.errors() if measured else ()
    return QuantizationReport(mode, os.fspath(output), bytes_before, bytes_after, counts, errors, len(measured))


def _expect_packages(mode: str) -> None:
    try:
        import onnx  # noqa: F401  (only whether it can be imported)

        if mode in ("dynamic", "static"):
            import onnxruntime.quantization  # noqa: F401  (the same)
    except ImportError as error:
        raise RelvmUnsupportedError(
            f"quantize: mode {mode} needs the packages onnx and onnxruntime: pip install 'relvm[quantize]' ({error})"
        ) from None


def _expect_block_size(block_size: Any) -> None:
    if not isinstance(block_size, int) or isinstance(block_size, bool) or block_size < 1:
        raise RelvmArgumentError(f"quantize: block_size: expected an integer of at least 1, got {block_size!r}")


def _read(model: Any) -> tuple[Any, int]:
    """Return the model as an onnx.ModelProto with all weights, and its size in bytes."""
    import onnx

    if hasattr(model, "SerializeToString"):
        proto = onnx.ModelProto()
        proto.CopyFrom(model)
        return proto, proto.ByteSize()
    if isinstance(model, bytes):
        return onnx.load_from_string(model), len(model)
    proto, folder = onnx.load(model, load_external_data=False), Path(model).parent
    tensors = (tensor for graph in graphs.all_graphs(proto.graph) for tensor in graph.initializer)
    files = {entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location"}
    onnx.load_external_data_for_model(proto, str(folder))
    return proto, sum(os.stat(path).st_size for path in (model, *(folder / name for name in files)))


def _expect_floats(proto: Any) -> None:
    """Raise RelvmUnsupportedError if a model contains quantized operators."""
    names = [node.op_type for node in graphs.all_nodes(proto.graph)]
    quantized = [name for name in names if name in _QUANTIZED or name.startswith("QLinear") or "Integer" in name]
    reason = f"{len(quantized)} operators such as {quantized[0]}" if quantized else ""
    if integers := graphs.integer_weights(proto.graph):
        reason = reason or f"integer weights, such as {integers[0]}"
    if reason:
        raise RelvmUnsupportedError(
            f"quantize: the model is already quantized: it contains {reason}; quantize the float model from which it "
            "was made"
        )


def _samples(calibration: Any, model: Model) -> list[dict[str, np.ndarray]]:
    """Return the calibration data: the inputs of each sample by name."""
    if isinstance(calibration, Mapping) or not isinstance(calibration, Iterable | os.PathLike):
        raise RelvmArgumentError(
            "quantize: calibration: expected a list of mappings from input names to arrays, or a folder of .npz "
            f"files, got {type(calibration).__name__}"
        )
    samples = []
    for each in [calibration] if isinstance(calibration, str | os.PathLike) else calibration:
        if isinstance(each, str | os.PathLike):
            samples += [_read_sample(path, model) for path in find_array_files(each)]
        else:
            samples.append(_named(each, model, f"calibration[{len(samples)}]"))
    if not samples:
        raise RelvmArgumentError("quantize: calibration: expected at least one sample, got none")
    return samples


def _read_sample(path: Path, model: Model) -> dict[str, np.ndarray]:
    signature = FunctionSignature.of(model.executable, "main")
    positional, named = load_arguments(FileBatch(path), (), signature)
    names = {parameter: name for name, parameter in signature.parameters.items()}
    values = dict(zip(model.input_names, positional, strict=False)) | {names[each]: named[each] for each in named}
    return _named(values, model, str(path))


def _named(values: Any, model: Model, place: str) -> dict[str, np.ndarray]:
    """Return inputs as arrays.  Raise RelvmArgumentError if one is missing or unknown.

    place: where the inputs were given, for messages.
    """
    if not isinstance(values, Mapping):
        raise RelvmArgumentError(
            f"quantize: {place}: expected a mapping from input names to arrays, got {type(values).__name__}"
        )
    for name in values:
        if name not in model.input_names:
            raise RelvmArgumentError(f"quantize: {place}: no input {name}{known_names(str(name), model.input_names)}")
    missing = [name for name in model.input_names if name not in values]
    if missing:
        raise RelvmArgumentError(f"quantize: {place}: missing inputs: {', '.join(missing)}")
    types = model.signature.inputs
    return {name: np.asarray(as_tensor(values[name], types[name])) for name in model.input_names}


def _quantized(proto: Any, mode: str, samples: Sequence[Mapping[str, np.ndarray]], block_size: int) -> Any:
    """Return the quantized form of a model, as an onnx.ModelProto."""
    import onnx

    domains = {node.domain for node in graphs.all_nodes(proto.graph)} | {"", "ai.onnx"}
    proto = graphs.with_constant_weights(proto)
    dtypes = graphs.weight_dtypes(proto.graph)
    if mode in ("dynamic", "static"):
        if dtypes - {graphs.FLOAT}:
            raise RelvmUnsupportedError(
                f"quantize: mode {mode} needs f32 weights, but the model has f16 or bf16 weights; use mode "
                "int8-weights or int4-weights, or quantize the f32 model"
            )
        proto = integer_operators.prepare(graphs.with_opset(proto, _OPSETS[mode]))
        dtypes = graphs.weight_dtypes(proto.graph)
    if not dtypes:
        raise RelvmUnsupportedError(
            f"quantize: the model has no weights to quantize: expected {', '.join(graphs.WEIGHTED)} with constant "
            "float weights"
        )
    if mode == "dynamic":
        proto = integer_operators.quantize_dynamic(proto)
    elif mode == "static":
        proto = integer_operators.quantize_static(proto, samples)
    else:
        proto = graphs.with_opset(proto, max(_OPSETS[mode], _HALF_OPSET if dtypes - {graphs.FLOAT} else 0))
        quantize_weights(proto, 8 if mode == "int8-weights" else 4, block_size)
    counts = graphs.count_operators(proto.graph)
    if not any(quantized for quantized, _ in counts.values()):
        found = ", ".join(f"{name} ({count})" for name, (_, count) in counts.items())
        raise RelvmUnsupportedError(
            f"quantize: mode {mode} can quantize no operator of the model, which has weights in {found}: "
            f"{_LIMITS[mode]}"
        )
    graphs.remove_unused_domains(proto)
    added = {node.domain for node in graphs.all_nodes(proto.graph)} - domains
    if added:
        raise RelvmUnsupportedError(f"quantize: ONNX Runtime wrote operators of the domain {added.pop()}")
    if graphs.tensor_bytes(proto) < _LARGEST_FILE:
        onnx.checker.check_model(proto)
    return proto


def _write(proto: Any, path: Path) -> int:
    """Write a model, and return its size in bytes.  The weights of a large model go to a second file."""
    import onnx

    if graphs.tensor_bytes(proto) < _LARGEST_FILE:
        with complete_file(path) as partial:
            partial.write_bytes(proto.SerializeToString())
        return path.stat().st_size
    data = path.with_name(f"{path.name}.data")
    data.unlink(missing_ok=True)  # onnx appends to an existing file
    onnx.save_model(proto, path, save_as_external_data=True, location=data.name)
    return path.stat().st_size + data.stat().st_size
