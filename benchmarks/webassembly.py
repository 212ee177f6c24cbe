"""Compare real models in WebAssembly with onnxruntime-web, on one thread in Node.js:

python -m benchmarks.webassembly --package FOLDER --onnxruntime-web FOLDER [MODEL...]

FOLDER of --package is the npm package that bindings/javascript/build.py builds, and that of --onnxruntime-web is the
installed package (`npm install onnxruntime-web`, then node_modules/onnxruntime-web).  The engines take turns in one
process.  The table has the milliseconds of processor time of a run, the least of nine rounds, in onnxruntime-web, in
native code of a module for target wasm32, and in kernel bytecode.  Then follow their ratios, which are below 1 if relvm
is faster, the size of the module without the weights in kilobytes, and the largest difference of the results, relative
to the largest value.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.models.catalogue import MODELS
from relvm import vm
from relvm.compiler.webassembly import export_module
from relvm.frontend.read_model import read_model

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests"))

from webassembly.json_values import encode  # noqa: E402

COLUMNS = ("model", "case", "onnxruntime-web ms", "native ms", "bytecode ms", "native", "bytecode", "kB", "error")


def measure(name: str, package: Path, onnxruntime_web: Path, cases: int) -> tuple[list[dict[str, float]], int]:
    """Return the measurements of each case of a model, and the size of its module without the weights in bytes."""
    model = MODELS[name]
    with TemporaryDirectory() as folder:
        native, bytecode, inputs = Path(folder, "native.wasm"), Path(folder, "bytecode.rvm"), Path(folder, "cases.json")
        module = read_model(model.path())
        executable = vm.build(module, "compiled", "wasm32")
        export_module(executable, native)
        vm.build(module, "bytecode", "bytecode").save(bytecode)
        encoded = [{key: encode(value) for key, value in case.items()} for case in model.cases()[:cases]]
        inputs.write_text(json.dumps(encoded))
        arguments = [package, onnxruntime_web, model.path(), native, bytecode, inputs]
        command = ["node", ROOT / "benchmarks" / "webassembly.mjs", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "rror" in line]
            raise RuntimeError(lines[0] if lines else done.stderr[-300:])
        size = native.stat().st_size - executable.stats().tensor_bytes
        return json.loads(done.stdout.splitlines()[-1]), size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, required=True, help="the npm package of relvm")
    parser.add_argument("--onnxruntime-web", type=Path, required=True, help="the npm package onnxruntime-web")
    parser.add_argument("--cases", type=int, default=1, help="the number of cases of each model (default: 1)")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    options = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS), flush=True)
    ratios: dict[str, list[float]] = {"native": [], "bytecode": []}
    for name in options.models or MODELS:
        try:
            rows, size = measure(name, options.package.resolve(), options.onnxruntime_web.resolve(), options.cases)
        except Exception as error:  # a model that an engine cannot run is not measured
            print(f"| {name} | {str(error).splitlines()[-1][:120]} |", flush=True)
            continue
        for case, row in enumerate(rows):
            both = {engine: row[engine] / row["onnxruntime"] for engine in ratios}
            for engine, ratio in both.items():
                ratios[engine].append(ratio)
            times = [f"{row[engine]:.3g}" for engine in ("onnxruntime", "native", "bytecode")]
            cells = [name, case, *times, *(f"{ratio:.2f}" for ratio in both.values()), size // 1000]
            print("| " + " | ".join(map(str, cells)) + f" | {row['error']:.0e} |", flush=True)
    for engine, found in ratios.items():
        if found:
            mean = math.exp(sum(map(math.log, found)) / len(found))
            print(f"{engine}: geometric mean {mean:.2f}, largest {max(found):.2f} of {len(found)}")


if __name__ == "__main__":
    main()
