"""Inputs that another thread changes during a call: the result is valid, or the call raises an error of relvm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.modes import MODES

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("mode", MODES)
def test_c_kernels_stay_inside_their_tensors(tmp_path: Path, mode: str) -> None:
    """The kernels are compiled with the address sanitizer."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    if not Path(library.stdout.strip()).is_absolute():
        pytest.skip("gcc has no address sanitizer")
    environment = {
        "RELVM_CC": "env -u LD_PRELOAD gcc -fsanitize=address",
        "RELVM_CACHE_DIR": str(tmp_path),
        "LD_PRELOAD": library.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",
    }
    _expect_success(mode, "c", environment)


def test_kernel_bytecode_stays_inside_its_tensors() -> None:
    _expect_success("bytecode", "bytecode", {})


def _expect_success(mode: str, target: str, environment: dict[str, str]) -> None:
    command = [sys.executable, "-P", "-m", "changing_inputs", mode, target]
    environment = {**os.environ, "PYTHONPATH": str(HERE), **environment}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert found.returncode == 0, found.stdout + found.stderr[-4000:]
    assert found.stdout == "no access outside of a tensor\n"
