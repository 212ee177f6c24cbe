"""Copies of the sources, from which programs import relvm in place of the installed package."""

from __future__ import annotations

import shutil
from pathlib import Path

import relvm._native

# An editable installation takes precedence over PYTHONPATH.  Remove it, so that Python finds the copy.
_FIND_THE_COPY = """\
import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
"""


def make_importable(folder: Path) -> None:
    """Complete a copy of the sources by the compiled runtime of this environment.

    A program whose PYTHONPATH begins with `folder` then imports the copy.
    """
    library = Path(relvm._native.__file__)
    shutil.copy(library, folder / "relvm" / library.name)
    (folder / "sitecustomize.py").write_text(_FIND_THE_COPY)
