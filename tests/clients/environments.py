"""Virtual environments with the packages of the clients."""

from __future__ import annotations

import hashlib
import os
import site
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

from clients.catalogue import Client

PROGRAMS = Path(__file__).resolve().parent / "programs"
FOLDER = "RELVM_CLIENTS_DIR"
_LIBRARIES = ("relvm", "onnxruntime")


@cache
def folder() -> Path:
    """Return the folder of the environments: $RELVM_CLIENTS_DIR, or a temporary folder that ends with the process."""
    if FOLDER in os.environ:
        return Path(os.environ[FOLDER]).resolve()
    made = tempfile.TemporaryDirectory(prefix="relvm-clients-")
    _kept.append(made)
    return Path(made.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []  # removed at exit


def interpreter(client: Client) -> Path:
    """Return the Python interpreter of an environment with the packages of a client.  Create it at the first call.

    The environment also sees the packages of this process, after its own: relvm, onnx and onnxruntime.

    Raises
    ------
    subprocess.CalledProcessError
        pip could not install a package.
    """
    text = "\n".join((sys.executable, *client.requirements))
    environment = folder() / f"{client.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    python = environment / "bin" / "python"
    done = environment / "installed"
    if done.exists():
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", environment], check=True)
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-qq", "--no-deps"]
    subprocess.run([*command, *client.requirements], check=True, stdout=subprocess.DEVNULL)
    (packages,) = environment.glob("lib/python*/site-packages")
    lines = (f"import site; site.addsitedir({path!r})\n" for path in _package_folders())
    (packages / "parent.pth").write_text("".join(lines))
    done.touch()
    return python


def _package_folders() -> list[str]:
    """Return the folders from which this process imports installed packages."""
    known = [*site.getsitepackages(), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return [path for path in dict.fromkeys(known) if path in sys.path]


def command(client: Client, library: str, *arguments: str) -> list[str]:
    """Return the command that runs the program of a client.

    library: "relvm" or "onnxruntime".   arguments: those of the program (`programs/client.py`).
    """
    assert library in _LIBRARIES, library
    prefix = ["-m", "relvm", "run-python", "--as-onnxruntime"] if library == "relvm" else []
    return [str(interpreter(client)), *prefix, str(PROGRAMS / f"use_{client.name}.py"), *arguments]
