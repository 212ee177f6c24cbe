"""Quantization of ONNX models to 8 and 4 bits: `relvm.quantize`."""

from __future__ import annotations

from relvm.quantization.quantize_model import MODES, quantize
from relvm.quantization.report import OperatorCount, OutputError, QuantizationReport

__all__ = ["MODES", "OperatorCount", "OutputError", "QuantizationReport", "quantize"]
