"""Archives of exports: reproducible .tar files."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path

from relvm.runtime.file_io import complete_file


def is_archive(path: str | os.PathLike) -> bool:
    """Return whether a path has the suffix of an archive, .tar."""
    return Path(path).suffix == ".tar"


def write_archive(path: str | os.PathLike, name: str, files: Mapping[str, bytes]) -> None:
    """Write files to an archive, in a folder `name`.

    The files are sorted by path, and have no modification times or owners, so that equal files result in equal
    archives.

    files: the contents, by path inside the folder.
    """
    with complete_file(path) as partial, tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as archive:
        for file_path in sorted(files):
            entry = tarfile.TarInfo(f"{name}/{file_path}")
            entry.size = len(files[file_path])
            archive.addfile(entry, io.BytesIO(files[file_path]))
