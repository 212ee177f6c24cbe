"""`relvm quantize`: write a quantized form of an ONNX model, and report the errors."""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from relvm.cli.arguments import MAX_INTEGER, Parser, file_name
from relvm.cli.common_arguments import add_inputs, add_json, add_number
from relvm.cli.inputs import input_values, signature_of
from relvm.cli.models import expect_writable
from relvm.cli.output import note, put, put_json
from relvm.cli.progress import Progress
from relvm.distributed.batch import find_array_files
from relvm.errors import RelvmArgumentError, RelvmFormatError
from relvm.frontend.dim_settings import parse_dims
from relvm.model import load_model
from relvm.quantization import MODES, QuantizationReport, quantize


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm quantize model.onnx -o model.int8.onnx"
    parser.description = (
        "Quantize a model, and compare the outputs on the inputs of --calibration or --input, or on random ones. "
        "The result is standard ONNX. Modes dynamic and static need the package onnxruntime: pip install "
        "'relvm[quantize]'."
    )
    parser.add_argument("model", type=file_name, metavar="MODEL", help="an .onnx model")
    parser.add_argument("-o", "--output", required=True, type=file_name, metavar="OUT.onnx", help="file to write")
    parser.add_argument(
        "--mode",
        choices=MODES,
        default="dynamic",
        help="dynamic (default): 8-bit weights and activations; static: the same with ranges from calibration data; "
        "int8-weights, int4-weights: only the weights",
    )
    parser.add_argument(
        "--calibration",
        action="append",
        default=[],
        type=file_name,
        metavar="FILES",
        help="typical inputs: a folder of .npz files, each with an array for every input, or a quoted pattern, or a "
        "file; a .npy file is the first input; repeatable",
    )
    about = "weights that share a scale with int4-weights (default: 32)"
    add_number(parser, "--block-size", about, most=MAX_INTEGER, default=32)
    parser.add_argument(
        "--dim", action="append", default=[], metavar="NAME=SIZE", help="a symbolic size of random inputs"
    )
    add_inputs(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Write a quantized form of a model, and print the report."""
    if Path(options.model).suffix != ".onnx":
        raise RelvmFormatError(f"expected an .onnx model, got {options.model}")
    expect_writable("-o", options.output)
    files = [path for setting in options.calibration for path in find_array_files(setting)]
    if options.mode == "static" and not (files or options.input or options.random):
        raise RelvmArgumentError(
            "--mode static needs calibration data: write --calibration FOLDER, a folder of .npz files with an array "
            "for each input, or --input NAME=FILE.npy for a single one"
        )
    inputs = _inputs(options) if options.input or options.random or not files else None
    samples: list[Any] = files or [inputs]
    with Progress("quantizing"):
        report = quantize(
            options.model,
            options.output,
            options.mode,
            calibration=samples if files or options.mode == "static" else None,
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
    """Return the inputs from --input by name, with random values for the others if --random or no input is given."""
    with Progress("building"):
        model = load_model(options.model, dims=parse_dims(options.dim))
    options.random = options.random or not options.input
    values = input_values(options, signature_of(model.executable, "main"), lambda values: model(*values))
    return dict(zip(model.input_names, values, strict=True))


def _as_json(report: QuantizationReport) -> dict[str, Any]:
    """Return a report as a JSON value.  An infinite number becomes None."""
    errors = [
        {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in each.items()}
        for each in map(asdict, report.errors)
    ]
    return asdict(report) | {"errors": errors}
