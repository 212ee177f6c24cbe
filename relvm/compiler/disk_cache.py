"""Disk cache: compiled objects and built executables, as files in the cache directory.

If the total size exceeds a limit, the least recently used files are removed.

Environment variables: RELVM_CACHE_DIR is the cache directory (see relvm/runtime/trust.py).  RELVM_CACHE_BYTES is the
limit on the total size, 2 GB by default.

Any number of processes may use the directory at the same time.  Files are created atomically.  Incomplete files of
killed processes count towards the limit and are removed like others.

The directory `built/` contains an empty file for each native code that was built on this machine (see
relvm/runtime/trust.py).  These files are not part of the cache, because saved executables need them.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from relvm.data_classes import value_record
from relvm.errors import RelvmArgumentError
from relvm.runtime.file_io import complete_file
from relvm.runtime.trust import cache_directory

_DEFAULT_BYTES = 2_000_000_000
_REMAINING_SHARE = 0.75  # fraction of the limit that is kept by a removal, so that removals are rare
_KINDS = ("compiled", "builds", "claims", "peaks")
_LARGE_BYTES = 1_000_000


@value_record
class CacheFile:
    """A file of the cache.

    used: the time of its last use, in seconds since the epoch.
    """

    path: str
    size_bytes: int
    used: float


def cache_file_path(kind: str, digest: str) -> Path:
    """Return the path of a cache file.

    digest: the name of the file, which is a digest of everything that determines its contents.

    kind: "compiled" for objects and libraries, "builds" for executables, "claims" for the locks of build processes, or
    "peaks" for the peak rates of machines.
    """
    return cache_directory() / kind / digest


def record_use(path: Path) -> None:
    """Set the time of the last use of the cache file `path` to now, so that it is removed later than others."""
    with contextlib.suppress(OSError):
        os.utime(path)


def write(path: Path, content: bytes | memoryview) -> None:
    """Write the cache file `path` atomically, unless `content` is larger than the limit on the total size.

    Errors are ignored, because a read-only home directory must not make a build fail.
    """
    limit = limit_bytes()
    if len(content) > limit:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with complete_file(path) as partial:
            partial.write_bytes(content)
    # To save time, only one small file in 16 starts a check of the total size.  Names are digests in hexadecimal.
    if len(content) >= _LARGE_BYTES or path.name.startswith("0"):
        remove_least_recently_used(limit)


def limit_bytes() -> int:
    """Return the limit on the total size, from RELVM_CACHE_BYTES.  Raise RelvmArgumentError if that is not a number."""
    text = os.environ.get("RELVM_CACHE_BYTES") or str(_DEFAULT_BYTES)
    if not (text.isascii() and text.isdigit()):
        raise RelvmArgumentError(f"RELVM_CACHE_BYTES: expected an integer number of bytes, got {text!r}")
    return int(text)


def cached_files() -> list[CacheFile]:
    """Return all files that are in the cache, of all kinds."""
    return [file for kind in _KINDS for file in _files(cache_directory() / kind)]


def _files(folder: Path) -> list[CacheFile]:
    found = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process can have removed the file
                status = entry.stat()
                found.append(CacheFile(entry.path, status.st_size, status.st_mtime))
    return found


def remove_least_recently_used(limit: int) -> int:
    """Remove the least recently used files of the cache if its total size exceeds `limit` bytes.

    Return the number of bytes removed.
    """
    files = cached_files()
    total = sum(file.size_bytes for file in files)
    if total <= limit:
        return 0
    excess, removed = total - limit * _REMAINING_SHARE, 0
    for file in sorted(files, key=lambda file: file.used):
        if removed >= excess:
            break
        with contextlib.suppress(OSError):
            os.unlink(file.path)
            removed += file.size_bytes
    return removed
