"""Compare real models with ONNX Runtime and OpenVINO:   python -m benchmarks.models [--threads 1] [MODEL...]

With --pause 2, each run follows a pause of 2 milliseconds, as when a server waits for requests.

For each case of each model, the table has:

- the median milliseconds of a run in relvm's compiled mode, in ONNX Runtime and, if it is installed, in OpenVINO.  Each
  engine has a process of its own, and they take turns.
- the ratio of relvm's time and that of the faster of the others, which is below 1 if relvm is faster
- the share of the peak of the machine: the time that its arithmetic and its memory allow for the kernels, of relvm's
  time
- the largest difference of the results from those of ONNX Runtime, relative to the largest value
- the median milliseconds in TVM's Relax VM, if RELVM_TVM_PYTHON is an interpreter with apache-tvm and onnx, TVM can
  import the model, and the build takes at most 90 s

For each model, measured in separate processes, the table has the seconds to the first result: from the model file with
an empty cache, the same with the build in the cache, from a saved executable, and in ONNX Runtime.  The last columns
are the megabytes that the last two add to the peak memory.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np

from benchmarks.models.catalogue import MODELS
from benchmarks.models.engines import ENGINES, engine_process, onnxruntime_runner
from benchmarks.models.peers import tvm_milliseconds
from benchmarks.models.record import record_instructions

_BLOCKS = 7
_PAUSE_SECONDS = 0.15  # time for the threads of the other engines to become idle


_COLUMNS = (
    "model",
    "case",
    "relvm ms",
    "onnxruntime ms",
    "openvino ms",
    "ratio",
    "peak",
    "TVM ms",
    "error",
    "build s",
    "again s",
    "load s",
    "session s",
    "relvm MB",
    "onnxruntime MB",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1, help="that both may use")
    parser.add_argument("--pause", type=float, default=0, metavar="MS", help="milliseconds before each run")
    parser.add_argument("--record", metavar="NAME", help="count instructions, and store them in this column")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    options = parser.parse_args()
    if options.record:
        record_instructions(options.record, options.models or list(MODELS))
        return
    print("| " + " | ".join(_COLUMNS) + " |\n|" + "---|" * len(_COLUMNS))
    ratios = []
    for name in options.models or MODELS:
        starts, model = _starts(name, options.threads), MODELS[name]
        tvm = tvm_milliseconds(model.path(), model.cases(), options.threads)
        for case, (times, share, error) in enumerate(_compared(name, options.threads, options.pause / 1e3)):
            ratios.append(times["relvm"] / min(times[engine] for engine in times if engine != "relvm"))
            cells = [name, case, *(_number(times[engine]) if engine in times else "" for engine in ENGINES)]
            cells += [f"{ratios[-1]:.2f}", f"{share:.0%}", _number(tvm[case]) if tvm else "", f"{error:.0e}", *starts]
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)
            starts = [""] * len(starts)
    above = sum(ratio > 1 for ratio in ratios)
    print(f"\ngeometric mean of the ratios: {statistics.geometric_mean(ratios):.2f}, {above} of {len(ratios)} above 1")


def _compared(name: str, threads: int, pause_seconds: float) -> list[tuple[dict[str, float], float, float]]:
    """Return, for each case of a model, the median milliseconds of each engine, relvm's share of the peak of the
    machine, and the error of its results."""
    engines = [engine for engine in ENGINES if importlib.util.find_spec(engine)]
    rows = []
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        processes = {engine: stack.enter_context(closing(engine_process(name, engine, threads))) for engine in engines}
        for case in range(len(MODELS[name].cases())):
            for engine, process in list(processes.items()):
                try:
                    process.request([case, "save", str(Path(folder) / f"{engine}.npz")])
                except RuntimeError:
                    if engine != "openvino":
                        raise
                    del processes[engine]  # it does not support every model; its cell stays empty
            times: dict[str, list[float]] = {engine: [] for engine in processes}
            for _ in range(_BLOCKS):
                for engine, process in processes.items():
                    time.sleep(_PAUSE_SECONDS if threads > 1 else 0)
                    times[engine] += process.request([case, "block", pause_seconds])
            (share,) = processes["relvm"].request([case, "peak"])
            results = [np.load(Path(folder) / f"{engine}.npz") for engine in ("relvm", "onnxruntime")]
            medians = {engine: statistics.median(taken) for engine, taken in times.items()}
            rows.append((medians, share, _error(*([found[key] for key in found] for found in results))))
    return rows


def _starts(name: str, threads: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        steps = ("build", "build", "load", "onnxruntime")
        build, again, load, session = (_child(name, what, threads, {"RELVM_CACHE_DIR": folder}) for what in steps)
    seconds = [f"{start['seconds']:.2f}" for start in (build, again, load, session)]
    return [*seconds, *(f"{start['megabytes']:.0f}" for start in (load, session))]


def _number(milliseconds: float) -> str:
    return f"{milliseconds:.3g}"


def _child(name: str, what: str, threads: int, environment: dict[str, str] | None = None):
    command = [sys.executable, "-m", "benchmarks.models.__main__", "--child", name, what, str(threads)]
    folder = Path(__file__).resolve().parents[2]
    environment = os.environ | (environment or {})
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def _built(path: Path) -> tuple:
    """Build a model file.  Return the executable and the names of the inputs."""
    from relvm import vm
    from relvm.frontend.onnx import from_onnx

    module = from_onnx(path)
    return vm.build(module, "compiled"), module["main"].input_names


def _relvm(executable, names: list[str], threads: int):
    from relvm import vm

    run = vm.VirtualMachine(executable, num_threads=threads)["main"]
    return lambda case: run(*(case[name] for name in names))


def _started(what: str, path: Path, threads: int):
    """Return a function that runs a case: in ONNX Runtime, or in relvm with a built or a loaded executable.

    The executable that is built is saved in RELVM_CACHE_DIR, and loaded from there.
    """
    if what == "onnxruntime":
        return onnxruntime_runner(path, threads)
    saved = Path(os.environ["RELVM_CACHE_DIR"])
    if what == "build":
        executable, names = _built(path)
        executable.save(saved / "model.rvm")
        (saved / "names.json").write_text(json.dumps(names))
    else:
        from relvm import vm

        executable, names = vm.load(saved / "model.rvm"), json.loads((saved / "names.json").read_text())
    return _relvm(executable, names, threads)


def _start(name: str, what: str, threads: int) -> dict:
    """Measure, in this new process, the time from the file to the first result, and the peak memory after all cases."""
    model = MODELS[name]
    path, cases = model.path(), model.cases()
    before = _megabytes()
    started = time.perf_counter()
    run = _started(what, path, threads)
    run(cases[0])
    seconds = time.perf_counter() - started
    for case in cases:
        run(case)
    return {"seconds": seconds, "megabytes": _megabytes() - before}


def _megabytes() -> float:
    """Return the peak resident memory of this process in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def _error(got, wanted) -> float:
    """Return the largest difference, relative to the largest value if that exceeds 1."""
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
        print(json.dumps(_start(model_name, what, int(thread_count))))
    else:
        main()
