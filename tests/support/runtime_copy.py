"""A copy of the modules of relvm-runtime, for programs that run without the compiler."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from support.documents import ROOT
from support.source_copy import make_importable

from release.split_wheel import RUNTIME_FILES


def runtime_sources() -> Iterator[str]:
    """Yield the paths of the sources that relvm-runtime contains, relative to the root of the repository."""
    for path in sorted([*(ROOT / "relvm").rglob("*"), *(ROOT / "csrc").rglob("*")]):
        name = path.relative_to(ROOT).as_posix()
        installed = f"relvm/{name}" if name.startswith("csrc/") else name
        if path.is_file() and "__pycache__" not in name and installed.startswith(RUNTIME_FILES):
            yield name


def copy_runtime(folder: Path) -> None:
    """Copy the modules of relvm-runtime to a folder.  A program whose PYTHONPATH begins with it imports them."""
    for name in runtime_sources():
        target = folder / ("relvm" if name.startswith("csrc/") else "") / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    make_importable(folder)
