"""`relvm show`: print a model at a compilation stage, or draw it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from relvm.bytecode.asm_printer import as_text, listing
from relvm.bytecode.kernel_printer import kernel_listing
from relvm.bytecode.kernel_program import KernelProgram
from relvm.cli.models import build_model, chosen_target, read_module
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


def show(options: argparse.Namespace) -> int:
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
            program = build_model(module, options, "bytecode").program
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
