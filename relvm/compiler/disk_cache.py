"""Disk cache: compiled objects and built executables, as files in the cache directory.

If the total size exceeds a limit, the least recently used files are removed.

Environment variables: RELVM_CACHE_DIR is the cache directory (see relvm/runtime/cache_folder.py).  RELVM_CACHE_BYTES
is the limit on the total size, 2 GB by default.

Any number of processes may use the directory at the same time.  Files are created atomically.  Incomplete files of
killed processes count towards the limit and are removed like others.

The directory `built/` contains an empty file for each native code that was built on this machine (see
relvm/runtime/trust.py).  These files are not part of the cache, because saved executables need them.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from typing import TYPE_CHECKING

from relvm.data_classes import value_record
from relvm.errors import RelvmArgumentError
from relvm.runtime.cache_folder import open_cache
from relvm.system import watch_forks

if TYPE_CHECKING:
    pass

_DEFAULT_BYTES = 2_000_000_000
_REMAINING_SHARE = 0.75  # fraction of the limit that is kept by a removal, so that removals are rare
_KINDS = ("compiled", "builds", "claims", "peaks")
_LARGE_BYTES = 1_000_000


@value_record
class CacheFile:
    """A file of the cache.

    used: the time of its last use, in seconds since the epoch.
    """

    kind: str
    name: str
    size_bytes: int
    used: float


def key_suffix(kind: str, name: str) -> bytes:
    """Return the bytes at the end of a cache file that state its key.

    `read` compares them with the name of the file, so it does not use a renamed file.   kind, name: as for `write`.
    """
    return f"\nrelvm cache: {kind} {name}\n".encode()


def read(kind: str, name: str) -> bytes | None:
    """Return the contents of a cache file, or None if there is no valid file.   kind, name: as for `write`."""
    suffix = key_suffix(kind, name)
    try:
        with open_cache().open(kind, name) as file:
            content = file.read()
            if not content.endswith(suffix):
                return None
            record_use(kind, name)
    except OSError:
        return None
    return content[: -len(suffix)]


def record_use(kind: str, name: str) -> None:
    """Set the time of the last use of a cache file to now, so that it is removed later than others."""
    with contextlib.suppress(OSError):
        open_cache().touch(kind, name)


def write(kind: str, name: str, content: bytes | memoryview) -> None:
    """Write a cache file atomically, unless `content` is larger than the limit on the total size.

    An OSError is ignored, because a read-only home directory must not make a build fail.

    kind: "compiled" for objects and libraries, "builds" for executables, or "peaks" for the peak rates of machines.
    name: a digest of everything that determines the contents.
    """
    limit = limit_bytes()
    if len(content) > limit:
        return
    with contextlib.suppress(OSError), _writing:
        if threading.current_thread().daemon and not threading.main_thread().is_alive():
            return  # the thread would stop in the middle of the file
        open_cache(create=True).write(kind, name, content, key_suffix(kind, name))
    # To save time, only one small file in 16 starts a check of the total size.  Names are digests in hexadecimal.
    if len(content) >= _LARGE_BYTES or name.startswith("0"):
        remove_least_recently_used(limit)


_writing = threading.Lock()


def _finish_writing() -> None:
    """Wait until a thread in the background has written its file."""
    with _writing:
        pass


def _reset_in_child() -> None:
    """Create a new lock, because a thread that exists only in the parent process can hold the old one."""
    global _writing
    _writing = threading.Lock()


atexit.register(_finish_writing)
watch_forks(in_child=_reset_in_child)


def limit_bytes() -> int:
    """Return the limit on the total size, from RELVM_CACHE_BYTES.  Raise RelvmArgumentError if that is not a number."""
    text = os.environ.get("RELVM_CACHE_BYTES") or str(_DEFAULT_BYTES)
    if not (text.isascii() and text.isdigit()):
        raise RelvmArgumentError(f"RELVM_CACHE_BYTES: expected an integer number of bytes, got {text!r}")
    return int(text)


def cached_files() -> list[CacheFile]:
    """Return all files that are in the cache, of all kinds."""
    try:
        cache = open_cache()
    except OSError:
        return []
    return [
        CacheFile(kind, name, status.st_size, status.st_mtime) for kind in _KINDS for name, status in cache.files(kind)
    ]


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
            open_cache().remove(file.kind, file.name)
            removed += file.size_bytes
    return removed
