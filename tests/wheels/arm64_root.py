"""A root folder with Debian's Python for AArch64, which runs in QEMU."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from bare_root import install

SOURCES = Path("/etc/apt/sources.list.d/debian.sources")  # the packages of Debian 12
_PACKAGES = ("python3.11", "libstdc++6")  # the latter for ml_dtypes
PYTHON = "usr/bin/python3.11"
_WHEELS = ("--only-binary=:all:", "--no-compile", "--python-version=3.11", "--implementation=cp")
_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")


def make_arm64_root(folder: Path) -> Path:
    """Download Debian's packages for AArch64, unpack them in `folder`/root, and return this path.

    apt works in `folder` only.  The packages of this system do not change.

    Raises
    ------
    subprocess.CalledProcessError
        A package cannot be downloaded.
    """
    state, root = folder / "state", folder / "root"
    for path in (root, state / "lists" / "partial", folder / "cache" / "archives" / "partial"):
        path.mkdir(parents=True)
    (state / "status").touch()
    lines = {
        "APT::Architecture": "arm64",
        "Dir::State": state,
        "Dir::State::status": state / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::SourceList": SOURCES,
        "Dir::Etc::SourceParts": folder / "none",
        "APT::Sandbox::User": "root",
    }
    config = folder / "apt.conf"
    config.write_text(
        'APT::Architectures { "arm64"; };\n' + "".join(f'{key} "{value}";\n' for key, value in lines.items())
    )
    environment = {**os.environ, "APT_CONFIG": str(config)}
    for command in (["update"], ["install", "-y", "--no-install-recommends", "--download-only", *_PACKAGES]):
        subprocess.run(["apt-get", "-qq", *command], env=environment, check=True, capture_output=True)
    for package in sorted((folder / "cache" / "archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", str(package), str(root)], check=True)
    return root


def install_in_arm64_root(root: Path, *requirements: str) -> None:
    """Install wheels that the Python in a root accepts, and what they require, in the folder `packages` of the root."""
    platforms = (f"--platform={name}_aarch64" for name in _PLATFORMS)
    install(root / "packages", *requirements, options=(*_WHEELS, *platforms))
