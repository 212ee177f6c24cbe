"""Real models beside ONNX Runtime:   python -m benchmarks.models [--threads 1] [MODEL...]

For each case of each model: the median milliseconds of a run in relvm's compiled mode and in ONNX Runtime, taken in
blocks by turns in one process, and their ratio (below 1: relvm is faster).  For each model: the seconds from the file
to the first run, and the megabytes of memory that this and the runs add to a process of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.models.catalogue import MODELS

_BLOCKS, _BLOCK_SECONDS, _LEAST_RUNS, _MOST_RUNS = 7, 0.25, 3, 100
_PAUSE_SECONDS = 0.15  # until the other's threads have stopped looking for work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1, help="that both may use")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    options = parser.parse_args()
    print(
        "| model | case | relvm ms | onnxruntime ms | ratio | relvm start s | ort start s | relvm MB | ort MB | error |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for name in options.models or MODELS:
        starts = {who: _child(name, who, options.threads) for who in ("relvm", "onnxruntime")}
        for row in _child(name, "both", options.threads):
            ratios.append(row["relvm"] / row["onnxruntime"])
            cells = [name, row["case"], _number(row["relvm"]), _number(row["onnxruntime"]), f"{ratios[-1]:.2f}"]
            cells += [f"{starts[who]['seconds']:.2f}" for who in starts]
            cells += [f"{starts[who]['megabytes']:.0f}" for who in starts]
            print("| " + " | ".join(map(str, [*cells, f"{row['error']:.0e}"])) + " |", flush=True)
    print(f"\ngeometric mean of the ratios: {math.exp(statistics.fmean(map(math.log, ratios))):.2f}")


def _number(milliseconds: float) -> str:
    return f"{milliseconds:.3g}"


def _child(name: str, what: str, threads: int):
    command = [sys.executable, "-m", "benchmarks.models.__main__", "--child", name, what, str(threads)]
    folder = Path(__file__).resolve().parents[2]
    return json.loads(subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout)


def _relvm(path: Path, threads: int):
    from relvm import vm
    from relvm.frontend.onnx import from_onnx

    module = from_onnx(path)
    run = vm.VirtualMachine(vm.build(module, "compiled"), num_threads=threads)["main"]
    names = dict(module["main"].attributes)["input_names"]
    return lambda case: run(*(case[name] for name in names))


def _onnxruntime(path: Path, threads: int):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda case: session.run(None, case)


def _start(name: str, who: str, threads: int) -> dict:
    """What a process of its own pays from the file to the first result."""
    model = MODELS[name]
    path, cases = model.path(), model.cases()
    before = _megabytes()
    started = time.perf_counter()
    run = (_relvm if who == "relvm" else _onnxruntime)(path, threads)
    run(cases[0])
    seconds = time.perf_counter() - started
    for case in cases:
        run(case)
    return {"seconds": seconds, "megabytes": _megabytes() - before}


def _megabytes() -> float:
    """Resident now, at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def _both(name: str, threads: int) -> list[dict]:
    model = MODELS[name]
    runs = {"relvm": _relvm(model.path(), threads), "onnxruntime": _onnxruntime(model.path(), threads)}
    rows = []
    for number, case in enumerate(model.cases()):
        times: dict[str, list[float]] = {who: [] for who in runs}
        results = {who: run(case) for who, run in runs.items()}
        for _ in range(_BLOCKS):
            for who, run in runs.items():
                time.sleep(_PAUSE_SECONDS if threads > 1 else 0)
                _take(run, case, times[who])
        row = {who: statistics.median(taken) for who, taken in times.items()}
        rows.append({"case": number, **row, "error": _error(results["relvm"], results["onnxruntime"])})
    return rows


def _take(run, case, times: list[float]) -> None:
    """Adds the milliseconds of some runs in a row."""
    end, count = time.perf_counter() + _BLOCK_SECONDS, 0
    while count < _LEAST_RUNS or (time.perf_counter() < end and count < _MOST_RUNS):
        begun = time.perf_counter()
        run(case)
        times.append(1e3 * (time.perf_counter() - begun))
        count += 1


def _error(got, wanted) -> float:
    """The largest difference relative to the largest value, or to 1."""
    got = got if isinstance(got, tuple) else (got,)
    worst = 0.0
    for ours, theirs in zip(got, wanted, strict=True):
        ours, theirs = np.asarray(ours).astype(np.float64), np.asarray(theirs).astype(np.float64)
        assert ours.shape == theirs.shape
        if theirs.size:
            worst = max(worst, float(np.abs(ours - theirs).max() / max(1, np.abs(theirs).max())))
    return worst


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _, _, model_name, what, thread_count = sys.argv
        made = _both(model_name, int(thread_count)) if what == "both" else _start(model_name, what, int(thread_count))
        print(json.dumps(made))
    else:
        main()
