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
    """Write files to an archive, in a folder `name`, sorted by path.  Modification times and owners are omitted, so
    equal files result in equal archives."""
    with complete_file(path) as partial, tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as archive:
        for place in sorted(files):
            entry = tarfile.TarInfo(f"{name}/{place}")
            entry.size = len(files[place])
            archive.addfile(entry, io.BytesIO(files[place]))
