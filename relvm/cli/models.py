"""Functions shared by the subcommands: read a model, choose a target, and build with a progress line."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relvm.cli.output import note
from relvm.cli.progress import Progress
from relvm.compiler.build_model import build_model, expect_to_build
from relvm.compiler.find_compiler import find_compiler
from relvm.errors import RelvmArgumentError, missing_file
from relvm.frontend.dim_settings import parse_dims
from relvm.frontend.stablehlo_file import is_stablehlo
from relvm.frontend.torch_file import is_exported_program
from relvm.runtime.file_io import EXECUTABLE_SUFFIXES
from relvm.vm import Executable, load

if TYPE_CHECKING:
    from relvm.ir.expr import Module


_NO_COMPILER = "no C compiler found: using kernel bytecode"


def read_module(options: argparse.Namespace) -> Module:
    """Read the module in an .onnx, .relvm, .mlir or .pt2 file.

    Raises
    ------
    RelvmFormatError
        The file is none of these.
    RelvmArgumentError
        --dim is given for a program whose sizes it does not set (`reads_sizes`), but --random is not.  For such a
        program, --dim sets only the sizes of random inputs.
    """
    from relvm.frontend.read_model import read_model  # imported here, because a start from the cache does not need it

    path, dims = model_path_and_dims(options)
    with Progress("reading", path.name):
        return read_model(path, dims, options.weights, getattr(options, "function", None) or "main")


def reads_sizes(model: str | Path) -> bool:
    """Return whether --dim sets sizes of a model when its file is read: of an ONNX model and of a .pt2 file."""
    return Path(model).suffix == ".onnx" or is_exported_program(model)


def model_path_and_dims(options: argparse.Namespace) -> tuple[Path, dict[str, int | tuple[int, int] | None]]:
    """Check that the model file exists.  Return its path, and the sizes from --dim with which it must be read.

    Raise FileNotFoundError if the file does not exist, and RelvmArgumentError if --dim is given without --random for
    a .relvm file or a StableHLO program."""
    path = Path(options.model)
    sizes = parse_dims(options.dim)
    if not os.path.lexists(path):
        raise missing_file(path)
    if sizes and (path.suffix == ".relvm" or is_stablehlo(path)):
        if not getattr(options, "random", False):
            others = ", and to random inputs (--random)" if hasattr(options, "random") else ""
            how = f"write the size in {path}" if path.suffix == ".relvm" else "export it with this size"
            raise RelvmArgumentError(f"--dim applies to ONNX models and .pt2 files{others}; for this program, {how}")
        return path, {}
    return path, sizes


def chosen_target(options: argparse.Namespace) -> str:
    """Return the target for the value of --target.

    `auto` means "c" if there is a C compiler.  Otherwise it means "bytecode", and a note is printed on
    standard error.
    """
    if options.target != "auto":
        return options.target
    if find_compiler() is not None:
        return "c"
    note(_NO_COMPILER)
    return "bytecode"


def load_or_build(
    options: argparse.Namespace, *, exec_mode: str = "bytecode", debug: bool = False, portable: bool = False
) -> Executable:
    """Return the executable of the file `options.model`.  If the file is a model, build it.

    An executable file is loaded even if this machine cannot run it.  In this case, the caller must pass the result to
    `relvm.vm.adapt`.

    exec_mode: the default of --exec-mode for a model.
    debug: whether to build a model for a debugger.
    portable: whether a build also contains a portable program.

    Raises
    ------
    RelvmArgumentError
        Build options are given for a file that is already an executable.
    """
    if Path(options.model).suffix in EXECUTABLE_SUFFIXES:
        given = {"--exec-mode": options.exec_mode, "--target": None if options.target == "auto" else options.target}
        given |= {
            "--unfused": options.unfused or None,
            "--weights": options.weights,
            "--dim": None if getattr(options, "random", False) else options.dim or None,
        }
        expect_to_build(options.model, given)
        return load(options.model, trust_native=options.trust_native, elsewhere=True)
    return build_file(options, options.exec_mode or exec_mode, debug=debug, portable=portable)


def build_file(
    options: argparse.Namespace, exec_mode: str, *, debug: bool = False, portable: bool = False
) -> Executable:
    """Build the model `options.model`, in a process of its own if the command line limits the build."""
    given = (getattr(options, "limit_seconds", None), getattr(options, "limit_bytes", None))
    if given == (None, None):
        if exec_mode == "auto":
            return _build_auto(options)
        return build_module(read_module(options), options, exec_mode, debug=debug, portable=portable)
    from relvm.limited_build import BuildLimits, build_limited

    limits = BuildLimits(*given)
    path, dims = model_path_and_dims(options)
    with Progress("building"):
        return build_limited(
            path,
            limits,
            dims=dims,
            weights=options.weights,
            function=getattr(options, "function", "main"),
            exec_mode=exec_mode,
            target=chosen_target(options),
            fused=not options.unfused,
            debug=debug,
            portable=portable,
        )


def _build_auto(options: argparse.Namespace) -> Executable:
    """Return the executable of a model for --exec-mode auto, from the cache if possible."""
    path, dims = model_path_and_dims(options)
    target = "c" if options.target == "auto" else options.target
    with Progress("building", "reading") as progress:
        executable = build_model(
            path,
            dims,
            "auto",
            target,
            weights=options.weights,
            function=options.function,
            fused=not options.unfused,
            progress=progress.step,
        )
    if target == "c" and executable.upgrade is not None and find_compiler() is None:
        note(_NO_COMPILER)
    return executable


def run_limits(options: argparse.Namespace) -> dict[str, Any]:
    """Return the limits of a run that are given on the command line, as keyword arguments of `VirtualMachine`."""
    limits = {name: getattr(options, name) for name in ("max_seconds", "max_bytes", "max_steps")}
    return {name: limit for name, limit in limits.items() if limit is not None}


def build_module(
    module: Module, options: argparse.Namespace, exec_mode: str, *, debug: bool = False, portable: bool = False
) -> Executable:
    """Build a module with the command-line options, and show progress."""
    from relvm.compiler.build import build  # imported here, because a start from the cache does not need it

    target, fused = chosen_target(options), not options.unfused
    with Progress("building") as progress:
        return build(module, exec_mode, target, fused=fused, debug=debug, portable=portable, progress=progress.step)


def expect_html_name(option: str, path: str) -> None:
    """Raise RelvmArgumentError if the file `path` of an option that writes a page does not end in .html."""
    if Path(path).suffix != ".html":
        raise RelvmArgumentError(f"{option} {path}: expected a file name ending in .html")


def expect_writable(option: str, path: str | None) -> None:
    """Raise RelvmArgumentError if the file `path` of an option cannot be written.  Nothing is written."""
    if not path:
        return
    target = Path(path)
    if target.is_dir():
        raise RelvmArgumentError(f"{option} {path}: expected a file, but it is a folder")
    if not target.parent.is_dir():
        raise RelvmArgumentError(f"{option} {path}: the folder {target.parent} does not exist")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise RelvmArgumentError(f"{option} {path}: permission denied")
