"""Run models with dynamic sizes at several sizes of the input:   python -m benchmarks.sizes [--count] [MODEL...]

Without options, relvm is compared with ONNX Runtime, with one thread and with the default number of threads.  Both take
turns in one process.  The times are the shortest of all runs, in milliseconds.

With --count, valgrind counts the instructions of a run in relvm, for kernels of x86-64-v3 and one thread.  Sizes are
pixels of a side for nudenet, and frames for silero_vad_v6.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnxruntime

from benchmarks.counting import ENVIRONMENT, count_instructions
from benchmarks.models.catalogue import Case, numbers, package_file, picture
from relvm import vm
from relvm.frontend.onnx import from_onnx

_SECONDS, _ROUNDS = 0.2, 9


@dataclass(frozen=True)
class SizedModel:
    """A model in a pip package, with sizes of its input.   case: returns the inputs of a size."""

    requirement: str
    member: str
    sizes: tuple[int, ...]
    case: Callable[[int], Case]


def _frames(count: int) -> Case:
    state = np.zeros((1, 1, 128), np.float32)
    return {"input": numbers(5, count, 576), "h": state, "c": state}


MODELS = {
    "nudenet": SizedModel(
        "nudenet==3.4.2", "nudenet/320n.onnx", (32, 64, 96, 128, 320), lambda side: {"images": picture(3, side, side)}
    ),
    "silero_vad_v6": SizedModel(
        "faster-whisper==1.2.1", "faster_whisper/assets/silero_vad_v6.onnx", (1, 4, 20, 100), _frames
    ),
}


def _build(model: SizedModel) -> vm.Executable:
    return vm.build(from_onnx(package_file(model.requirement, model.member)), exec_mode="compiled")


def _compare(model: SizedModel, size: int, threads: int | None) -> tuple[float, float]:
    """Return the milliseconds of relvm and of ONNX Runtime.   threads: None for the default."""
    machine = vm.VirtualMachine(_build(model), num_threads=threads)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    path = package_file(model.requirement, model.member)
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    case = model.case(size)
    args = tuple(case.values())
    runs: list[Callable[[], object]] = [lambda: machine["main"](*args), lambda: session.run(None, case)]
    best = [float("inf")] * len(runs)
    for _ in range(_ROUNDS):
        for which, run in enumerate(runs):
            end = time.perf_counter() + _SECONDS
            while (started := time.perf_counter()) < end:
                run()
                best[which] = min(best[which], time.perf_counter() - started)
    return best[0] * 1e3, best[1] * 1e3


def _print_counts(name: str) -> None:
    """Count the instructions of the second run with each size."""
    model = MODELS[name]
    counts = count_instructions(_build(model), [model.case(size) for size in model.sizes])
    for size, count in zip(model.sizes, counts, strict=True):
        print(f"| {name} | {size} | {count:,} |", flush=True)


def _print_times(name: str) -> None:
    for size in MODELS[name].sizes:
        cells = []
        for threads in (1, None):
            relvm_ms, other_ms = _compare(MODELS[name], size, threads)
            cells += [f"{relvm_ms:.3g}", f"{other_ms:.3g}", f"{relvm_ms / other_ms:.2f}"]
        print(f"| {name} | {size} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--count", action="store_true", help="count instructions")
    options = parser.parse_args()
    if unknown := sorted(set(options.models) - set(MODELS)):
        parser.error(f"no such model: {', '.join(unknown)}")
    if options.count:
        os.environ |= ENVIRONMENT
        print("| model | size | instructions |\n|---|---|---|")
    else:
        print("| model | size | relvm ms | onnxruntime ms | ratio | default threads: relvm | onnxruntime | ratio |")
        print("|---|---|---|---|---|---|---|---|")
    for name in options.models or MODELS:
        (_print_counts if options.count else _print_times)(name)


if __name__ == "__main__":
    main()
