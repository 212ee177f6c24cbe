"""`relvm fmt`: format .relvm files."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from relvm.cli.arguments import Parser
from relvm.cli.output import complain, note, put
from relvm.editors.formatter import format_text
from relvm.errors import RelvmArgumentError, RelvmError
from relvm.runtime.file_io import complete_file, read_text


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm fmt program.relvm"
    parser.add_argument("files", nargs="+", metavar="FILE", help=".relvm files, or - for standard input")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a file would change")


def run(options: argparse.Namespace) -> int:
    """Format files in place, and return the exit status.

    With --check, only print the names of files that would change, and return 1 if there are any.  A file that cannot be
    formatted is reported, and the result is then 1.  Other files are still formatted.  The file `-` means standard
    input: the formatted text is printed.
    """
    if "-" in options.files:
        if len(options.files) > 1 or options.check:
            raise RelvmArgumentError("-: standard input cannot be combined with other files or with --check")
        put(format_text(sys.stdin.read(), "<stdin>"), end="")
        return 0
    changed = failed = 0
    for file in options.files:
        try:
            changed += _format_file(file, is_check=options.check)
        except (RelvmError, OSError) as error:
            failed += 1
            complain(error)
    if not options.check:
        note(f"formatted {changed} of {len(options.files)} files")
    return 1 if failed or (options.check and changed) else 0


def _format_file(file: str, *, is_check: bool) -> bool:
    """Format a file and return whether its text changes.  With `is_check`, only print the name of a changed file."""
    if Path(file).suffix != ".relvm":
        raise RelvmArgumentError(f"{file}: expected a .relvm file")
    text = read_text(file)
    formatted = format_text(text, file)
    if formatted == text:
        return False
    if is_check:
        put(f"would format {file}")
        return True
    with complete_file(file) as path:
        path.write_text(formatted, encoding="utf-8", newline="")
        shutil.copymode(file, path)
    return True
