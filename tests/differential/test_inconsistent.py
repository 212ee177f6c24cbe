"""Tests of kernels under AddressSanitizer, on random models with inputs of right and wrong sizes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from differential.inconsistent import buildable
from differential.onnxruntime_process import OnnxRuntimeProcess
from differential.random_models import draw

MODELS = range(24)
TESTS = Path(__file__).resolve().parent.parent


def run(tmp_path: Path, *arguments: object) -> subprocess.CompletedProcess:
    """Run `python -m differential.inconsistent` with kernels compiled under AddressSanitizer."""
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    if not Path(library.stdout.strip()).is_absolute():
        pytest.skip("gcc has no address sanitizer")
    environment = {
        **os.environ,
        "RELVM_CC": "env -u LD_PRELOAD gcc -fsanitize=address",
        "RELVM_CACHE_DIR": str(tmp_path / "cache"),
        "LD_PRELOAD": library.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS / "vm")]),
    }
    command = [sys.executable, "-P", "-m", "differential.inconsistent", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


def test_no_kernel_leaves_its_tensors(tmp_path: Path) -> None:
    with OnnxRuntimeProcess() as onnxruntime:
        models = buildable({seed: draw(seed, onnxruntime.run) for seed in MODELS})
    assert len(models) > 0.8 * len(MODELS)
    path = tmp_path / "models"
    path.write_bytes(pickle.dumps(models))
    found = run(tmp_path, path)
    assert found.returncode == 0, found.stdout + found.stderr[-4000:]


def test_the_sanitizer_finds_a_missing_check(tmp_path: Path) -> None:
    found = run(tmp_path, "--unchecked")
    assert found.returncode != 0
    assert "heap-buffer-overflow" in found.stderr
