"""Measure a runtime in a separate process, for benchmarks/start.py.

The command is `python -m benchmarks.start_child first|whole relvm|onnxruntime MODEL INPUTS.npz`.  The process imports
nothing that the runtime does not need.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Case = dict[str, np.ndarray]

_BLOCKS, _BLOCK_SECONDS, _MAX_RUNS = 7, 0.25, 100


def _relvm(path: str) -> Callable[[Case], Any]:
    import relvm

    model = relvm.load_model(path, threads=1)
    return lambda case: model(*(case[name] for name in model.input_names))


def _onnxruntime(path: str) -> Callable[[Case], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda case: session.run(None, case)


RUNTIMES = {"relvm": _relvm, "onnxruntime": _onnxruntime}


def _import(who: str) -> None:
    """Import everything that a runtime needs for its first result."""
    if who == "relvm":
        import relvm.compiler.build
        import relvm.model  # noqa: F401
        from relvm.frontend.onnx.registry import converter_for, supported_operators

        for name in supported_operators():
            converter_for(*name.rpartition(".")[::2])
    else:
        import onnxruntime  # noqa: F401


def _seconds(make: Callable[[str], Callable[[Case], Any]], path: str, case: Case) -> float:
    """Return the seconds from a model file to its first result."""
    started = time.perf_counter()
    make(path)(case)
    return time.perf_counter() - started


def _steady(path: str, case: Case) -> dict[str, float]:
    """Return the median milliseconds of a run of each runtime."""
    runs = {who: make(path) for who, make in RUNTIMES.items()}
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
    return {who: float(np.median(taken)) for who, taken in times.items()}


def main(what: str, who: str, path: str, inputs: str) -> None:
    with np.load(inputs, allow_pickle=True) as arrays:
        case = dict(arrays)
    if what == "steady":
        print(json.dumps(_steady(path, case)))
        return
    if what == "first":
        _import(who)
    print(json.dumps(_seconds(RUNTIMES[who], path, case)))


if __name__ == "__main__":
    main(*sys.argv[1:])
