"""`relvm export`: compile a model ahead of time to C sources or a shared library."""

from __future__ import annotations

import argparse

from relvm import aot
from relvm.aot.lower.place_storage import format_placement
from relvm.aot.lower.printer import format_lowered, format_storage
from relvm.aot.project.board_fit import expect_fit
from relvm.aot.project.package import PACKAGES
from relvm.aot.project.tar import is_archive
from relvm.cli.arguments import Parser, file_name
from relvm.cli.common_arguments import ANY_SOURCE, add_dim, add_inputs, add_weights
from relvm.cli.inputs import chosen_inputs, input_values, runner, signature_of
from relvm.cli.models import expect_writable, read_module, reads_sizes
from relvm.cli.output import note, put
from relvm.cli.progress import Progress
from relvm.compiler.build import build
from relvm.errors import RelvmArgumentError, RelvmUnsupportedError
from relvm.frontend.dim_settings import parse_decimal
from relvm.ir.expr import Module
from relvm.kernels.kernel_builder import FAVOURS


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm export model.onnx --dim batch=1 --random -o folder"
    parser.add_argument("model", type=file_name, metavar="MODEL", help=ANY_SOURCE)
    add_dim(parser)
    add_weights(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        type=file_name,
        metavar="PATH",
        help="folder to build with `make`, an archive of it (.tar), or a library (.so, with --runtime hosted)",
    )
    parser.add_argument(
        "--function", default="main", help="function to export, with the functions that it calls (default: main)"
    )
    parser.add_argument("--name", default="model", help="prefix of every C name (default: model)")
    parser.add_argument("--interface", choices=("c", "packed"), help="c: structs of pointers; packed: arrays of values")
    parser.add_argument(
        "--unpacked", action="store_true", help="pass pointers and sizes to kernels, instead of tensors"
    )
    parser.add_argument("--runtime", choices=("bare", "hosted"), default="bare", help="default: bare")
    parser.add_argument("--alignment", type=int, default=16, metavar="BYTES", help="alignment of tensors (default: 16)")
    parser.add_argument(
        "--pool",
        action="append",
        default=[],
        metavar="NAME[=BYTES]",
        help="memory pool, and its largest size; repeatable, preferred pools first",
    )
    parser.add_argument("--constants-limit", type=int, metavar="BYTES", help="largest total size of the constants")
    parser.add_argument(
        "--workspace", choices=("static", "caller"), help="allocate pools statically, or take them from the caller"
    )
    parser.add_argument(
        "--favour",
        choices=FAVOURS,
        help="what kernels save: memory, time or code (default with bare: memory; with --board: size)",
    )
    parser.add_argument(
        "--board", metavar="NAME", help="board to compile for, which must have enough memory (relvm boards)"
    )
    parser.add_argument(
        "--package", choices=PACKAGES, help="write an Arduino library or a PlatformIO project (requires --board)"
    )
    parser.add_argument(
        "--show", choices=("storage", "lowered", "placement"), help="print this stage and write no files"
    )
    parser.add_argument(
        "--draw", type=file_name, metavar="FILE.svg", help="also draw the memory placement (or .png, .pdf)"
    )
    add_inputs(parser)


def run(options: argparse.Namespace) -> int:
    """Write a model as a folder of C sources or as a shared library.

    If inputs are given, the folder contains a self-test.
    """
    config = _aot_config(options)
    if options.package is not None:
        if config.board is None:
            raise RelvmArgumentError(f"--package {options.package} requires --board (`relvm boards` lists the boards)")
        options.random = options.random or not options.input  # a package contains a self-test
    is_library = options.output.endswith(".so")
    if is_library and config.runtime != "hosted":
        raise RelvmArgumentError(f"-o {options.output}: a shared library requires --runtime hosted")
    if config.runtime == "hosted" and (options.random or options.input):
        raise RelvmArgumentError("--runtime hosted does not support a self-test in C; run it with AotExecutor")
    if options.show is None and (is_library or is_archive(options.output)):
        expect_writable("-o", options.output)
    module, program = _build(options, config)
    memory = None
    if config.known_board is not None and options.show is None:
        with Progress("building", "C compilation"):
            memory = program.board_memory(measured=True)
        expect_fit(memory, config.known_board)
    if options.draw:
        _draw(program, options.draw)
    match options.show:
        case "storage":
            put(format_storage(program.lowered.functions[-1]), end="")
        case "lowered":
            put(format_lowered(program.lowered), end="")
        case "placement":
            put(format_placement(program.placements, config.pools), end="")
        case None:
            if is_library:
                with Progress("building", "C compilation"):
                    aot.compile_library(program).export_library(options.output)
            else:
                trial = _self_test_data(module, options) if options.random or options.input else None
                program.write(options.output, trial, package=options.package)
            pools = zip(config.pools, program.sources.pool_bytes, strict=True)
            sizes = [f"{pool.name} {size:,} bytes" for pool, size in pools]
            sizes.append(f"constants {program.sources.constants_bytes:,} bytes")
            note(f"wrote {options.output}: {', '.join(sizes)}")
            if memory is not None and config.known_board is not None:
                note(memory.describe(config.known_board))
    return 0


def _build(options: argparse.Namespace, config: aot.AotConfig) -> tuple[Module, aot.AotProgram]:
    """Read a model and build its export.

    With --random, sizes of an ONNX model or a .pt2 file that the plan of the memory needs are chosen, and added to
    --dim.
    """
    module = read_module(options)
    try:
        with Progress("building"):
            return module, aot.build(module, config, entry=options.function)
    except RelvmUnsupportedError:
        sizes = _chosen_sizes(module, options) if options.random and reads_sizes(options.model) else []
        if not sizes:
            raise
    options.dim = [*options.dim, *sizes]
    module = read_module(options)
    with Progress("building"):
        program = aot.build(module, config, entry=options.function)
    note(f"exporting for {', '.join(sizes)} only: the plan of the memory needs sizes")
    return module, program


def _aot_config(options: argparse.Namespace) -> aot.AotConfig:
    """Return the AotConfig of the command-line options.

    With `--runtime bare --interface c`, kernels always have the calling convention of `--unpacked`.
    """
    interface = options.interface or ("c" if options.runtime == "bare" else "packed")
    unpacked = options.unpacked or (options.runtime == "bare" and interface == "c")
    pools = tuple(map(_pool, options.pool)) or aot.AotConfig().pools
    return aot.AotConfig(
        options.name,
        options.runtime,
        interface,
        unpacked,
        options.alignment,
        pools,
        options.constants_limit,
        options.workspace,
        options.favour,
        options.board,
    )


def _draw(program: aot.AotProgram, file: str) -> None:
    from relvm.cli.plot import save_figure
    from relvm.explore import draw_placement

    save_figure(draw_placement(program), "--draw", file)


def _pool(setting: str) -> aot.Pool:
    name, equals, limit = setting.partition("=")
    size_bytes = parse_decimal(limit)
    if equals and size_bytes is None:
        raise RelvmArgumentError(f"--pool {setting}: expected NAME or NAME=BYTES")
    return aot.Pool(name, size_bytes)


def _chosen_sizes(module: Module, options: argparse.Namespace) -> list[str]:
    """Choose the symbolic sizes as --random does, and return them as values of --dim."""
    executable = build(module, "bytecode", target="bytecode")
    run = runner(executable, options.function)
    chosen = chosen_inputs(options, signature_of(executable, options.function), run)
    return [f"{name}={size}" for name, size in chosen.sizes.items()]


def _self_test_data(module: Module, options: argparse.Namespace) -> tuple[list, list]:
    """Return inputs for the self-test, and the outputs that a virtual machine computes from them."""
    with Progress("building") as progress:
        executable = build(module, "compiled", progress=progress.step)
    run = runner(executable, options.function)
    values = input_values(options, signature_of(executable, options.function), run)
    return values, [run(values)]
