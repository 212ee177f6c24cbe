"""`relvm fmt`."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from relvm.cli.output import note, put
from relvm.editors.formatter import format_text
from relvm.errors import RelvmArgumentError
from relvm.runtime.file_io import complete_file, read_text


def format_files(options: argparse.Namespace) -> int:
    """Format files in place.  With --check, only name those that would change, and return 1 if there is one.

    The file `-` is standard input, whose formatted text is printed.
    """
    if "-" in options.files:
        if len(options.files) > 1 or options.check:
            raise RelvmArgumentError("-: standard input is formatted alone and without --check")
        put(format_text(sys.stdin.read(), "<stdin>"), end="")
        return 0
    changed = []
    for file in options.files:
        if Path(file).suffix != ".relvm":
            raise RelvmArgumentError(f"{file}: expected a .relvm file")
        text = read_text(file)
        formatted = format_text(text, file)
        if formatted == text:
            continue
        changed.append(file)
        if options.check:
            put(f"would format {file}")
        else:
            with complete_file(file) as path:
                path.write_text(formatted, encoding="utf-8", newline="")
                shutil.copymode(file, path)
    if not options.check:
        note(f"formatted {len(changed)} of {len(options.files)} files")
    return 1 if options.check and changed else 0
