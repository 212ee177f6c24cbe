"""The memory of a run of each real model:   python benchmarks/memory.py

Each row: the most bytes that one run in bytecode holds at once beyond its inputs, and how many blocks it asks for.
The process starts itself again with malloc counted (count_bytes.c); Python's own allocations are in the numbers.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
COUNTED = "RELVM_BENCHMARK_COUNTED"


def main(library: ctypes.CDLL) -> None:
    sys.path[:0] = [str(HERE.parent / "examples"), str(HERE.parent / "tests")]
    from real_models import MODELS

    from relvm import vm
    from relvm.frontend.onnx import from_onnx

    library.count_most_bytes.restype = library.count_calls.restype = ctypes.c_int64
    print(f"{'model':18} {'sizes':10} case  {'most bytes':>12}  {'blocks':>6}")
    for name, model in MODELS.items():
        symbolic = from_onnx(model.path())
        for number, case in enumerate(model.cases):
            rows = next(iter(case.values())).shape[0]
            variants = {"symbolic": symbolic}
            dims = _symbols(symbolic)
            if dims:
                variants["fixed"] = from_onnx(model.path(), dims=dict.fromkeys(dims, rows))
            for sizes, module in variants.items():
                run = vm.VirtualMachine(vm.build(module))["main"]
                values = [case[n] for n in dict(module["main"].attributes)["input_names"]]
                run(*values)
                library.count_start()
                run(*values)
                most, calls = library.count_most_bytes(), library.count_calls()
                kind = sizes if dims else "fixed"
                print(f"{name:18} {kind:10} {number:4}  {most:12,}  {calls:6,}")


def _symbols(module) -> list[str]:
    from relvm.ir.types import type_vars

    return sorted({var.name for param in module["main"].params for var in type_vars(param.type)})


def start_counted() -> int:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "count_bytes.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", str(HERE / "count_bytes.c"), "-o", str(library)], check=True)
        environment = os.environ | {"LD_PRELOAD": str(library), COUNTED: str(library), "PYTHONMALLOC": "pymalloc"}
        return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode


if __name__ == "__main__":
    if COUNTED not in os.environ:
        sys.exit(start_counted())
    main(ctypes.CDLL(os.environ[COUNTED]))
