"""An export as one file: a .tar of its folder, the same bytes whenever it is made of the same model."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path

from relvm.runtime.file_io import complete_file


def is_archive(path: str | os.PathLike) -> bool:
    """Whether a path names an archive."""
    return Path(path).suffix == ".tar"


def write_archive(path: str | os.PathLike, name: str, files: Mapping[str, bytes]) -> None:
    """Write files as an archive, in a folder `name`, in the order of their paths and without times or owners."""
    with complete_file(path) as partial, tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as archive:
        for place in sorted(files):
            entry = tarfile.TarInfo(f"{name}/{place}")
            entry.size = len(files[place])
            archive.addfile(entry, io.BytesIO(files[place]))
