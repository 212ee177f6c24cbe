"""Session options that change the model, or write it to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from relvm.errors import RelvmArgumentError, RelvmError
from relvm.onnxruntime.errors import Fail, InvalidArgument, NotImplemented, load_error
from relvm.onnxruntime.options import SessionOptions
from relvm.quoting import terminal
from relvm.runtime.file_io import complete_file


def apply_model_options(model: bytes | Path, options: SessionOptions) -> bytes | Path:
    """Apply the options that change a model, and write the model to `optimized_model_filepath` if that is set.

    Return the changed model, or `model` itself if the options do not change it.

    Raises
    ------
    Fail, InvalidProtobuf
        The model or its external data cannot be read, or the changed model is larger than 2 GB.
    InvalidArgument
        The file cannot be written.
    NotImplemented
        The onnx package, which changes and writes the model, is not installed.
    """
    path = options.optimized_model_filepath
    if not (path or options._initializers or options._denoted_sizes):
        return model
    try:
        import onnx  # most sessions do not need it
    except ImportError:
        raise NotImplemented.of(
            "optimized_model_filepath, added initializers and dimensions overridden by denotation change the model,"
            " which needs the onnx package: pip install onnx"
        ) from None
    try:
        proto = onnx.load_model_from_string(model) if isinstance(model, bytes) else onnx.load_model(model)
    except Exception as error:  # of protobuf, of the file system, or of the checks of external data
        if isinstance(error, OSError | onnx.checker.ValidationError):
            raise Fail.of(f"Load model failed:{terminal(str(error))}") from error
        where = "model" if isinstance(model, bytes) else str(model)
        raise load_error(
            RelvmArgumentError(f"{terminal(where)} is not an ONNX model: {terminal(str(error))}")
        ) from error
    _replace_initializers(proto.graph, options._initializers)
    _fix_dimensions(proto.graph, options)
    try:
        content = proto.SerializeToString()
    except Exception as error:  # protobuf raises classes of its own for messages of more than 2 GB
        raise Fail.of(f"the changed model cannot be serialized: {terminal(str(error))}") from error
    if path:
        try:
            with complete_file(path) as partial:
                partial.write_bytes(content)
        except (OSError, RelvmError) as error:
            reason = f"optimized_model_filepath={terminal(repr(path))}: {terminal(str(error))}"
            raise InvalidArgument.of(f"cannot write the model: {reason}") from error
    return content if options._initializers or options._denoted_sizes else model


def _replace_initializers(graph: Any, values: dict[str, Any]) -> None:
    """Replace the elements and shapes of initializers.  Values for other names are ignored, as in ONNX Runtime."""
    from onnx import numpy_helper

    for initializer in graph.initializer:
        if initializer.name in values:
            initializer.CopyFrom(numpy_helper.from_array(values[initializer.name].numpy(), initializer.name))


def _fix_dimensions(graph: Any, options: SessionOptions) -> None:
    """Replace the dimensions of the inputs that the options fix, by name or by denotation, by their sizes."""
    for value in graph.input:
        for dimension in value.type.tensor_type.shape.dim:
            size = options._denoted_sizes.get(dimension.denotation) if dimension.denotation else None
            if size is None:
                size = options._sizes.get(dimension.dim_param) if dimension.dim_param else None
            if size is not None and not dimension.HasField("dim_value"):
                dimension.dim_value = size
