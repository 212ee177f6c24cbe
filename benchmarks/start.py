"""Compare first results without a C compiler with ONNX Runtime:   python -m benchmarks.start [MODEL...]

relvm runs with exec_mode="auto" and no C compiler, so functions and kernels are bytecode.  For the first case of each
model, with one thread:

- first s: the time from the model file to the first result, without imports, in a new process with an empty cache.  For
  ONNX Runtime, it is the time of creating a session and of its first run.
- process s: the time of a whole new process with an empty cache, including the imports.  Both runtimes read their
  inputs from a .npz file.
- again s: the same with the build in the cache.  The process of ONNX Runtime, which has no cache, is that of the column
  before.
- steady ms: the median time of a run.  The runtimes take turns in one process.

The first three figures are medians of three processes.  Each ratio is relvm's time divided by ONNX Runtime's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.models.catalogue import MODELS
from benchmarks.start_child import RUNTIMES

_ROOT = Path(__file__).resolve().parents[1]
_PROCESSES = 3
_COLUMNS = ("model", "first s", "ONNX Runtime s", "ratio", "process s", "ONNX Runtime s", "ratio", "again s", "ratio")
_STEADY = ("steady ms", "ONNX Runtime ms", "ratio")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    names = parser.parse_args().models or list(MODELS)
    print("| " + " | ".join((*_COLUMNS, *_STEADY)) + " |\n|" + "---|" * len((*_COLUMNS, *_STEADY)))
    ratios: dict[str, list[float]] = {"first": [], "process": [], "again": [], "steady": []}
    for name in names:
        times = _times(name)
        cells = [name]
        for column, of_column in ratios.items():
            ours, theirs = times[column]["relvm"], times[column]["onnxruntime"]
            of_column.append(ours / theirs)
            shown = [ours] if column == "again" else [ours, theirs]
            cells += [*(f"{seconds:.3g}" for seconds in shown), f"{of_column[-1]:.2f}"]
        print("| " + " | ".join(cells) + " |", flush=True)
    means = (f"{column} {statistics.geometric_mean(found):.2f}" for column, found in ratios.items())
    print(f"\ngeometric means of the ratios: {', '.join(means)}")


def _times(name: str) -> dict[str, dict[str, float]]:
    """Return the columns of a model by name, each for relvm and ONNX Runtime."""
    model = MODELS[name]
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder) / "inputs.npz"
        np.savez(inputs, **model.cases()[0])
        environment = os.environ | {"RELVM_CC": "none"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # so that Python has compiled all imported packages

        def child(what: str, who: str, cache: str) -> Any:
            command = [sys.executable, "-m", "benchmarks.start_child", what, who, str(model.path()), str(inputs)]
            own = environment | {"RELVM_CACHE_DIR": f"{folder}/{cache}"}
            done = subprocess.run(command, cwd=_ROOT, env=own, check=True, capture_output=True, text=True)
            return json.loads(done.stdout)

        def whole(who: str, cache: str) -> float:
            started = time.perf_counter()
            child("whole", who, cache)
            return time.perf_counter() - started

        rounds = range(_PROCESSES)
        first = {who: statistics.median(child("first", who, f"first{i}") for i in rounds) for who in RUNTIMES}
        process = {who: statistics.median(whole(who, f"process{i}") for i in rounds) for who in RUNTIMES}
        again = process | {"relvm": statistics.median(whole("relvm", "process0") for _ in rounds)}
        steady = child("steady", "both", "process0")
        return {"first": first, "process": process, "again": again, "steady": steady}


if __name__ == "__main__":
    main()
