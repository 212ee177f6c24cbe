"""First results without a C compiler, beside ONNX Runtime:   python -m benchmarks.start [MODEL...]

relvm runs with exec_mode="auto" and no C compiler, so functions and kernels are bytecode.  For the first case of each
model, with one thread:

- first s: from the model file to the first result in a new process with an empty cache, without imports; and the same
  for the creation of an ONNX Runtime session and its first run.
- again s: a whole new process, from its start to its end, with the build in the cache; and ONNX Runtime's.
- steady ms: the median of a run, taken in blocks by turns in one process.

Each ratio is relvm's time divided by ONNX Runtime's.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.models.catalogue import MODELS, Case

_ROOT = Path(__file__).resolve().parents[1]
_BLOCKS, _BLOCK_SECONDS, _MAX_RUNS = 7, 0.25, 100
_COLUMNS = ("model", "first s", "ONNX Runtime s", "ratio", "again s", "ONNX Runtime s", "ratio")
_STEADY = ("steady ms", "ONNX Runtime ms", "ratio")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    names = parser.parse_args().models or list(MODELS)
    print("| " + " | ".join((*_COLUMNS, *_STEADY)) + " |\n|" + "---|" * len((*_COLUMNS, *_STEADY)))
    ratios: list[list[float]] = [[], [], []]
    for name in names:
        with tempfile.TemporaryDirectory() as cache:
            (relvm, _), (_, again) = _child("relvm", name, cache), _child("relvm", name, cache)
            (ort, ort_whole), steady = _child("onnxruntime", name, cache), _child("both", name, cache)[0]
        pairs = ((relvm["first"], ort["first"]), (again, ort_whole), (steady["relvm"], steady["onnxruntime"]))
        cells = [name]
        for column, (ours, theirs) in zip(ratios, pairs, strict=True):
            column.append(ours / theirs)
            cells += [f"{ours:.3g}", f"{theirs:.3g}", f"{column[-1]:.2f}"]
        print("| " + " | ".join(cells) + " |", flush=True)
    means = (math.exp(statistics.fmean(map(math.log, column))) for column in ratios)
    print("\ngeometric means of the ratios: first {:.2f}, again {:.2f}, steady {:.2f}".format(*means))


def _child(what: str, name: str, cache: str) -> tuple[dict[str, float], float]:
    """Return what a process of its own measures, and the seconds that it takes as a whole."""
    environment = os.environ | {"RELVM_CACHE_DIR": cache, "RELVM_CC": "none"}
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.start", "--child", what, name],
        cwd=_ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout), time.perf_counter() - started


def _measure(what: str, name: str) -> dict[str, float]:
    model = MODELS[name]
    path, case = model.path(), model.cases()[0]
    makers = {"relvm": _relvm, "onnxruntime": _onnxruntime}
    if what == "both":
        return _steady({who: make(path) for who, make in makers.items()}, case)
    make = makers[what]
    make(None)  # imports
    started = time.perf_counter()
    make(path)(case)
    return {"first": time.perf_counter() - started}


def _relvm(path: Path | None) -> Callable[[Case], Any]:
    import relvm

    load_model = relvm.load_model  # imported here, on first use
    if path is None:
        import relvm.compiler.build
        import relvm.frontend.onnx

        return lambda case: None
    machine = load_model(path, num_threads=1)
    run = machine["main"]
    names = machine.executable.signature["main"]["attributes"]["input_names"]
    return lambda case: run(*(case[name] for name in names))


def _onnxruntime(path: Path | None) -> Callable[[Case], Any]:
    import onnxruntime

    if path is None:
        return lambda case: None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda case: session.run(None, case)


def _steady(runs: dict[str, Callable[[Case], Any]], case: Case) -> dict[str, float]:
    """Return the median milliseconds of a run of each."""
    times: dict[str, list[float]] = {who: [] for who in runs}
    for run in runs.values():
        run(case)
    for _ in range(_BLOCKS):
        for who, run in runs.items():
            end, count = time.perf_counter() + _BLOCK_SECONDS, 0
            while count < 3 or (time.perf_counter() < end and count < _MAX_RUNS):
                begun = time.perf_counter()
                run(case)
                times[who].append(1e3 * (time.perf_counter() - begun))
                count += 1
    return {who: statistics.median(taken) for who, taken in times.items()}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(_measure(*sys.argv[2:4])))
    else:
        main()
