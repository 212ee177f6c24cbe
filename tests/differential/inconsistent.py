"""Run compiled kernels of random models on inputs of right and wrong shapes, under AddressSanitizer.

`python -m differential.inconsistent MODELS` runs the pickled models of a file.  Kernels of both targets must give the
same results or the same errors; the sanitizer ends the process where a kernel reads or writes outside of a tensor.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from differential.random_models import RandomModel

from relvm import vm
from relvm.compiler import build
from relvm.errors import RelvmError
from relvm.frontend.onnx import from_onnx
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module

FITTING, OTHERS = 5, 5  # runs of each model


def buildable(models: Mapping[int, RandomModel]) -> dict[int, RandomModel]:
    """Return the models that relvm can import and build with symbolic sizes."""
    kept = {}
    for seed, model in models.items():
        try:
            vm.build(from_onnx(model.proto()), "bytecode", "numpy")
        except RelvmError:
            continue
        kept[seed] = model
    return kept


def inputs(model: RandomModel, random: np.random.Generator, fits: bool) -> list[np.ndarray]:
    """Return arrays for a model.  Unless `fits`, the shape of one of them is changed at random."""
    arrays = model.arrays(model.other_sizes(random), random)
    if not fits:
        at = int(random.integers(0, len(arrays)))
        shape = list(arrays[at].shape)
        for _ in range(int(random.integers(1, 3))):
            shape[int(random.integers(0, len(shape)))] = int(random.choice((0, 1, 2, 3, 7)))
        arrays[at] = np.ones(shape, np.float32)
    return arrays


def outcome(machine: Any, name: str, arrays: list[np.ndarray]) -> str:
    """Run a function and return the shapes of its results, or the text of the error."""
    try:
        result = machine[name](*arrays)
    except RelvmError as error:
        return f"{type(error).__name__}: {error}"
    parts = result if isinstance(result, tuple | list) else (result,)
    return ", ".join(str(part.shape) for part in parts)


def compare(models: Mapping[int, RandomModel]) -> list[str]:
    """Return a description of each run whose outcome depends on fusion or the target."""
    functions = tuple(replace(from_onnx(model.proto())["main"], name=f"f{seed}") for seed, model in models.items())
    module = Module(functions)
    ways = {
        "fused": vm.build(module, "bytecode", "c"),
        "unfused": vm.build(module, "bytecode", "c", fused=False),
        "numpy": vm.build(module, "bytecode", "numpy"),
    }
    machines = {way: vm.VirtualMachine(executable) for way, executable in ways.items()}
    found = []
    for seed, model in models.items():
        random = np.random.default_rng([seed, 2])
        for number in range(FITTING + OTHERS):
            arrays = inputs(model, random, number < FITTING)
            outcomes = {way: outcome(machine, f"f{seed}", arrays) for way, machine in machines.items()}
            if len(set(outcomes.values())) > 1:
                found.append(f"seed {seed}, run {number}: {outcomes}")
    return found


UNCHECKED = """
def main(x: f32[n, 6], y: f32[b]) -> f32[b, 2, 3] { return relu(reshape(x, shape(b, 2, 3))) }"""


def run_unchecked() -> None:
    """Run a program that was built without the pass check_sizes on inputs of inconsistent sizes."""
    passes = build.build_pipeline
    build.build_pipeline = lambda *args, **options: [
        step for step in passes(*args, **options) if step.name != "check_sizes"
    ]
    executable = vm.build(parse_module(UNCHECKED), "bytecode", "c")
    vm.VirtualMachine(executable)["main"](np.ones((1, 6), np.float32), np.ones(4000, np.float32))


def main(path: Path) -> int:
    found = compare(pickle.loads(path.read_bytes()))
    print("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    if sys.argv[1] == "--unchecked":
        run_unchecked()
        sys.exit(0)
    sys.exit(main(Path(sys.argv[1])))
