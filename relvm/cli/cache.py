"""`relvm cache`: show the build cache, or clear it."""

from __future__ import annotations

import argparse
import contextlib

from relvm.cli.arguments import Parser
from relvm.cli.common_arguments import add_json
from relvm.cli.output import put, put_json
from relvm.compiler.disk_cache import cached_files, limit_bytes, remove_least_recently_used
from relvm.runtime.cache_folder import cache_directory, open_cache


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm cache --clear"
    parser.add_argument("--clear", action="store_true", help="delete the cached files")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the folder and the size of the build cache.  With --clear, also remove the cached files."""
    with contextlib.suppress(FileNotFoundError):  # an empty cache has no folder
        open_cache()  # raises an error if the folder is not safe
    files = cached_files()
    if options.json:
        found = {"folder": str(cache_directory()), "files": len(files), "size_bytes": _bytes(files)}
        put_json(
            found
            | {"limit_bytes": limit_bytes()}
            | ({"removed_bytes": remove_least_recently_used(0)} if options.clear else {})
        )
        return 0
    put(f"{cache_directory()}: {len(files):,} files, {_bytes(files):,} of at most {limit_bytes():,} bytes")
    if options.clear:
        put(f"removed {remove_least_recently_used(0):,} bytes")
    return 0


def _bytes(files) -> int:
    return sum(file.size_bytes for file in files)
