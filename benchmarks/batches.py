"""Measure batches and streams of models beside peers:   python -m benchmarks.batches [MODEL...]

The first table has the time for each item of a batch: the median of some runs, divided by the size of the batch, with
one thread and with two.  The second table has the items that two streams complete in a second.  A stream is a Python
thread that runs batches of one item, with one thread of its own:

- relvm: each stream has a machine of its own, and all run the same executable
- ONNX Runtime: each stream has a session of its own
- OpenVINO: an asynchronous queue of the model, compiled for throughput with two streams

Each engine has a process of its own.  The processes take turns, one at a time, and the best of the turns counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.models.catalogue import MODELS, Case
from benchmarks.models.engines import onnxruntime_runner, openvino_runner

NAMES = ("magika", "ppocr_cls", "oww_embedding", "mtcnn_o", "minilm_l3")
SIZES, THREADS, STREAMS = (1, 4, 16, 64), (1, 2), 2
ENGINES = ("relvm", "onnxruntime", "openvino")
_TURNS, _SECONDS, _MIN_RUNS = 3, 0.5, 5


def batch_of(name: str, size: int) -> Case:
    """Return inputs of a model for `size` items: copies of the first item of its first case."""
    return {key: np.repeat(value[:1], size, axis=0) for key, value in MODELS[name].cases()[0].items()}


def _runners(engine: str, path: Path, threads: int, count: int) -> list[Callable[[Case], object]]:
    """Return `count` functions that run a model, each on `threads` threads of its own."""
    if engine == "onnxruntime":
        return [onnxruntime_runner(path, threads) for _ in range(count)]
    if engine == "openvino":
        return [openvino_runner(path, threads) for _ in range(count)]
    from relvm import vm
    from relvm.frontend.onnx import from_onnx

    module = from_onnx(path)
    executable, names = vm.build(module, "compiled"), module["main"].input_names

    def runner() -> Callable[[Case], object]:
        run = vm.VirtualMachine(executable, num_threads=threads)["main"]
        return lambda case: run(*(case[name] for name in names))

    return [runner() for _ in range(count)]


def _milliseconds(run: Callable[[Case], object], case: Case) -> float:
    times: list[float] = []
    run(case)
    end = time.perf_counter() + _SECONDS
    while len(times) < _MIN_RUNS or time.perf_counter() < end:
        started = time.perf_counter()
        run(case)
        times.append(time.perf_counter() - started)
    return 1e3 * statistics.median(times)


def _items_per_second(engine: str, path: Path, case: Case) -> float:
    """Return the items that STREAMS streams complete in a second, if each run has one item."""
    if engine == "openvino":
        return _items_of_queue(path, case)
    counts, start = [0] * STREAMS, threading.Barrier(STREAMS)

    def work(stream: int, run: Callable[[Case], object]) -> None:
        run(case)
        start.wait()
        end = time.perf_counter() + _SECONDS
        while time.perf_counter() < end:
            run(case)
            counts[stream] += 1

    threads = [
        threading.Thread(target=work, args=(stream, run))
        for stream, run in enumerate(_runners(engine, path, 1, STREAMS))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / _SECONDS


def _items_of_queue(path: Path, case: Case) -> float:
    """Return the items that OpenVINO completes in a second, in its mode for throughput."""
    import openvino

    core = openvino.Core()
    settings = {
        "PERFORMANCE_HINT": "THROUGHPUT",
        "NUM_STREAMS": STREAMS,
        "INFERENCE_NUM_THREADS": STREAMS,
        "INFERENCE_PRECISION_HINT": "f32",
    }
    queue = openvino.AsyncInferQueue(core.compile_model(core.read_model(path), "CPU", settings), 2 * STREAMS)
    queue.start_async(case)
    queue.wait_all()
    started, count = time.perf_counter(), 0
    while time.perf_counter() - started < _SECONDS:
        queue.start_async(case)
        count += 1
    queue.wait_all()
    return count / (time.perf_counter() - started)


def _child(name: str, engine: str, threads: int) -> None:
    """Print the measurements of an engine: with STREAMS streams if `threads` is 0, otherwise of all batch sizes."""
    path = MODELS[name].path()
    if threads == 0:
        print(json.dumps([_items_per_second(engine, path, batch_of(name, 1))]))
        return
    (run,) = _runners(engine, path, threads, 1)
    print(json.dumps([_milliseconds(run, batch_of(name, size)) / size for size in SIZES]))


def _measured(name: str, threads: int, best: Callable) -> dict[str, list[float]]:
    """Return the best measurements of each engine, in several turns."""
    found: dict[str, list[float]] = {}
    for _ in range(_TURNS):
        for engine in ENGINES:
            command = [sys.executable, "-m", "benchmarks.batches", "--child", name, engine, str(threads)]
            folder = Path(__file__).resolve().parents[1]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                continue  # an engine that is not installed, or that does not support the model
            values = json.loads(done.stdout.splitlines()[-1])
            found[engine] = [best(*pair) for pair in zip(found.get(engine, values), values, strict=True)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(NAMES))
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, engine, threads = options.child
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        _child(name, engine, int(threads))
        return
    names = options.models or NAMES
    print(
        "| model | threads | batch | relvm ms | onnxruntime ms | openvino ms | ratio |\n|---|---|---|---|---|---|---|"
    )
    for name in names:
        for threads in THREADS:
            found = _measured(name, threads, min)
            for n, size in enumerate(SIZES):
                peers = [values[n] for engine, values in found.items() if engine != "relvm"]
                ratio = f"{found['relvm'][n] / min(peers):.2f}" if peers else ""
                cells = (f"{found[engine][n]:.4g}" if engine in found else "" for engine in ENGINES)
                print("|", " | ".join((name, str(threads), str(size), *cells, ratio)), "|", flush=True)
    print("\n| model | relvm items/s | onnxruntime items/s | openvino items/s | ratio |\n|---|---|---|---|---|")
    for name in names:
        found = _measured(name, 0, max)
        peers = [values[0] for engine, values in found.items() if engine != "relvm"]
        ratio = f"{found['relvm'][0] / max(peers):.2f}" if peers else ""
        cells = (f"{found[engine][0]:.4g}" if engine in found else "" for engine in ENGINES)
        print("|", " | ".join((name, *cells, ratio)), "|", flush=True)


if __name__ == "__main__":
    main()
