"""Evaluation of all values of an ONNX graph with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmFormatError, RelvmUnsupportedError


def read_proto(model: Any) -> Any:
    """Return a model as an onnx.ModelProto.  model: an onnx.ModelProto, a path, or the bytes of a file.

    Raises
    ------
    RelvmFormatError
        The bytes are not an ONNX model.
    RelvmArgumentError
        `model` has another type.
    RelvmUnsupportedError
        The onnx package is not installed.
    """
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise RelvmUnsupportedError(
            "the comparison with ONNX Runtime requires the onnx package: pip install 'relvm[explore]'"
        ) from None
    try:
        match model:
            case onnx.ModelProto():
                return model
            case bytes():
                return onnx.load_model_from_string(model)
            case str() | Path():
                return onnx.load(model)
    except DecodeError as error:
        raise RelvmFormatError(f"not an ONNX model: {error}") from None
    raise RelvmArgumentError(
        f"expected a Module, a path, the bytes of a file or an onnx.ModelProto, got {type(model).__name__}"
    )


def with_all_outputs(proto: Any) -> Any:
    """Return a copy of an onnx.ModelProto with additional outputs: the results of all nodes.

    The additional outputs follow the graph's own outputs, in the order of the nodes.  Results of Constant nodes and
    values inside subgraphs are not added.
    """
    import onnx

    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    own = {info.name for info in proto.graph.output}
    made = (name for node in proto.graph.node if node.op_type != "Constant" for name in node.output)
    changed.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made if name and name not in own)
    return changed


def run_onnxruntime(proto: Any, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run an onnx.ModelProto in ONNX Runtime, without graph optimizations.  Return its tensor outputs by name.

    Raises
    ------
    RelvmUnsupportedError
        ONNX Runtime is not installed, or cannot run the model.
    """
    try:
        import onnxruntime
    except ImportError:
        raise RelvmUnsupportedError("the comparison requires onnxruntime: pip install 'relvm[explore]'") from None
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3  # errors only
    names = [info.name for info in proto.graph.output]
    try:
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
        found = session.run(names, dict(inputs))
    except Exception as error:  # ONNX Runtime raises several undocumented classes
        raise RelvmUnsupportedError(f"ONNX Runtime cannot run the model: {error}") from error
    return {name: value for name, value in zip(names, found, strict=True) if isinstance(value, np.ndarray)}
