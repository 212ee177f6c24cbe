"""Build cache: executables of earlier builds, in the cache directory.

Only executables of modules with a known origin (relvm/ir/fingerprint.py), such as model files, are cached.  Without an
origin, the key would be a hash of the whole module, which takes a considerable part of the build time.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from relvm.compiler.disk_cache import cache_place, touch, write
from relvm.errors import RelvmError
from relvm.runtime.executable import Executable

if TYPE_CHECKING:
    from relvm.compiler.target import Target
    from relvm.ir.expr import Module


def place_of(
    module: Module, exec_mode: str | Mapping[str, str], target: Target, fused: bool, debug: bool, portable: bool
) -> Path | None:
    """Return the path of the cache file for a build, or None if the build is not cached.

    A build is not cached if the origin of its module is not known, or if the target is "numpy".

    If the build itself calls the C compiler, the path depends on the compiler and its version.  With exec_mode="auto",
    the path does not depend on them, because native code from any compiler is valid.
    """
    from relvm.ir.fingerprint import origin_of  # a start from the cache does not need it

    origin = origin_of(module)
    if origin is None or target.kind == "numpy":
        return None
    if exec_mode == "auto":
        return auto_place(origin, module.attributes, target.kind, target.options, fused=fused, portable=portable)
    native = ""
    if target.kind == "c" or exec_mode != "bytecode":
        from relvm.compiler.toolchain import native_settings  # a start from the cache does not need it

        native = native_settings(target)
    modes = exec_mode if isinstance(exec_mode, str) else sorted(exec_mode.items())
    return _place(origin, module.attributes, modes, target.kind, target.options, fused, debug, portable, native)


def auto_place(
    origin: str,
    attributes: tuple,
    target_kind: str,
    target_options: tuple[str, ...] | None,
    *,
    fused: bool,
    portable: bool = False,
) -> Path:
    """Return the path of the cache file for a build with exec_mode="auto".

    origin, attributes: the origin and the attributes of the module.   target_kind, target_options: the fields `kind`
    and `options` of the Target.   fused, portable: as for `build`.
    """
    return _place(origin, attributes, "auto", target_kind, target_options, fused, portable)


def _place(*settings: object) -> Path:
    text = repr((settings, np.__version__, _own_sources()))
    return cache_place("builds", hashlib.sha256(text.encode()).hexdigest())


def has_bytecode(executable: Executable) -> bool:
    """Return whether some functions of an executable are bytecode.

    With exec_mode="auto", this is the case for the executable that is first written to a cache file.  Later, an
    executable with native code replaces it.
    """
    return "bytecode" in map(executable.function_kind, range(executable.function_count))


def cached_executable(place: Path) -> Executable | None:
    """Return the executable in the cache file `place`, or None if the file does not exist or cannot be used."""
    try:
        executable = Executable.open(place)
    except (OSError, RelvmError):  # missing or damaged, or there is no record that its native code was built here
        return None
    touch(place)
    return executable


@contextlib.contextmanager
def claim(place: Path) -> Iterator[None]:
    """A context manager that locks the cache file `place`, so that only one process builds its executable.

    If another process has the lock, wait for it.  If the cache is not writable, do not lock, and do not wait.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            file = cache_place("claims", place.name)
            file.parent.mkdir(parents=True, exist_ok=True)
            opened = stack.enter_context(open(file, "wb"))
            fcntl.flock(opened, fcntl.LOCK_EX)  # the lock is released when the file is closed or the process ends
        yield


def keep(place: Path, executable: Executable) -> None:
    """Write an executable to the cache file `place`, which is replaced if it exists."""
    write(place, executable.to_bytes())


@functools.cache
def _own_sources() -> str:
    """Return a digest of the Python sources of this installation of relvm."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    files = sorted(_python_files(package))
    return _recorded_digest(package, files) or _content_digest(package, files)


def _python_files(package: str) -> Iterator[tuple[str, float]]:
    """Yield the path of each Python file of a package, and the time at which the file was last modified."""
    folders = [package]
    while folders:
        with os.scandir(folders.pop()) as entries:  # pathlib would be the slowest part
            for entry in entries:
                if entry.name.endswith(".py"):
                    yield entry.path, entry.stat().st_mtime
                elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


def _recorded_digest(package: str, files: list[tuple[str, float]]) -> str | None:
    """Return a digest of the Python files of a package, computed from the digests in the package's file RECORD.

    The installer of a wheel writes the digest of each installed file to RECORD, so the files need not be read.  Return
    None if the package was not installed from a wheel, or if a file was changed after the installation.
    Source: the Python Packaging User Guide, Recording installed projects.
    """
    folder, name = os.path.split(package)
    prefix, own = f"{name}/".encode(), f"{name}/compiler/{os.path.basename(__file__)},".encode()
    with contextlib.suppress(OSError):
        for info in os.listdir(folder):
            if not (info.startswith(f"{name}-") and info.endswith(".dist-info")):
                continue
            with open(os.path.join(folder, info, "RECORD"), "rb") as record:
                lines = sorted(line for line in record if line.startswith(prefix) and b".py,sha256=" in line)
                written = os.fstat(record.fileno()).st_mtime
            if any(line.startswith(own) for line in lines) and all(modified <= written for _, modified in files):
                return hashlib.sha256(b"".join(lines)).hexdigest()
    return None


def _content_digest(package: str, files: list[tuple[str, float]]) -> str:
    """Return a digest of the names and contents of the files of a package."""
    digest = hashlib.sha256()
    for path, _ in files:
        digest.update(f" {path[len(package) :]} ".encode())
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()
