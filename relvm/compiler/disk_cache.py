"""Disk cache: compiled objects and built executables, as files in the cache directory.  If they become too large, the
least recently used ones are removed.

Environment: RELVM_CACHE_DIR is the directory (see relvm/runtime/trust.py), and RELVM_CACHE_BYTES the limit of the total
size, 2 GB by default.  Any number of processes may use the directory at the same time: files are created atomically and
only ever replaced by equal ones.  Unfinished files of killed processes count towards the limit and are removed like
others.  The records of native code that was built here (`built/`) are not part of the cache: they are empty, and saved
executables need them.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from relvm.errors import RelvmArgumentError
from relvm.runtime.file_io import complete_file
from relvm.runtime.trust import cache_directory

_DEFAULT_BYTES = 2_000_000_000
_KEPT_SHARE = 0.75  # the share of the limit that remains after a removal, so that removals are rare
_LARGE_BYTES = 1_000_000


@dataclass(frozen=True)
class CacheFile:
    """A file of the cache: its size in bytes, and its last use, in seconds since the epoch."""

    path: Path
    size_bytes: int
    used: float


def cache_place(kind: str, digest: str) -> Path:
    """Return the path for a digest.  kind: "compiled" (objects and libraries), "builds"
    (executables) or "claims" (locks of processes that build)."""
    return cache_directory() / kind / digest


def touch(path: Path) -> None:
    """Mark a file as used."""
    with contextlib.suppress(OSError):
        os.utime(path)


def write(path: Path, content: bytes | memoryview) -> None:
    """Write a file atomically, if possible.  Errors are ignored, because a read-only home directory must not stop a
    build.  A file larger than the limit is not written."""
    limit = limit_bytes()
    if len(content) > limit:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with complete_file(path) as partial:
            partial.write_bytes(content)
    if len(content) >= _LARGE_BYTES or path.name.startswith(
        "0"
    ):  # names are digests, so this selects one small file in 16
        shrink(limit)


def limit_bytes() -> int:
    """Return the limit in RELVM_CACHE_BYTES.  Raise RelvmArgumentError if it is not a number of bytes."""
    text = os.environ.get("RELVM_CACHE_BYTES") or str(_DEFAULT_BYTES)
    if not (text.isascii() and text.isdigit()):
        raise RelvmArgumentError(f"RELVM_CACHE_BYTES: expected an integer number of bytes, got {text!r}")
    return int(text)


def kept_files() -> list[CacheFile]:
    """Return all files of the cache."""
    return [file for kind in ("compiled", "builds", "claims") for file in _files(cache_directory() / kind)]


def _files(folder: Path) -> list[CacheFile]:
    found = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process may have removed the file
                status = entry.stat()
                found.append(CacheFile(Path(entry.path), status.st_size, status.st_mtime))
    return found


def shrink(limit: int) -> int:
    """Remove the least recently used files if all files together exceed `limit` bytes.  Return the bytes removed."""
    files = kept_files()
    total = sum(file.size_bytes for file in files)
    excess = total - limit * _KEPT_SHARE if total > limit else 0
    removed = 0
    for file in sorted(files, key=lambda file: file.used):
        if removed >= excess:
            break
        with contextlib.suppress(OSError):
            file.path.unlink()
            removed += file.size_bytes
    return removed
