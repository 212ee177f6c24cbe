"""`relvm quantize`: write a quantized form of an ONNX model, and report the errors."""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from relvm.cli.inputs import input_values, signature_of
from relvm.cli.models import expect_writable
from relvm.cli.output import note, put, put_json
from relvm.cli.progress import Progress
from relvm.distributed.batch import find_array_files
from relvm.errors import RelvmArgumentError, RelvmFormatError
from relvm.frontend.dim_settings import parse_dims
from relvm.model import load_model
from relvm.quantization import QuantizationReport, quantize


def quantize_model(options: argparse.Namespace) -> int:
    """Write a quantized form of a model, and print the report."""
    if Path(options.model).suffix != ".onnx":
        raise RelvmFormatError(f"expected an .onnx model, got {options.model}")
    expect_writable("-o", options.output)
    files = [path for setting in options.calibration for path in find_array_files(setting)]
    is_calibrated = bool(files or options.input or options.random)
    if options.mode == "static" and not is_calibrated:
        raise RelvmArgumentError(
            "--mode static needs calibration data: write --calibration FOLDER, a folder of .npz files with an array "
            "for each input, or --input NAME=FILE.npy for a single one"
        )
    inputs = None if files else _inputs(options)
    calibration: list[Any] | None = files if files or inputs is None else [inputs]
    with Progress("quantizing"):
        report = quantize(
            options.model,
            options.output,
            options.mode,
            calibration=calibration if options.mode == "static" or files else None,
            inputs=inputs,
            block_size=options.block_size,
        )
    if options.json:
        put_json(_as_json(report))
    else:
        put(report)
    if options.mode == "static" and options.random and not files:
        note("the calibration data is random: the errors on real inputs can be much larger")
    return 0


def _inputs(options: argparse.Namespace) -> dict[str, Any]:
    """Return the inputs from --input, and random values for the others, by name."""
    with Progress("building"):
        model = load_model(options.model, dims=parse_dims(options.dim))
    options.random = True if options.mode != "static" or not options.input else options.random
    values = input_values(options, signature_of(model.executable, "main"), lambda values: model(*values))
    return dict(zip(model.input_names, values, strict=True))


def _as_json(report: QuantizationReport) -> dict[str, Any]:
    """Return a report as a JSON value.  An infinite number becomes None."""
    errors = [
        {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in each.items()}
        for each in map(asdict, report.errors)
    ]
    return asdict(report) | {"errors": errors}
