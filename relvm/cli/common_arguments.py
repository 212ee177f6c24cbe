"""Arguments that several subcommands have."""

from __future__ import annotations

import argparse

from relvm.cli.arguments import MAX_INTEGER, Number, file_name

ANY_MODEL = "an .onnx model, a .relvm file, or an executable (.rvm, .so)"


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_model(parser: argparse.ArgumentParser, what: str = ANY_MODEL) -> None:
    parser.add_argument("model", type=file_name, metavar="MODEL", help=what)
    add_model_options(parser)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    add_dim(parser)
    add_target(parser)
    add_weights(parser)


def add_function(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--function", default="main", help="function to run (default: main)")


def add_dim(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dim",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="set a symbolic dimension of an ONNX model: a size, bounds (batch=1..32), or ? if the inputs that share "
        "it may have different sizes; for other models, the size in random inputs",
    )


def add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--target",
        default="auto",
        help='how kernels run: c, compiled for this processor; x86-64-v3 (or another level) or "c -march=NAME", '
        "compiled for another one; bytecode, without a compiler; numpy, the NumPy implementations; auto (default), "
        "c if there is a compiler and bytecode otherwise",
    )
    parser.add_argument("--unfused", action="store_true", help="compile one kernel for each operator")


def add_weights(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--weights",
        type=file_name,
        metavar="FILE.safetensors",
        help="constants in place of initializers and inputs of an ONNX model, or of parameters in a .relvm file",
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
        help="generate the other inputs at random, and choose the sizes that --dim does not set",
    )
    parser.add_argument("--seed", action=Number, type=int, least=0, default=0, help="seed of --random (default: 0)")


def add_trust_native(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trust-native",
        action="store_true",
        help="run native code in the executable; only for files from a source that you trust",
    )


def add_build_limits(parser: argparse.ArgumentParser) -> None:
    for option, read, least, most, metavar, what in (
        ("--limit-seconds", float, 1e-9, 9_000_000_000, "S", "takes longer"),
        ("--limit-bytes", int, 1 << 20, MAX_INTEGER, "N", "needs more memory"),
    ):
        text = f"end the import and build of a model if it {what}"
        parser.add_argument(option, action=Number, type=read, least=least, most=most, metavar=metavar, help=text)


def add_run_limits(parser: argparse.ArgumentParser) -> None:
    for option, read, least, most, metavar, what in (
        ("--max-seconds", float, 1e-9, 9_000_000_000, "S", "takes longer"),
        ("--max-bytes", int, 1, MAX_INTEGER, "N", "allocates more"),
        ("--max-steps", int, 1, MAX_INTEGER, "N", "takes more steps (calls and jumps back)"),
    ):
        parser.add_argument(
            option, action=Number, type=read, least=least, most=most, metavar=metavar, help=f"end a run that {what}"
        )


def add_verbosity(parser: argparse.ArgumentParser) -> None:
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("-v", "--verbose", action="store_true", help="also print what the library logs")
    amount.add_argument("-q", "--quiet", action="store_true", help="print results and errors only")
