"""Run models in TVM, in a process of the Python interpreter RELVM_TVM_PYTHON."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

_SECONDS = 90  # time limit for imports, builds and runs together


def tvm_milliseconds(path: Path, cases: list[dict[str, np.ndarray]], threads: int) -> list[float] | None:
    """Return the median milliseconds of a run of each case.

    Return None if RELVM_TVM_PYTHON is not set, or if TVM cannot run the model within the time limit.
    """
    python = os.environ.get("RELVM_TVM_PYTHON")
    if not python:
        return None
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder) / "cases.npz"
        np.savez(inputs, **{f"{i}/{name}": array for i, case in enumerate(cases) for name, array in case.items()})
        command = [python, str(Path(__file__).with_name("tvm_peer.py")), str(path), str(inputs)]
        environment = os.environ | {"TVM_NUM_THREADS": str(threads)}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            return None
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
