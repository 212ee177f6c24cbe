"""Exports beside other generators of C, on microcontrollers:   python -m benchmarks.aot

Each row: a model, who made C of it, the processor and the level of optimisation; then, as differences from an image
without a model: the bytes of flash, and how many of them are more than the weights; the bytes of RAM, which are
variables and the deepest stack, not counting input and output; the instructions of a run, and the largest difference
from ONNX Runtime's result, relative to its largest value.  relvm's lower bounds of the memory of a run stand before
the table.

Needs emlearn, emx-onnx-cgen, scikit-learn and onnxruntime, and of Debian's packages gcc-arm-none-eabi,
libnewlib-arm-none-eabi and qemu-system-arm.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.aot.board import PROCESSORS, measure
from benchmarks.aot.models import MODELS, Model
from benchmarks.aot.sides import SIDES, nothing

_LEVELS = ("-Os", "-O2")
_COLUMNS = ("model", "processor", "", "made by", "flash", "beyond weights", "RAM", "of it stack", "instructions", "error")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [make.__name__ for make in MODELS]
    parser.add_argument("--keep", type=Path, help="a folder for sources and images; default: one that is removed")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(names), default=names)
    options = parser.parse_args()
    models = [make() for make in MODELS if make.__name__ in options.models]
    with tempfile.TemporaryDirectory() as temporary:
        root = options.keep or Path(temporary)
        print("| " + " | ".join(_COLUMNS) + " |\n|" + "---|" * len(_COLUMNS))
        bounds = [_measure_model(model, root / model.name) for model in models]
    print("\nThe memory of relvm's runs, and its tensors alone:")
    for model, (bound, tensors) in zip(models, bounds, strict=True):
        print(f"{model.name}: {bound:,} bytes alive at once, {tensors:,} of them tensors; weights {model.weights_bytes:,}")


def _measure_model(model: Model, root: Path) -> tuple[int, int]:
    """Prints the rows of a model.  relvm's bounds."""
    made = {}
    for side in (nothing, *SIDES):
        folder = root / side.__name__
        folder.mkdir(parents=True, exist_ok=True)
        if sources := side(model, folder):
            made[side.__name__] = sources, folder
    empty = made.pop("nothing")
    for processor in PROCESSORS:
        for level in _LEVELS:
            base = measure(empty[0], model, processor, level, empty[1])
            for name, (sources, folder) in made.items():
                got = measure(sources, model, processor, level, folder).without(base)
                error = _error(got.output, model.expected)
                assert error <= model.tolerance, f"{model.name} by {name}: off by {error}"
                sizes = (got.flash_bytes, got.flash_bytes - model.weights_bytes)
                sizes += (got.static_bytes + got.stack_bytes, got.stack_bytes, got.instructions)
                cells = [model.name, processor.name, level, name, *(f"{size:,}" for size in sizes), f"{error:.0e}"]
                print("| " + " | ".join(cells) + " |", flush=True)
    bounds = made["relvm"][0]
    return bounds.bound_bytes, bounds.tensors_bytes


def _error(got: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(got - expected).max() / np.abs(expected).max())


if __name__ == "__main__":
    main()
