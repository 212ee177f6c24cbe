"""ONNX graphs from text, held against ONNX Runtime in both modes."""

from __future__ import annotations

import numpy as np
import onnxruntime
from modes import machines, plain
from onnx import parser

from relvm.frontend.onnx import from_onnx


def model_of(text: str, opset: int = 17):
    """The model of a graph in ONNX's text form."""
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}, "com.microsoft" : 1]> {text}')


def against_onnxruntime(model, *inputs: np.ndarray) -> None:
    """The graph gives the same values, dtypes and shapes as in ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    names = [info.name for info in model.graph.input]
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    expected = session.run(None, dict(zip(names, inputs, strict=True)))
    for machine in machines(from_onnx(model), [("bytecode", "c"), ("compiled", "c")]).values():
        result = plain(machine["main"](*inputs))
        outputs = result if isinstance(result, tuple) else (result,)
        for got, want in zip(outputs, expected, strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
