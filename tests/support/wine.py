"""Wine, which runs programs for Windows, and zig cc, which compiles them."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

# zig compiles the C library of Windows once with -s, as relvm links DLLs, and once without, for about 100 seconds each.
COMPILER = (sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu", "-g0", "-s")
_DEBIAN = "/usr/lib/wine/wine64"  # the package wine64 has no program in the PATH


@cache
def wine() -> str | None:
    """Return the path of wine, or None if it is not installed."""
    return shutil.which("wine64") or shutil.which("wine") or (_DEBIAN if os.path.exists(_DEBIAN) else None)


needs_wine = pytest.mark.skipif(wine() is None, reason="wine is not installed (.ci/run has the package)")


@cache
def environment() -> dict[str, str]:
    """Return the environment of programs for Windows, which have a new folder as their disk C."""
    prefix = tempfile.mkdtemp(prefix="relvm-wine-")
    atexit.register(shutil.rmtree, prefix, ignore_errors=True)
    variables = os.environ | {"WINEPREFIX": prefix, "WINEDEBUG": "-all", "DISPLAY": ""}
    # The first program prints messages about the new disk.
    subprocess.run([str(wine()), "cmd", "/c", "exit"], env=variables, capture_output=True, timeout=120)
    return variables


def windows_path(path: Path) -> str:
    """Return the name of a file for a program for Windows."""
    return "Z:" + str(path).replace("/", "\\")
