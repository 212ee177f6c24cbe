"""The memory of a run of each real model:   python -m benchmarks.memory

A row has the bytes of the planned arena for the sizes of the first case, and the lower bound, which is the maximum of
live bytes.  The next column is the maximum number of bytes that the first run in compiled mode allocates with malloc,
without its inputs.  The last columns are the blocks that a later run allocates, and those of a kilobyte or more.  The
process restarts itself with a counting malloc (count_bytes.c).
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


def main(library: ctypes.CDLL, names: list[str]) -> None:
    from benchmarks.models.catalogue import MODELS
    from relvm import vm
    from relvm.frontend.onnx import from_onnx

    for function in ("most_bytes", "calls", "large_calls"):
        getattr(library, f"count_{function}").restype = ctypes.c_int64
    names_of_columns = (
        "model",
        "arena",
        "lower bound",
        "ratio",
        "first run",
        "blocks in later runs",
        "blocks of 1 kB or more",
    )
    print("| " + " | ".join(names_of_columns) + " |\n|" + "---|" * len(names_of_columns))
    for name in names or MODELS:
        model = MODELS[name]
        case = model.cases()[0]
        module = from_onnx(model.path())
        run = vm.VirtualMachine(vm.build(module, "compiled"), num_threads=1)["main"]
        values = [case[parameter] for parameter in module["main"].input_names]
        library.count_start()
        run(*values)
        most = library.count_most_bytes()
        for _ in range(3):
            run(*values)
        library.count_start()
        run(*values)
        later, large = library.count_calls(), library.count_large_calls()
        arena, bound = planned(model.path(), case)
        cells = (f"{arena:,}", f"{bound:,}", f"{arena / bound:.3f}" if bound else "1.000", f"{most:,}", later, large)
        print(f"| {name} | " + " | ".join(map(str, cells)) + " |", flush=True)


def planned(path: Path, case: dict) -> tuple[int, int]:
    """Return the bytes of the tensors of main as planned for the sizes of a case, and the maximum of live bytes."""
    import onnx

    from relvm.frontend.onnx import from_onnx
    from relvm.passes.memory.arena_allocator import Request, lower_bound
    from relvm.passes.memory.plan_memory import memory_plans
    from relvm.passes.pass_manager import run_passes
    from relvm.passes.pipeline import build_pipeline

    inputs = [one for one in onnx.load(path).graph.input if one.name in case]
    shapes = [(one.type.tensor_type.shape.dim, case[one.name].shape) for one in inputs]
    dims = {
        dim.dim_param: size for dims, shape in shapes for dim, size in zip(dims, shape, strict=True) if dim.dim_param
    }
    passes = build_pipeline("c")
    before = [step.name for step in passes].index("plan_memory")
    plans = dict(memory_plans(run_passes(from_onnx(path, dims=dims), passes[:before])))
    storages = [one for one in plans["main"].storages if all(slot.is_fixed for slot in one.slots)]
    slots = [slot for storage in storages for slot in storage.slots]
    held = [Request("", s.size_bytes, s.slots[0].first, max(slot.last for slot in s.slots)) for s in storages]
    return lower_bound(held), lower_bound([Request("", slot.size_bytes, slot.first, slot.last) for slot in slots])


def start_counted() -> int:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "count_bytes.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", str(HERE / "count_bytes.c"), "-o", str(library)], check=True)
        environment = os.environ | {"LD_PRELOAD": str(library), COUNTED: str(library), "PYTHONMALLOC": "pymalloc"}
        return subprocess.run(
            [sys.executable, "-m", "benchmarks.memory", *sys.argv[1:]], env=environment, check=False
        ).returncode


if __name__ == "__main__":
    if COUNTED not in os.environ:
        sys.exit(start_counted())
    main(ctypes.CDLL(os.environ[COUNTED]), sys.argv[1:])
