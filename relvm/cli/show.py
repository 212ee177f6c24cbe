"""`relvm show`: print a model at a compilation stage, or draw it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from relvm.bytecode.asm_printer import as_text, listing
from relvm.bytecode.kernel_printer import kernel_listing
from relvm.bytecode.kernel_program import KernelProgram
from relvm.cli.arguments import Parser, file_name
from relvm.cli.common_arguments import ANY_MODEL, add_model
from relvm.cli.models import build_module, chosen_target, read_module
from relvm.cli.output import note, put
from relvm.cli.progress import Progress
from relvm.codegen.c.module import print_c
from relvm.codegen.kernel_bytecode import print_kernel_bytecode
from relvm.compiler.build import lower
from relvm.compiler.find_compiler import expect_compiler
from relvm.compiler.target import parse_target
from relvm.errors import RelvmArgumentError
from relvm.ir.expr import Module
from relvm.ir.printer import print_module
from relvm.kernels.kernel import Kernel
from relvm.lir.printer import format_module
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.runtime.file_io import EXECUTABLE_SUFFIXES
from relvm.vm import Executable

if TYPE_CHECKING:
    from relvm.explore import Exploration

PICTURES = ("dataflow", "calls", "memory", "liveness")
# The stages of explore.explore: the input module, the module after each pass, and the forms of the code.
STAGES = (
    "given",
    *(step.name for step in build_pipeline("c")),
    *("routine", "bytecode", "kernels", "c", "assembly"),
)


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm show model.onnx --stage fuse_ops"
    add_model(parser, f"{ANY_MODEL}; an executable has only the stages bytecode, kernels and c")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--stage",
        choices=STAGES,
        default="infer_types",
        metavar="STAGE",
        help="given, a pass such as fuse_ops, routine, bytecode, kernels, c or assembly; default: infer_types",
    )
    what.add_argument("--picture", choices=PICTURES, help="print a diagram as text, or draw it with --output")
    what.add_argument("--memory", action="store_true", help="the same as --picture memory")
    what.add_argument(
        "--html", type=file_name, metavar="OUT.html", help="write an HTML page of all stages and the graph"
    )
    what.add_argument("--graph", type=file_name, metavar="OUT.html", help="write an HTML page of the dataflow graph")
    parser.add_argument(
        "-o",
        "--output",
        type=file_name,
        metavar="OUT.svg",
        help="file for --picture (or .png, .pdf; .html, interactive, for dataflow and calls)",
    )
    parser.add_argument(
        "--function",
        help="function of --picture (default: the first public one) or of --graph (default: all functions)",
    )
    parser.add_argument(
        "--exec-mode", choices=("bytecode", "compiled"), default="bytecode", help="mode that --html shows"
    )
    parser.add_argument("--full-constants", action="store_true", help="print large constants in full")


def run(options: argparse.Namespace) -> int:
    """Print a model at a compilation stage, or write a picture or an HTML page of it."""
    if Path(options.model).suffix in EXECUTABLE_SUFFIXES:
        put(_executable_text(options))
        return 0
    if options.output and not options.picture:
        raise RelvmArgumentError("--output requires --picture")
    if options.function and not (options.picture or options.graph):
        raise RelvmArgumentError("--function requires --picture or --graph")
    if options.html:
        _write_page(options)
        return 0
    module = read_module(options)
    if options.graph:
        from relvm.cli.plot import write_graph

        write_graph(module, options, options.function)
        return 0
    if options.memory:
        options.picture = "memory"
    if options.picture:
        from relvm.cli.plot import show_picture

        show_picture(module, options)
        return 0
    match options.stage:
        case "routine":
            put(format_module(lower(_run_passes_to(module, None, options))), end="")
        case "c":
            lir = lower(_run_passes_to(module, None, options))
            put(print_c(lir, routines=[routine.name for routine in lir.routines]), end="")
        case "assembly":
            expect_compiler("; without one, there is no stage assembly")
            explored = stages_page(options, assembly=True)
            put(explored["assembly"].text if "assembly" in explored.names else "no kernels in C\n", end="")
        case "bytecode":
            program = build_module(module, options, "bytecode").program
            put(as_text(program) if options.full_constants else listing(program), end="")
        case "kernels":
            lir = lower(_run_passes_to(module, None, options))
            kernels = {kernel.name: kernel for kernel in lir.kernels if isinstance(kernel, Kernel)}
            put(_kernel_listings({name: print_kernel_bytecode(kernel) for name, kernel in kernels.items()}), end="")
        case name:
            staged = module if name == "given" else _run_passes_to(module, name, options)
            put(print_module(staged, elide_constants=not options.full_constants), end="")
    return 0


def stages_page(options: argparse.Namespace, *, assembly: bool = False) -> Exploration:
    """Build a model, and return the page of all its stages.   assembly: whether to add the stage `assembly`."""
    from relvm.explore import explore

    target = parse_target(chosen_target(options)).kind
    mode = "compiled" if options.exec_mode == "compiled" else "bytecode"
    fused, title = not options.unfused, Path(options.model).name
    with Progress("building"):
        return explore(read_module(options), exec_mode=mode, target=target, fused=fused, assembly=assembly, title=title)


def _write_page(options: argparse.Namespace) -> None:
    explored = stages_page(options)
    explored.save(options.html)
    note(f"wrote {options.html}: {len(explored.views)} stages")


def _run_passes_to(module: Module, last: str | None, options: argparse.Namespace) -> Module:
    """Run the passes up to the pass `last`, or all passes if it is None, and return the module."""
    steps = build_pipeline(parse_target(chosen_target(options)).kind, fused=not options.unfused)
    names = [step.name for step in steps]
    if last is not None and last not in names:
        raise RelvmArgumentError(
            f"--stage {last}: this pass does not run for the target numpy or with --unfused; expected one of"
            f" {', '.join(names)}"
        )
    with Progress("building", "passes"):
        return run_passes(module, steps if last is None else steps[: names.index(last) + 1])


def _kernel_listings(programs: Mapping[str, KernelProgram]) -> str:
    """Return the listings of bytecode kernels as text."""
    listings = (kernel_listing(program, name) for name, program in programs.items())
    return "\n".join(listings) or "no kernels in bytecode\n"


def _executable_text(options: argparse.Namespace) -> str:
    given = {name: getattr(options, name) for name in ("html", "graph", "memory", "picture")}
    option = next((f"--{name}" for name, value in given.items() if value), None)
    if option:
        raise RelvmArgumentError(f"{option} requires a model, but {options.model} is an executable, already built")
    if options.stage not in ("bytecode", "kernels", "c"):
        raise RelvmArgumentError(f"--stage {options.stage}: an executable has only the stages bytecode, kernels and c")
    program = Executable.check(options.model, check_data=False).program
    if options.stage == "c":
        return program.source
    if options.stage == "kernels":
        return _kernel_listings(program.kernels)
    return as_text(program) if options.full_constants else listing(program)
