"""Compare first results without a C compiler with ONNX Runtime:   python -m benchmarks.start [MODEL...]

relvm runs with exec_mode="auto" and no C compiler, so functions and kernels are bytecode.  For the first case of each
model, with one thread:

- first s: the time from the model file to the first result, without imports, in a new process with an empty cache.  For
  ONNX Runtime, it is the time of creating a session and of its first run.
- again s: the time of a whole new process, with the build in the cache.  Both runtimes read their inputs from a .npz
  file.
- steady ms: the median time of a run.  The runtimes take turns in one process.

The first two figures are medians of three processes.  Each ratio is relvm's time divided by ONNX Runtime's.
"""

from __future__ import annotations

import argparse
import json
import math
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
_COLUMNS = ("model", "first s", "ONNX Runtime s", "ratio", "again s", "ONNX Runtime s", "ratio")
_STEADY = ("steady ms", "ONNX Runtime ms", "ratio")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    names = parser.parse_args().models or list(MODELS)
    print("| " + " | ".join((*_COLUMNS, *_STEADY)) + " |\n|" + "---|" * len((*_COLUMNS, *_STEADY)))
    ratios: list[list[float]] = [[], [], []]
    for name in names:
        first, again, steady = _times(name)
        pairs = [(kind["relvm"], kind["onnxruntime"]) for kind in (first, again, steady)]
        cells = [name]
        for column, (ours, theirs) in zip(ratios, pairs, strict=True):
            column.append(ours / theirs)
            cells += [f"{ours:.3g}", f"{theirs:.3g}", f"{column[-1]:.2f}"]
        print("| " + " | ".join(cells) + " |", flush=True)
    means = (math.exp(statistics.fmean(map(math.log, column))) for column in ratios)
    print("\ngeometric means of the ratios: first {:.2f}, again {:.2f}, steady {:.2f}".format(*means))


def _times(name: str) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Return the columns of a model, each for relvm and ONNX Runtime."""
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

        def whole(who: str) -> float:
            started = time.perf_counter()
            child("again", who, "0")
            return time.perf_counter() - started

        rounds = range(_PROCESSES)
        first = {who: statistics.median(child("first", who, str(i)) for i in rounds) for who in RUNTIMES}
        again = {who: statistics.median(whole(who) for _ in rounds) for who in RUNTIMES}
        return first, again, child("steady", "both", "0")


if __name__ == "__main__":
    main()
