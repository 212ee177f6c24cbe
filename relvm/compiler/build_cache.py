"""Build cache: executables of earlier builds, in the cache directory.

Only modules with a known origin (relvm/ir/fingerprint.py), such as model files, are cached, because hashing a whole
module takes a considerable part of its build time.
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
    """Return the file in which the executable of a build is cached.  Return None if the origin of its module is not
    known.

    Only builds that wait for the C compiler depend on it.  With "auto", native code of an earlier compiler stays valid.
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
    """Return the file in which a build with exec_mode="auto" is cached.

    origin, attributes: of the module.
    """
    return _place(origin, attributes, "auto", target_kind, target_options, fused, portable)


def _place(*settings: object) -> Path:
    text = repr((settings, np.__version__, _own_sources()))
    return cache_place("builds", hashlib.sha256(text.encode()).hexdigest())


def has_bytecode(executable: Executable) -> bool:
    """Return whether some of its functions are bytecode: with "auto", before the native code replaces them."""
    return "bytecode" in map(executable.function_kind, range(executable.function_count))


def cached_executable(place: Path) -> Executable | None:
    """Return the executable in that file, or None if there is none that can be used."""
    try:
        executable = Executable.open(place)
    except (OSError, RelvmError):  # missing or damaged, or there is no record that its native code was built here
        return None
    touch(place)
    return executable


@contextlib.contextmanager
def claim(place: Path) -> Iterator[None]:
    """Wait until no other process builds the executable of that file.  Without a writable cache, do not wait."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            file = cache_place("claims", place.name)
            file.parent.mkdir(parents=True, exist_ok=True)
            opened = stack.enter_context(open(file, "wb"))
            fcntl.flock(opened, fcntl.LOCK_EX)  # released when the file is closed, or the process ends
        yield


def keep(place: Path, executable: Executable) -> None:
    """Save an executable to that file."""
    write(place, executable.to_bytes())


@functools.cache
def _own_sources() -> str:
    """Return a digest of the sources of this version of relvm."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for folder, folders, files in os.walk(package):  # pathlib would take longer than all the rest
        folders.sort()
        digest.update(os.path.relpath(folder, package).encode())
        for name in sorted(files):
            if name.endswith(".py"):
                digest.update(f" {name} ".encode())
                with open(os.path.join(folder, name), "rb") as file:
                    digest.update(file.read())
    return digest.hexdigest()
