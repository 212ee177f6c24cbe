"""Identify the type of a file with a real model:   python examples/identify_file.py FILE...

The model is Magika (Apache-2.0), extracted from its pip package.  The network reads the first and the last kilobyte of
a file, and distinguishes about 200 file types.  With a C compiler, it runs as bytecode and as native code, and the
results are compared.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from package_files import package_file

from relvm import vm
from relvm.frontend.onnx import from_onnx

PACKAGE, FOLDER = "magika==1.0.3", "magika/models/standard_v3_3"


def features(content: bytes, size: int, padding: int) -> np.ndarray:
    """Return the first and last `size` bytes of the stripped content as int32 [1, 2 * size], padded in the middle."""
    content = content.strip()
    row = np.full(2 * size, padding, np.int32)
    head, tail = content[:size], content[-size:]
    row[: len(head)] = np.frombuffer(head, np.uint8)
    row[2 * size - len(tail) :] = np.frombuffer(tail, np.uint8)
    return row[None]


def milliseconds(function, argument, runs: int = 9) -> float:
    """Return the median time of `runs` calls of `function(argument)`, in milliseconds."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        function(argument)
        times.append(time.perf_counter() - started)
    return 1e3 * statistics.median(times)


def main(files: list[str]) -> int:
    model = package_file(PACKAGE, f"{FOLDER}/model.onnx")
    config = json.loads(package_file(PACKAGE, f"{FOLDER}/config.min.json").read_text())
    inputs = [features(Path(file).read_bytes(), config["beg_size"], config["padding_token"]) for file in files]

    module = from_onnx(model)
    target = "c" if vm.find_compiler() else "bytecode"
    modes = ("bytecode", "compiled") if target == "c" else ("bytecode",)
    if target == "bytecode":
        print("There is no C compiler here: functions and kernels run as bytecode.\n")
    answers, times = {}, []
    for mode in modes:
        run = vm.VirtualMachine(vm.build(module, exec_mode=mode, target=target))["main"]
        answers[mode] = [np.array(run(x)) for x in inputs]
        times.append(f"{milliseconds(run, inputs[0]):.2f} ms as {'native code' if mode == 'compiled' else mode}")

    for file, scores in zip(files, answers["bytecode"], strict=True):
        best = int(scores.argmax())
        print(f"{file}: {config['target_labels_space'][best]} ({scores.max():.1%} sure)")
    print(f"\n  A run takes {' and '.join(times)}.")
    if len(modes) == 2:
        print("  The kernels, which take most of the time, are the same native code in both modes.")
        same = all(a.tobytes() == b.tobytes() for a, b in zip(answers["bytecode"], answers["compiled"], strict=True))
        print(f"  Both modes {'agree bit for bit' if same else 'DIFFER'}.")
        if not same:
            return 1
    return compare_with_onnxruntime(model, inputs, answers["bytecode"])


def compare_with_onnxruntime(model: Path, inputs: list[np.ndarray], answers: list[np.ndarray]) -> int:
    """Compare `answers`, the model's outputs for `inputs`, with ONNX Runtime's, and print the largest difference.

    Return the exit status: 1 if the difference is too large, otherwise 0, also if ONNX Runtime is not installed.
    """
    try:
        import onnxruntime
    except ImportError:
        print("  (onnxruntime is not installed: no comparison with it)")
        return 0
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    expected = [session.run(None, {name: x})[0] for x in inputs]
    apart = max(float(np.abs(a - b).max()) for a, b in zip(answers, expected, strict=True))
    close = apart <= 1e-4
    print(f"  ONNX Runtime's answers {'agree' if close else 'DIFFER'}: the largest difference is {apart:.1e}.")
    return 0 if close else 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} FILE...")
    sys.exit(main(sys.argv[1:]))
