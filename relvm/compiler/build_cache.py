"""Whole executables that were built before, in the cache directory: a model is built once.

Only modules with a known origin (relvm/ir/fingerprint.py), such as model files, are cached: hashing a whole module
takes a good part of the time that building it takes.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from relvm.compiler.disk_cache import cache_place, touch, write
from relvm.compiler.target import Target
from relvm.compiler.toolchain import native_settings
from relvm.errors import RelvmError
from relvm.ir.expr import Module
from relvm.ir.fingerprint import origin_of
from relvm.runtime.executable import Executable


def place_of(
    module: Module, exec_mode: str | Mapping[str, str], target: Target, fused: bool, debug: bool, portable: bool
) -> Path | None:
    """Where the executable of a build is kept; None where it is not, its module's origin not being known."""
    origin = origin_of(module)
    if origin is None or exec_mode == "auto" or target.kind != "c":
        return None
    modes = exec_mode if isinstance(exec_mode, str) else sorted(exec_mode.items())
    settings = (origin, module.attributes, modes, target, fused, debug, portable, native_settings(target))
    text = repr((settings, np.__version__, _own_sources()))
    return cache_place("builds", hashlib.sha256(text.encode()).hexdigest())


def cached_executable(place: Path) -> Executable | None:
    """The executable that is kept there; None where there is none that can be used."""
    try:
        executable = Executable.open(place)
    except (OSError, RelvmError):  # none, or damaged, or its native code is not recorded as built here
        return None
    touch(place)
    return executable


def keep(place: Path, executable: Executable) -> None:
    """Keeps an executable."""
    write(place, executable.to_bytes())


@functools.cache
def _own_sources() -> str:
    """A digest of this version of relvm."""
    digest = hashlib.sha256()
    folder = Path(__file__).parents[1]
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)} ".encode() + path.read_bytes())
    return digest.hexdigest()
