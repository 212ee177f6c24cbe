"""Inference engines that run models: their functions, and their processes, which measure the cases of a model."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.engine_process import EngineProcess, serve
from benchmarks.models.catalogue import MODELS, Case

ENGINES = ("relvm", "onnxruntime", "openvino")
_BLOCK_SECONDS, _MIN_RUNS, _MAX_RUNS = 0.25, 3, 100
_PROFILES = 5  # profiles of a case; the one with the shortest run counts


def engine_process(model: str, engine: str, threads: int) -> EngineProcess:
    """Return a process that has loaded a model into an engine.

    Its requests are [case, what, *arguments], where `what` is:
    "block": answer the milliseconds of some runs; before each, pause for the number of seconds in `arguments`
    "save": write the results to the file in `arguments`
    "peak": answer the share of the peak of the machine, for relvm
    """
    return EngineProcess("benchmarks.models.engines", model, engine, str(threads), stderr=subprocess.DEVNULL)


def onnxruntime_runner(model: Path | bytes, threads: int) -> Callable[[Case], list[np.ndarray]]:
    """Return a function that runs a model in ONNX Runtime.   model: the file, or its content."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda case: session.run(None, case)


def openvino_runner(model: Path | bytes, threads: int) -> Callable[[Case], list[np.ndarray]]:
    """Return a function that runs a model in OpenVINO, with f32 arithmetic.   model: the file, or its content."""
    import openvino

    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    request = core.compile_model(core.read_model(model), "CPU", settings).create_infer_request()

    def run(case: Case) -> list[np.ndarray]:
        found = request.infer(case, share_inputs=True, share_outputs=True)
        return [found[n] for n in range(len(found))]

    return run


def _relvm_runner(path: Path, threads: int) -> tuple[Callable, Callable]:
    """Return two functions: one runs a case in relvm's compiled mode, and the other returns the profile of a run."""
    from relvm import vm
    from relvm.frontend.onnx import from_onnx

    module = from_onnx(path)
    machine = vm.VirtualMachine(vm.build(module, "compiled"), num_threads=threads)
    main, names = machine["main"], module["main"].input_names
    return (
        lambda case: main(*(case[name] for name in names)),
        lambda case: machine.profile("main", *(case[name] for name in names)),
    )


def _serve(name: str, engine: str, threads: int) -> None:
    """Load a model into an engine, and answer the requests of `engine_process`."""
    path, cases = MODELS[name].path(), MODELS[name].cases()
    profile: Callable | None = None
    if engine == "relvm":
        run, profile = _relvm_runner(path, threads)
    else:
        run = (onnxruntime_runner if engine == "onnxruntime" else openvino_runner)(path, threads)

    def answer(request: list) -> list[float]:
        number, what, *arguments = request
        case = cases[number]
        if what == "block":
            return _block(run, case, *arguments)
        if what == "save":
            results = run(case)
            results = results if isinstance(results, (tuple, list)) else [results]
            np.savez(arguments[0], **{str(n): np.asarray(result) for n, result in enumerate(results)})
            return []
        assert profile is not None
        return [_share_of_peak([profile(case) for _ in range(_PROFILES)])]

    serve(answer)


def _block(run: Callable[[Case], object], case: Case, pause_seconds: float) -> list[float]:
    """Return the milliseconds of runs, each of which follows a pause."""
    times: list[float] = []
    end = time.perf_counter() + _BLOCK_SECONDS
    while len(times) < _MIN_RUNS or (time.perf_counter() < end and len(times) < _MAX_RUNS):
        if pause_seconds:
            time.sleep(pause_seconds)
        begun = time.perf_counter()
        run(case)
        times.append(1e3 * (time.perf_counter() - begun))
    return times


def _share_of_peak(profiles: list) -> float:
    """Return the shortest time that the peaks of the machine allow for the kernels, divided by the time of the run.

    Kernels whose data is in caches can exceed the peak of memory, and count as 1.
    """
    from relvm.explore.views.machine_peak import measured_peaks
    from relvm.explore.views.profile import profile_rates

    best = min(profiles, key=lambda profile: profile.seconds)
    rows = profile_rates(best, measured_peaks(best.threads), most=10_000)
    return sum(row.share * min(row.of_roof, 1.0) for row in rows if row.of_roof is not None)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
