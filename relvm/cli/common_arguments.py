"""Arguments that several subcommands have."""

from __future__ import annotations

import argparse
import math

from relvm.cli.arguments import MAX_INTEGER, Number, file_name

ANY_SOURCE = "an .onnx model, or a .relvm, .mlir or .pt2 file"
ANY_MODEL = "an .onnx model, a .relvm, .mlir or .pt2 file, or an executable (.rvm, .so)"


def add_number(
    parser: argparse._ActionsContainer,
    option: str,
    about: str,
    *,
    type: type[int | float] = int,
    least: float = 1,
    most: float = math.inf,
    default: float | None = None,
    metavar: str | None = "N",
) -> None:
    """Add an option whose value is a number from `least` to `most`.   about: the help text."""
    parser.add_argument(
        option, action=Number, type=type, least=least, most=most, default=default, metavar=metavar, help=about
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_model(parser: argparse.ArgumentParser, what: str = ANY_MODEL) -> None:
    parser.add_argument("model", type=file_name, metavar="MODEL", help=what)
    add_model_options(parser)


def add_model_options(parser: argparse._ActionsContainer) -> None:
    add_dim(parser)
    add_target(parser)
    add_weights(parser)


def add_function(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--function", default="main", help="function to run (default: main)")


def add_dim(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--dim",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="set a symbolic dimension of an ONNX model: a size, bounds (batch=1..32), or ? if the inputs that share "
        "it may have different sizes; or of a .pt2 file: a size",
    )


def add_target(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--target",
        default="auto",
        help='how kernels run: c, compiled for this processor; x86-64-v3 (or another level) or "c -march=NAME", '
        "compiled for another one; bytecode, without a compiler; numpy, the NumPy implementations; auto (default), "
        "c if there is a compiler and bytecode otherwise",
    )
    parser.add_argument("--unfused", action="store_true", help="compile one kernel for each operator")


def add_weights(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--weights",
        type=file_name,
        metavar="FILE.safetensors",
        help="constants in place of initializers and inputs of an ONNX model, of parameters and buffers of a .pt2 "
        "file, or of parameters of a function in another file",
    )


def add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="read an input from a file, or give a number (NAME=NUMBER); repeatable",
    )
    parser.add_argument(
        "--random",
        action="store_true",
        help="generate the other inputs at random; --dim sets their symbolic sizes, and the other sizes are chosen",
    )
    add_number(parser, "--seed", "seed of --random (default: 0)", least=0, default=0, metavar=None)


def add_trust_native(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--trust-native",
        action="store_true",
        help="run native code in the executable; only for files from a source that you trust",
    )


def add_build_limits(parser: argparse.ArgumentParser) -> None:
    end = "end the import and build of a model if it"
    _add_seconds(parser, "--limit-seconds", f"{end} takes longer")
    add_number(parser, "--limit-bytes", f"{end} needs more memory", least=1 << 20, most=MAX_INTEGER)


def add_run_limits(parser: argparse.ArgumentParser) -> None:
    _add_seconds(parser, "--max-seconds", "end a run that takes longer")
    add_number(parser, "--max-bytes", "end a run that allocates more", most=MAX_INTEGER)
    add_number(parser, "--max-steps", "end a run that takes more steps (calls and jumps back)", most=MAX_INTEGER)


def _add_seconds(parser: argparse.ArgumentParser, option: str, about: str) -> None:
    add_number(parser, option, about, type=float, least=1e-9, most=9_000_000_000, metavar="S")


def add_verbosity(parser: argparse.ArgumentParser) -> None:
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("-v", "--verbose", action="store_true", help="also print what the library logs")
    amount.add_argument("-q", "--quiet", action="store_true", help="print results and errors only")
