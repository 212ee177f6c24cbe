"""Real models beside ONNX Runtime on one thread:   python benchmarks/models.py [RUNS]

Each row: the median milliseconds of a run in both modes and in ONNX Runtime, taken in turn in one process, and the
ratio of compiled mode to ONNX Runtime (below 1: relvm is faster).
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import onnxruntime

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from real_models import MODELS

from relvm import vm
from relvm.frontend.onnx import from_onnx


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def main(runs: int) -> None:
    print(f"{'model':18} case  bytecode  compiled  onnxruntime  compiled / onnxruntime")
    for name, model in MODELS.items():
        module = from_onnx(model.path())
        machines = {mode: vm.VirtualMachine(vm.build(module, mode))["main"] for mode in ("bytecode", "compiled")}
        peer = session(model.path())
        for number, case in enumerate(model.cases):
            values = [case[n] for n in dict(module["main"].attributes)["input_names"]]
            calls = {mode: (lambda run=run, values=values: run(*values)) for mode, run in machines.items()}
            calls["onnxruntime"] = lambda case=case, peer=peer: peer.run(None, case)
            times: dict[str, list[float]] = {who: [] for who in calls}
            for i in range(runs + 2):
                for who, call in calls.items():
                    started = time.perf_counter()
                    call()
                    if i >= 2:
                        times[who].append(1e3 * (time.perf_counter() - started))
            b, c, o = (statistics.median(times[who]) for who in ("bytecode", "compiled", "onnxruntime"))
            print(f"{name:18} {number:4}  {b:8.3f}  {c:8.3f}  {o:11.3f}  {c / o:6.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
