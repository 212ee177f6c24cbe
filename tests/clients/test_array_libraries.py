"""Run array_libraries.py in an environment with PyTorch and JAX.  `pytest -m clients` includes this test."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from clients.catalogue import Client
from clients.environments import interpreter

# pip must find a build of PyTorch for the CPU, because the one for GPUs does not work without the libraries of CUDA.
LIBRARIES = Client(
    "array_libraries",
    (
        *("torch==2.13.0", "filelock==4.3.1", "fsspec==2026.9.0", "mpmath==1.3.0", "sympy==1.14.0"),
        *("jax==0.10.2", "jaxlib==0.10.2", "opt_einsum==3.4.0", "typing_extensions==4.16.0"),
    ),
)
TESTS = Path(__file__).with_name("array_libraries.py")


def test_tensors_are_shared_with_torch_and_jax(tmp_path: Path) -> None:
    options = (
        "-P",
        "-m",
        "pytest",
        "-q",
        "--noconftest",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        "-o",
        "pythonpath=",
    )
    done = subprocess.run(
        [interpreter(LIBRARIES), *options, TESTS], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (passed,) = re.findall(r"^(\d+) passed", done.stdout, re.M)
    assert int(passed) >= 70
