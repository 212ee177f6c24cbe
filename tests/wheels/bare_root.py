"""A root folder with Python and some packages and nothing else, and programs that run in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

PACKAGES = "/packages"  # inside the root
_NEVER_USED = (
    "site-packages",
    "dist-packages",
    "__pycache__",
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "ensurepip",
    "lib2to3",
)
_LIBRARY = re.compile(r"(/\S+) \(0x")
# A new mount namespace, in which the root is read-only even for root.  Only root can create it directly.
_NAMESPACES = ["unshare", "--mount", *(["--user", "--map-root-user"] if os.geteuid() else [])]
_ENTER = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec chroot "$0" "$@"'
# No HOME, no UTF-8, and Python does not make up for it.
_ENVIRONMENT = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONPATH": PACKAGES}


def make_root(root: Path, *requirements: str) -> None:
    """Copy this Python and the libraries that it needs to the same paths below `root`, and install packages.

    The root contains no other programs, no /proc, /dev, /tmp or /etc, and no home directory.
    """
    python = Path(sys.executable).resolve()
    base = {"installed_base": sys.base_prefix, "installed_platbase": sys.base_exec_prefix}
    base |= {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}  # not the virtual environment
    for name in ("stdlib", "platstdlib"):
        source = Path(sysconfig.get_path(name, vars=base))
        if not (below := _below(root, source)).exists():
            shutil.copytree(source, below, ignore=shutil.ignore_patterns(*_NEVER_USED))
    install(root / PACKAGES[1:], *requirements)
    binaries = [python, *(path for path in root.rglob("*.so*") if path.is_file())]
    _copy(python, root)
    for library in sorted({library for binary in binaries for library in _libraries(binary)}):
        if not library.is_relative_to(root):
            _copy(library, root)


def install(folder: Path, *requirements: str, options: tuple[str, ...] = ()) -> None:
    """Install packages and what they require in a folder, with pip."""
    command = [sys.executable, "-m", "pip", "install", "-qq", "--target", str(folder), *options, *requirements]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def can_enter() -> bool:
    """Return whether this user may create the namespaces in which programs run."""
    return subprocess.run([*_NAMESPACES, "true"], capture_output=True).returncode == 0


def run_in(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the root, which is read-only, with an environment without HOME and without UTF-8."""
    python = str(Path(sys.executable).resolve())
    command = [*_NAMESPACES, "sh", "-c", _ENTER, str(root), python, *arguments]
    return subprocess.run(
        command,
        env={**_ENVIRONMENT, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def _libraries(binary: Path) -> list[Path]:
    """Return the shared libraries, including the dynamic linker, that a binary loads."""
    listed = subprocess.run(["ldd", str(binary)], capture_output=True, text=True).stdout
    return [Path(path) for path in _LIBRARY.findall(listed)]


def _copy(path: Path, root: Path) -> None:
    below = _below(root, path)
    below.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, below)  # follows links


def _below(root: Path, path: Path) -> Path:
    return root / path.relative_to("/")
