"""`relvm compile`: compile a model to an executable, a library for C programs, or a WebAssembly module."""

from __future__ import annotations

import argparse
from pathlib import Path

from relvm.cli.arguments import Parser, file_name
from relvm.cli.common_arguments import ANY_SOURCE, add_build_limits, add_model
from relvm.cli.models import build_file, expect_writable
from relvm.cli.output import note
from relvm.compiler.export_library import export_library
from relvm.compiler.selective import export_selective
from relvm.compiler.webassembly import export_module
from relvm.errors import RelvmArgumentError, RelvmFormatError
from relvm.runtime.file_io import EXECUTABLE_SUFFIXES

LIBRARY_SUFFIXES = (".so", ".dll", ".dylib")  # of shared libraries for C programs


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm compile model.onnx --exec-mode compiled -o model.rvm"
    add_model(parser, ANY_SOURCE)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        type=file_name,
        metavar="MODEL.rvm",
        help="file to write; .so, .dll or .dylib makes a shared library for C programs, .wasm a WebAssembly module for "
        "--target wasm32 or bytecode, and .a a static library (--selective)",
    )
    parser.add_argument(
        "--selective",
        action="store_true",
        help="write a static library for C programs (-o NAME.a) with kernel bytecode, and only what the model uses of "
        "the runtime",
    )
    parser.add_argument("--exec-mode", choices=("bytecode", "compiled"), default="bytecode")
    add_build_limits(parser)
    parser.add_argument(
        "--debug", action="store_true", help="add source places, and stops in compiled functions, for relvm debug"
    )
    parser.add_argument(
        "--portable",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="include the program without native code, for other processors and for users who do not trust the file",
    )


def run(options: argparse.Namespace) -> int:
    """Build a model, and write the executable, or a library or WebAssembly module that contains it."""
    suffix = Path(options.output).suffix
    if suffix not in (*EXECUTABLE_SUFFIXES, *LIBRARY_SUFFIXES, ".wasm", ".a"):
        raise RelvmFormatError(
            f"-o {options.output}: expected a file ending in .rvm, .so, .dll or .dylib for a shared library, .wasm for"
            " a WebAssembly module, or .a for a static library"
        )
    if options.selective != (suffix == ".a"):
        raise RelvmArgumentError(
            f"-o {options.output}: --selective writes a static library, whose name ends in .a, and no other option does"
        )
    expect_writable("-o", options.output)
    if options.selective:
        if options.exec_mode == "compiled" or options.target not in ("auto", "bytecode"):
            raise RelvmArgumentError("--selective: such a library runs bytecode only; omit --exec-mode and --target")
        options.target = "bytecode"
    is_module = suffix == ".wasm"
    if is_module and options.target == "auto":
        options.target = "wasm32"
    # All engines run the native code of a WebAssembly module, and a selective library has none.
    portable = options.portable and not is_module and not options.selective
    executable = build_file(options, options.exec_mode, debug=options.debug, portable=portable)
    if options.selective:
        export_selective(executable, options.output)
    elif suffix in LIBRARY_SUFFIXES:
        export_library(executable, options.output)
    elif is_module:
        export_module(executable, options.output)
    else:
        executable.save(options.output)
    note(f"wrote {options.output}, {Path(options.output).stat().st_size:,} bytes")
    return 0
