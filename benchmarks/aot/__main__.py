"""Compare exports with other C code generators, on microcontrollers:   python -m benchmarks.aot [MODEL...]

A row of the first table has the model, the processor, the optimization level, and the code generator.  The next columns
are differences from an image without a model:

- the bytes of flash, and the part that exceeds the weights
- the bytes of RAM without input and output, and the part that is stack
- the instructions of a run

The last column is the largest difference from ONNX Runtime's result, relative to its largest value.

A row of the second table has the model, the bytes of the weights, and the memory of a run according to relvm: the
maximum of live bytes, and the maximum of live bytes of tensors.  The last columns are the file size and the arena size,
with input and output, of TensorFlow Lite for Microcontrollers, which only runs on this machine.

Needs the packages emlearn, emx-onnx-cgen, m2cgen, onnxruntime, scikit-learn and tflite-micro, and the Debian packages
gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.aot.board import PROCESSORS, measure
from benchmarks.aot.models import MODELS, Model
from benchmarks.aot.sides import SIDES, Sources, nothing
from benchmarks.aot.tflite_micro import run_tflite_micro

_LEVELS = ("-Os", "-O2")
_ROW = (
    "model",
    "processor",
    "option",
    "generator",
    "flash",
    "flash without weights",
    "RAM",
    "stack",
    "instructions",
    "error",
)
_BOUNDS = ("model", "weights", "alive at once", "tensors only", "TFLM file", "TFLM arena")


def main() -> None:
    names = [make.__name__ for make in MODELS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, help="a folder for sources and images; default: one that is removed")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(names))
    options = parser.parse_args()
    models = [make() for make in MODELS if make.__name__ in (options.models or names)]
    with tempfile.TemporaryDirectory() as temporary:
        root = options.keep or Path(temporary)
        _print_row(_ROW, "---|" * len(_ROW))
        relvm = [_measure_model(model, root / model.name) for model in models]
    print()
    _print_row(_BOUNDS, "---|" * len(_BOUNDS))
    for model, sources in zip(models, relvm, strict=True):
        cells = [model.name, model.weights_bytes, sources.bound_bytes, sources.tensors_bytes]
        if found := run_tflite_micro(model):
            _expect(model, "tflite_micro", found.output)
            cells += [found.file_bytes, found.arena_bytes]
        _print_row(cells + [""] * (len(_BOUNDS) - len(cells)))


def _measure_model(model: Model, root: Path) -> Sources:
    """Print the rows of a model.  Return the sources that relvm generated."""
    made = {}
    for side in (nothing, *SIDES):
        folder = root / side.__name__
        folder.mkdir(parents=True, exist_ok=True)
        if sources := side(model, folder):
            made[side.__name__] = sources, folder
    empty = made.pop("nothing")
    for processor, level in itertools.product(PROCESSORS, _LEVELS):
        base = measure(empty[0], model, processor, level, empty[1])
        for name, (sources, folder) in made.items():
            got = measure(sources, model, processor, level, folder).without(base)
            error = _expect(model, name, got.output)
            flash = (got.flash_bytes, got.flash_bytes - model.weights_bytes)
            ram = (got.static_bytes + got.stack_bytes, got.stack_bytes)
            _print_row([model.name, processor.name, level, name, *flash, *ram, got.instructions, f"{error:.0e}"])
    return made["relvm"][0]


def _expect(model: Model, side: str, got: np.ndarray) -> float:
    """Return the largest difference relative to the largest value.  Raise RuntimeError if it exceeds the tolerance."""
    error = float(np.abs(got - model.expected).max() / np.abs(model.expected).max())
    if error > model.tolerance:
        raise RuntimeError(f"{model.name} by {side}: off by {error}, expected at most {model.tolerance}")
    return error


def _print_row(cells: Iterable[object], rule: str = "") -> None:
    texts = [f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells]
    print("| " + " | ".join(texts) + " |" + (f"\n|{rule}" if rule else ""), flush=True)


if __name__ == "__main__":
    main()
