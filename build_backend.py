"""The build backend: scikit-build-core, and where there is no C compiler, the one in the `ziglang` wheel.

So relvm can be installed on a machine that can only install packages.  The compiler exists only during the build, so
programs on such a machine run as bytecode.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scikit_build_core import build as _backend

get_requires_for_build_sdist = _backend.get_requires_for_build_sdist
build_sdist = _backend.build_sdist
prepare_metadata_for_build_wheel = _backend.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = _backend.prepare_metadata_for_build_editable


def _has_compiler() -> bool:
    return bool(os.environ.get("CC")) or any(map(shutil.which, ("cc", "gcc", "clang")))


def get_requires_for_build_wheel(config_settings: dict | None = None) -> list[str]:
    return _with_compiler(_backend.get_requires_for_build_wheel(config_settings))


def get_requires_for_build_editable(config_settings: dict | None = None) -> list[str]:
    return _with_compiler(_backend.get_requires_for_build_editable(config_settings))


def build_wheel(directory: str, config_settings: dict | None = None, metadata_directory: str | None = None) -> str:
    with _compiler():
        return _backend.build_wheel(directory, config_settings, metadata_directory)


def build_editable(directory: str, config_settings: dict | None = None, metadata_directory: str | None = None) -> str:
    with _compiler():
        return _backend.build_editable(directory, config_settings, metadata_directory)


def _with_compiler(requirements: list[str]) -> list[str]:
    return requirements if _has_compiler() else [*requirements, "ziglang"]


@contextlib.contextmanager
def _compiler() -> Iterator[None]:
    """Sets CC to a script that calls zig's C compiler where there is no other."""
    if _has_compiler():
        yield
        return
    with tempfile.TemporaryDirectory(prefix="relvm-cc-") as folder:
        script = Path(folder, "cc")
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang cc "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        os.environ["CC"] = str(script)
        try:
            yield
        finally:
            del os.environ["CC"]
