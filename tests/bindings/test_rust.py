"""The Rust crate: `cargo test` in a copy of bindings/rust."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.documents import ROOT

import relvm
from relvm.cli.config import _config_values

CRATE = ROOT / "bindings" / "rust"
LIBRARY = _config_values()["library"]


def test_the_crate_has_the_version_of_the_package() -> None:
    assert tomllib.loads((CRATE / "Cargo.toml").read_text())["package"]["version"] == relvm.__version__


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed, so the Rust crate is not tested")
@pytest.mark.skipif(LIBRARY is None, reason="relvm was built without the static library")
def test_the_crate_passes_its_tests(tmp_path: Path) -> None:
    shutil.copytree(CRATE, tmp_path / "rust", ignore=shutil.ignore_patterns("target", "Cargo.lock"))
    environment = os.environ | {"RELVM_LIBRARY": str(LIBRARY), "RELVM_COMMAND": f"{sys.executable} -P -m relvm"}
    command = ["cargo", "test", "--offline"]
    done = subprocess.run(command, cwd=tmp_path / "rust", env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test result: ok. 4 passed" in done.stdout
    assert "warning" not in done.stderr, done.stderr
