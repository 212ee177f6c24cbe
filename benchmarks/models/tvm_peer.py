"""Measure a model in TVM's Relax VM.  This program does not import relvm.

    python tvm_peer.py MODEL.onnx CASES.npz

CASES.npz contains the inputs of each case, named `number/name`.  The program prints one line of JSON: the median
milliseconds of a run of each case.  The model is compiled for the sizes of the case with TVM's default pipeline for
CPUs.  TVM_NUM_THREADS is the number of threads.  Written for apache-tvm 0.27.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx
from tvm.target.codegen import llvm_get_system_cpu

SECONDS, MIN_RUNS, MAX_RUNS = 1.0, 3, 100


def milliseconds(model: onnx.ModelProto, case: dict[str, np.ndarray]) -> float:
    shapes = {name: list(array.shape) for name, array in case.items()}
    module = from_onnx(model, shape_dict=shapes, keep_params_in_input=False)
    target = tvm.target.Target({"kind": "llvm", "mcpu": str(llvm_get_system_cpu())})
    executable = tvm.compile(module, target=target)
    machine = relax.VirtualMachine(executable, tvm.cpu())
    args = [tvm.runtime.tensor(case[node.name]) for node in model.graph.input if node.name in case]
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(times) < MIN_RUNS or (time.perf_counter() < end and len(times) < MAX_RUNS):
        begun = time.perf_counter()
        machine["main"](*args)
        times.append(1e3 * (time.perf_counter() - begun))
    return statistics.median(times)


def main(model_path: str, cases_path: str) -> None:
    model, cases = onnx.load(model_path), {}
    for key, array in np.load(cases_path).items():
        number, name = key.split("/", 1)
        cases.setdefault(int(number), {})[name] = array
    print(json.dumps([milliseconds(model, cases[number]) for number in sorted(cases)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
