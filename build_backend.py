"""The build backend: scikit-build-core, and where there is no C compiler, the one in the `ziglang` wheel.

So relvm can be installed on a machine that can only install packages.  The compiler exists only during the build, so
programs on such a machine run as bytecode.
"""

from __future__ import annotations

import contextlib
import os
import shlex
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
        os.environ["CC"] = str(write_zig_tools(Path(folder), "-mcpu=baseline"))
        try:
            yield
        finally:
            del os.environ["CC"]


def write_zig_tools(folder: Path, *options: str) -> Path:
    """Write the scripts cc, ar and ranlib, which call zig, and return the path of cc.

    CMake finds the other two beside it.  The programs with which CMake tests the compiler are not optimized.  Without
    -fno-sanitize=undefined, zig would compile its library for undefined behavior for them, which takes half a minute.

    options: of the C compiler, such as `-target`.
    """
    for name, words in (
        ("cc", ("cc", "-g0", "-fno-sanitize=undefined", *options)),
        ("ar", ("ar",)),
        ("ranlib", ("ranlib",)),
    ):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join((sys.executable, "-m", "ziglang", *words))} "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return folder / "cc"
