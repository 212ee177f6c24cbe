"""The ONNX frontend: import ONNX models as modules."""

from relvm.frontend.onnx.importer import from_onnx

__all__ = ["from_onnx"]
