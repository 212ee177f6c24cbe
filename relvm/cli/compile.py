"""`relvm compile`: compile a model to an executable, or to a shared library for C programs."""

from __future__ import annotations

import argparse
from pathlib import Path

from relvm.cli.models import build_limits, build_model, build_with_limits, expect_writable, read_module
from relvm.cli.output import note
from relvm.compiler.export_library import export_library
from relvm.errors import RelvmFormatError
from relvm.runtime.file_io import EXECUTABLE_SUFFIXES


def compile_model(options: argparse.Namespace) -> int:
    """Build a model, and write the executable or, for C programs, a shared library that contains the executable."""
    suffix = Path(options.output).suffix
    if suffix not in EXECUTABLE_SUFFIXES:
        raise RelvmFormatError(f"-o {options.output}: expected a file ending in .rvm, or .so for a shared library")
    expect_writable("-o", options.output)
    extra = {"debug": options.debug, "portable": options.portable}
    if limits := build_limits(options):
        executable = build_with_limits(options, limits, options.exec_mode, **extra)
    else:
        executable = build_model(read_module(options), options, options.exec_mode, **extra)
    if suffix == ".so":
        export_library(executable, options.output)
    else:
        executable.save(options.output)
    note(f"wrote {options.output}, {Path(options.output).stat().st_size:,} bytes")
    return 0
