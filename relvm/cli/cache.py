"""`relvm cache`."""

from __future__ import annotations

import argparse

from relvm.cli.output import put
from relvm.compiler.disk_cache import kept_files, limit_bytes, shrink
from relvm.runtime.trust import cache_directory


def show_cache(options: argparse.Namespace) -> int:
    """Print the folder and the size of the build cache.  With --clear, also remove the cached files."""
    files = kept_files()
    put(f"{cache_directory()}: {len(files):,} files, {_bytes(files):,} of at most {limit_bytes():,} bytes")
    if options.clear:
        put(f"removed {shrink(0):,} bytes")
    return 0


def _bytes(files) -> int:
    return sum(file.size_bytes for file in files)
