"""What was compiled and built before: files in the cache directory.  Those used longest ago go when all are too large.

Environment: RELVM_CACHE_DIR, see relvm/runtime/trust.py; RELVM_CACHE_BYTES, how large they may be, 2 GB where it is
not set.  Any number of processes may use the directory at once: files appear whole and are only ever replaced by equal
ones.  What a process that was killed leaves half written counts as a file, and goes as they do.  The records of what
was built here (`built/`) are no part of it: they are empty, and saved executables need them.
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
_KEPT_SHARE = 0.75  # of what is allowed that stays when some goes, so that this is seldom
_LARGE_BYTES = 1_000_000


@dataclass(frozen=True)
class CacheFile:
    """A file of the cache, its size in bytes, and when it was last used, in seconds."""

    path: Path
    size_bytes: int
    used: float


def cache_place(kind: str, digest: str) -> Path:
    """Where what has this digest is kept.  kind: "compiled" (objects and libraries) or "builds" (executables)."""
    return cache_directory() / kind / digest


def touch(path: Path) -> None:
    """States that a file has been used."""
    with contextlib.suppress(OSError):
        os.utime(path)


def write(path: Path, content: bytes | memoryview) -> None:
    """Keeps a file, whole or not at all: the cache is a convenience, and a read-only home must not stop a build.  One
    that is larger than all may be together is not kept."""
    limit = limit_bytes()
    if len(content) > limit:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with complete_file(path) as partial:
            partial.write_bytes(content)
    if len(content) >= _LARGE_BYTES or path.name.startswith("0"):  # names are digests: of small files one in 16
        shrink(limit)


def limit_bytes() -> int:
    """RELVM_CACHE_BYTES.  Raises RelvmArgumentError: it is no number of bytes."""
    text = os.environ.get("RELVM_CACHE_BYTES") or str(_DEFAULT_BYTES)
    if not (text.isascii() and text.isdigit()):
        raise RelvmArgumentError(f"RELVM_CACHE_BYTES: expected a number of bytes, got {text!r}")
    return int(text)


def kept_files() -> list[CacheFile]:
    """All files of the cache."""
    return [file for kind in ("compiled", "builds") for file in _files(cache_directory() / kind)]


def _files(folder: Path) -> list[CacheFile]:
    found = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process may have removed it
                status = entry.stat()
                found.append(CacheFile(Path(entry.path), status.st_size, status.st_mtime))
    return found


def shrink(limit: int) -> int:
    """Removes the files used longest ago where all are larger than `limit` bytes together; gives the bytes removed."""
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
