"""The C compiler of tests that compile C themselves, and a compiler that never ends."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest


def run_compiler(compiler: str, *arguments: object) -> None:
    """Run the compiler, which must succeed.  Skip the test if the compiler lacks a requested sanitizer."""
    result = subprocess.run([compiler, *map(str, arguments)], capture_output=True, text=True)
    if "cannot find" in result.stderr and "san" in result.stderr:
        pytest.skip("this compiler has no sanitizers")
    assert result.returncode == 0, result.stderr


def stuck_compiler(folder: Path) -> dict[str, str]:
    """Return environment variables for a C compiler that never ends, and for a cache and temporary files in `folder`.

    The compiler starts a process, as gcc does, and writes a temporary file.
    """
    compiler, temporary = folder / "stuck-cc", folder / "temporary"
    compiler.write_text(
        '#!/bin/sh\ncase "$*" in *--version*|*-dM*) exec gcc "$@";; esac\nsleep 600 > /dev/null 2>&1 &\n'
        f'touch "$TMPDIR/made"\necho $$ $! "$TMPDIR" >> "{folder}/started"\nwait\n'
    )
    compiler.chmod(0o755)
    temporary.mkdir()
    return {"RELVM_CC": str(compiler), "RELVM_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(temporary)}


def started_compilers(folder: Path) -> list[tuple[int, int, Path]]:
    """Return the ids of both processes and the folder of temporary files of each stuck compiler that was started."""
    path = folder / "started"
    lines = path.read_text().split("\n")[:-1] if path.exists() else ()
    return [(int(first), int(second), Path(temporary)) for first, second, temporary in map(str.split, lines)]


def wait_until_ended(process: int) -> None:
    """Wait until a process has ended.  A process whose parent has ended can remain as a zombie for a moment."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        while Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            pass
