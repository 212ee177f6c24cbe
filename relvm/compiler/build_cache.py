"""Build cache: executables of earlier builds, in the cache directory.

Only executables of modules with a cache key (relvm/ir/cache_key.py), such as model files, are cached.  For other
modules, the key would be a hash of the whole module.  Computing the hash takes a considerable part of the build time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from relvm.compiler.disk_cache import key_suffix, record_use, write
from relvm.data_classes import value_record
from relvm.errors import RelvmError
from relvm.installation import has_compiler, record_row
from relvm.runtime.cache_folder import CacheFolder, open_cache
from relvm.runtime.executable import Executable, LoadPolicy
from relvm.runtime.file_io import map_cached
from relvm.system import try_lock

if TYPE_CHECKING:
    from relvm.compiler.target import Target
    from relvm.ir.expr import Module

_KIND = "builds"  # of the cache files
_SUFFIXES = (".py", ".tsv")  # of the files on which a build depends
SOURCES_DIGEST = "sources_digest.txt"  # in an installation of relvm-runtime (release/split_wheel.py)
_IMPORTED = time.time()
_LOCK_INTERVAL = 0.05  # seconds between two attempts to lock an entry


@value_record
class CacheEntry:
    """The place of a build in the cache.

    prefix: the first part of the file name, which is a digest of the module's cache key and of the build options.
    """

    prefix: str

    @property
    def name(self) -> str | None:
        """The name of the file, which ends with a digest of relvm's sources, or None if this digest is unknown."""
        digest = _sources_digest()
        return None if digest is None else f"{self.prefix}-{digest}"

    def may_exist(self, cache: CacheFolder) -> bool:
        """Return whether the cache contains a file for this entry, written by the same or another version of relvm.

        This test takes less time than computing the digest of the sources.
        """
        with contextlib.suppress(OSError), cache.folder(_KIND) as folder:
            return any(name.startswith(self.prefix) for name in folder.names())
        return False


def find_entry(
    module: Module, exec_mode: str | Mapping[str, str], target: Target, fused: bool, debug: bool, portable: bool
) -> CacheEntry | None:
    """Return the cache entry of a build, or None if the build is not cached.

    A build is not cached if its module has no cache key, or if the target is "numpy".

    If the build itself calls the C compiler, the entry depends on the compiler and its version.  With exec_mode="auto",
    it does not depend on them, because native code from any compiler is valid.
    """
    from relvm.ir.cache_key import cache_key_of  # a start from the cache does not need it

    module_key = cache_key_of(module)
    if module_key is None or target.kind == "numpy":
        return None
    if exec_mode == "auto":
        return find_auto_entry(
            module_key, module.attributes, target.kind, target.settings, fused=fused, portable=portable
        )
    native = ""
    if target.kind == "c" or exec_mode != "bytecode":
        from relvm.compiler.toolchain import native_settings  # a start from the cache does not need it

        native = native_settings(target)
    modes = exec_mode if isinstance(exec_mode, str) else sorted(exec_mode.items())
    return _entry(module_key, module.attributes, modes, target.kind, target.settings, fused, debug, portable, native)


def find_auto_entry(
    module_key: str,
    attributes: tuple,
    target_kind: str,
    target_settings: tuple[str, ...] | None,
    *,
    fused: bool,
    portable: bool = False,
) -> CacheEntry:
    """Return the cache entry of a build with exec_mode="auto".

    module_key, attributes: the cache key and the attributes of the module.
    target_kind, target_settings: the attributes `kind` and `settings` of the Target.
    fused: whether operators are fused into common kernels.
    portable: whether the executable also contains a program for target "bytecode".
    """
    return _entry(module_key, attributes, "auto", target_kind, target_settings, fused, portable)


def _entry(*settings: object) -> CacheEntry:
    text = repr((settings, np.__version__))
    return CacheEntry(hashlib.sha256(text.encode()).hexdigest())


def cached_executable(entry: CacheEntry) -> Executable | None:
    """Return the executable of a cache entry, or None if its file does not exist or cannot be used."""
    try:
        cache = open_cache()
        name = entry.name if entry.may_exist(cache) else None
        if name is None:
            return None
        with cache.open(_KIND, name) as file:
            path = os.path.join(cache.path, _KIND, name)
            content = map_cached(file, path, key_suffix(_KIND, name))
            if content is None:
                return None
            executable = Executable(content, LoadPolicy(), where=path)
            record_use(_KIND, name)
    except (OSError, RelvmError):  # missing or damaged, or there is no record that its native code was built here
        return None
    return executable


@contextlib.contextmanager
def lock_entry(entry: CacheEntry, expect_wanted: Callable[[], None] = lambda: None) -> Iterator[None]:
    """A context manager that locks a cache entry while its executable is built.

    If several processes need the same executable, only one of them builds it, and the others wait for it.  If the cache
    is not writable, the entry is not locked.

    expect_wanted: a function that is called repeatedly while another process holds the lock.  It raises an exception to
    end the wait.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            file = stack.enter_context(open_cache(create=True).create("claims", entry.name or entry.prefix))
            while not try_lock(file):  # the lock is released when the file is closed or the process ends
                expect_wanted()
                time.sleep(_LOCK_INTERVAL)
        yield


def write_executable(entry: CacheEntry, executable: Executable) -> None:
    """Write an executable to the file of a cache entry, if its name is known.  An existing file is replaced."""
    if (name := entry.name) is not None:
        write(_KIND, name, executable.to_buffer())


@functools.cache
def _sources_digest() -> str | None:
    """Return a digest of the sources of this installation of relvm.

    The digest depends only on the names and contents of the files, and not on how relvm was installed.  Return None if
    a file cannot be read, or was changed after this process imported relvm: the sources are then not those that run.

    An installation of relvm-runtime alone has the digest of the relvm of the same version, so that it finds the builds
    of this relvm.  The file SOURCES_DIGEST contains the digest.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        if not has_compiler():
            with open(os.path.join(package, SOURCES_DIGEST), encoding="ascii") as file:
                return file.read()
        files = dict(_source_files(package))
        if any(modified > _IMPORTED for modified in files.values()):
            return None
        rows = _recorded_rows(package, files) or _rows(package, files)
    except OSError:
        return None
    return digest_of_rows(rows)


def digest_of_rows(rows: Iterable[bytes]) -> str:
    """Return the digest of sources, given a row `path,sha256=digest,bytes` for each file, as in RECORD."""
    return hashlib.sha256(b"\n".join(sorted(rows))).hexdigest()


def is_source(name: str) -> bool:
    """Return whether a build depends on the file of this name."""
    return name.endswith(_SUFFIXES)


def _source_files(package: str) -> Iterator[tuple[str, float]]:
    """Yield the path of each source file of a package, and the time at which the file was last modified.

    Besides the Python files, the table of ONNX schemas is a source, because the importer reads it.
    """
    folders = [package]
    while folders:
        with os.scandir(folders.pop()) as entries:  # pathlib would be the slowest part
            for entry in entries:
                if is_source(entry.name):
                    yield entry.path, entry.stat().st_mtime
                elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


def _rows(package: str, files: Mapping[str, float]) -> list[bytes]:
    """Return the row in RECORD of each source file of a package, in sorted order.

    files: a dict whose keys are the paths of the files.
    """
    rows, start = [], len(os.path.dirname(package)) + 1  # os.path.relpath would be slow
    for path in files:
        with open(path, "rb") as file:
            rows.append(record_row(path[start:], file.read()))
    return sorted(rows)


def _recorded_rows(package: str, files: Mapping[str, float]) -> list[bytes] | None:
    """Return the same rows as `_rows`, read from the files RECORD, which the installer of wheels writes.

    Reading them is faster than reading all sources.  Return None if the RECORDs of relvm and relvm-runtime do not list
    exactly the files `files`, or if a file was changed after the installation.   files: the time of the last
    modification of each file.
    """
    folder, name = os.path.split(package)
    names = {path[len(folder) + 1 :].encode() for path in files}
    rows: dict[bytes, bytes] = {}
    written = float("inf")
    for info in os.listdir(folder):
        if not (info.startswith((f"{name}-", f"{name}_runtime-")) and info.endswith(".dist-info")):
            continue
        with contextlib.suppress(OSError), open(os.path.join(folder, info, "RECORD"), "rb") as record:
            written = min(written, os.fstat(record.fileno()).st_mtime)
            rows |= {row.partition(b",")[0]: row for row in record.read().splitlines()}
    suffixes = tuple(suffix.encode() for suffix in _SUFFIXES)
    sources = {path for path in rows if path.startswith(f"{name}/".encode()) and path.endswith(suffixes)}
    if sources != names or any(modified > written for modified in files.values()):
        return None
    return sorted(rows[path] for path in names)
