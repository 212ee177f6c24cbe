"""`relvm compile`."""

from __future__ import annotations

import argparse
from pathlib import Path

from relvm.cli.models import build_model, note, read_module
from relvm.errors import RelvmFormatError


def compile_model(options: argparse.Namespace) -> int:
    """Builds a model and writes the executable."""
    if Path(options.output).suffix != ".rvm":
        raise RelvmFormatError(f"-o {options.output}: an executable's file name ends in .rvm")
    executable = build_model(read_module(options), options, options.exec_mode)
    executable.save(options.output)
    note(f"wrote {options.output}, {Path(options.output).stat().st_size:,} bytes")
    return 0
