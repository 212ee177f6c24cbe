"""`relvm bundle`: a compiled model as a Python package."""

from __future__ import annotations

import argparse

from relvm.bundle import bundle
from relvm.cli.arguments import Parser, file_name
from relvm.cli.common_arguments import add_build_limits, add_model, add_trust_native
from relvm.cli.models import load_or_build
from relvm.cli.output import note


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm bundle model.onnx -o model-1.0-py3-none-any.whl"
    add_model(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        type=file_name,
        metavar="OUTPUT",
        help="wheel to write, NAME-VERSION-py3-none-any.whl, or folder in which to write the package",
    )
    parser.add_argument("--exec-mode", choices=("bytecode", "compiled"), help="default: bytecode")
    parser.add_argument("--function", default="main", help="function that the package runs (default: main)")
    add_trust_native(parser)
    add_build_limits(parser)


def run(options: argparse.Namespace) -> int:
    """Build a model if it is not built yet, and write a package that contains the executable."""
    executable = load_or_build(options, portable=True)
    written = bundle(executable, options.output, source=options.model, function=options.function)
    size = sum(path.stat().st_size for path in (written.iterdir() if written.is_dir() else (written,)))
    note(f"wrote {written}, {size:,} bytes; it requires relvm-runtime")
    return 0
