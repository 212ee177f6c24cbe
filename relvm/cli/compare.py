"""`relvm compare`: run a model in several execution modes, and compare the values."""

from __future__ import annotations

import argparse
import math
import shutil
from functools import cache
from typing import Any

from relvm.cli.arguments import Number, Parser, Words
from relvm.cli.colors import Style
from relvm.cli.common_arguments import ANY_SOURCE, add_function, add_inputs, add_json, add_model
from relvm.cli.inputs import input_values, runner
from relvm.cli.models import chosen_target, read_module
from relvm.cli.output import put, put_json
from relvm.cli.progress import Progress
from relvm.compiler.build import build
from relvm.errors import RelvmNameError, known_names
from relvm.explore import Comparison, compare
from relvm.explore.compare.run import MODES, ONNXRUNTIME
from relvm.frontend.dim_settings import parse_dims
from relvm.ir.expr import Module

_COLUMNS = 100  # if the width of the terminal is unknown


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm compare model.onnx --modes bytecode,compiled"
    add_model(parser, ANY_SOURCE)
    add_function(parser)
    add_inputs(parser)
    parser.add_argument(
        "--modes",
        action=Words,
        words=(*MODES, ONNXRUNTIME),
        metavar="MODE,MODE...",
        help="modes to run, compared with the first: reference, bytecode, compiled, and onnxruntime for .onnx models, "
        "if ONNX Runtime is installed (default: all)",
    )
    parser.add_argument(
        "--tolerance",
        action=Number,
        type=float,
        least=0,
        default=1e-4,
        help="largest difference of floats, relative to the largest element of the tensor (default: 1e-4)",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="print all values in the order of the program, not only the ten that differ most",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Compare a model in several modes, and print a table.  Return 1 if a value differs, otherwise 0."""
    options.random = options.random or not options.input
    module = read_module(options)
    run = cache(lambda: runner(build(module, target="bytecode"), options.function))  # only if sizes must be tried
    inputs = input_values(options, _signature(module, options.function), lambda values: run()(values))
    is_onnx = options.model.endswith(".onnx") and not options.weights  # ONNX Runtime cannot replace weights
    target = chosen_target(options)
    with Progress("comparing", "reading") as progress:
        compared = compare(
            options.model if is_onnx else module,
            *inputs,
            function=options.function,
            modes=options.modes,
            tolerance=options.tolerance,
            target=target,
            fused=not options.unfused,
            dims=parse_dims(options.dim) if is_onnx else None,
            progress=progress.step,
        )
    if options.json:
        put_json(_comparison_as_json(compared))
    else:
        columns = shutil.get_terminal_size((_COLUMNS, 24)).columns
        put(compared.format(all_rows=options.all, columns=columns), styles=_styles(compared, options.all))
    return 0 if compared.agrees else 1


def _styles(compared: Comparison, all_rows: bool) -> dict[int, Style]:
    """Return the colors of the lines of `compared.format`, by line number.

    Only the summary in the first line, and rows of values that differ, are colored.
    """
    rows, first = (compared.rows, 2) if all_rows else (compared.worst(), 3)
    styles: dict[int, Style] = {k: "bad" for k, row in enumerate(rows, first) if row.differs}
    styles[0] = "good" if compared.agrees else "bad"
    return styles


def _comparison_as_json(compared: Comparison) -> dict[str, Any]:
    """Return a comparison as a JSON value, without the values that were compared.

    An infinite difference becomes None.
    """
    rows = []
    for row in compared.rows:
        found = {mode: value if math.isfinite(value) else None for mode, value in row.differences.items()}
        described = {"name": row.name, "dtype": row.dtype, "shape": row.shape, "origin": row.origin}
        rows.append(described | {"largest": row.largest, "differences": found, "differs": row.differs})
    return {"modes": compared.modes, "agrees": compared.agrees, "rows": rows}


def _signature(module: Module, name: str) -> dict[str, Any]:
    """Return the signature of a public function, in the form in which an executable stores it."""
    public = {function.name: function for function in module.functions if not function.private}
    if name not in public:
        raise RelvmNameError(f"no public function {name}{known_names(name, public)}")
    params = [{"name": param.name, "type": str(param.type)} for param in public[name].params]
    return {"params": params, "attributes": dict(public[name].attributes)}
