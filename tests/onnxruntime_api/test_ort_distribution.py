"""Tests of the version of onnxruntime that `importlib.metadata` reports to packages."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from relvm import onnxruntime as ours

# Prints the version of onnxruntime, in a process without an installed onnxruntime if "absent" is given.
PROGRAM = """
import importlib.metadata, sys

class Absent(importlib.metadata.MetadataPathFinder):
    @classmethod
    def find_distributions(cls, context=importlib.metadata.DistributionFinder.Context()):
        return (each for each in super().find_distributions(context) if each.metadata["Name"] != "onnxruntime")

if sys.argv[1:] == ["absent"]:
    import importlib.machinery

    importlib.machinery.PathFinder.find_distributions = Absent.find_distributions
for name in ("onnxruntime", "ONNXRuntime", "numpy"):
    print(importlib.metadata.version(name))
print([each.version for each in importlib.metadata.distributions() if each.metadata["Name"] == "onnxruntime"])
print(importlib.metadata.metadata("onnxruntime")["Name"], importlib.metadata.files("onnxruntime") is None)
"""


def printed(tmp_path: Path, *arguments: str) -> list[str]:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "relvm", "run-python", "--as-onnxruntime", "program.py", *arguments]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_version_is_that_of_the_api(tmp_path: Path) -> None:
    numpy = importlib.metadata.version("numpy")
    assert printed(tmp_path, "absent") == [
        ours.__version__,
        ours.__version__,
        numpy,
        f"[{ours.__version__!r}]",
        "onnxruntime True",
    ]


def test_an_installed_onnxruntime_comes_first(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    assert printed(tmp_path)[0] == importlib.metadata.version("onnxruntime")


def test_uninstall_removes_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "onnxruntime"]:
        monkeypatch.delitem(sys.modules, name)
    before = list(sys.meta_path)
    ours.install()
    installed = list(sys.meta_path)
    ours.install()
    assert sys.meta_path == installed != before
    ours.uninstall()
    assert sys.meta_path == before
