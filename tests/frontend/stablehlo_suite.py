"""Run the programs of the StableHLO project: `python -P tests/frontend/stablehlo_suite.py FOLDER`.

FOLDER contains the project's test data, files that end in .mlir, also in subfolders.  Most of the programs contain
their inputs, the expected results and checks.  A program whose `main` has parameters runs on numbers instead, with
unknown sizes of 5, and its results are compared with those of the NumPy implementations of the operators.

The exit status is 0 if every program is right, or is excluded by stablehlo_excluded.py.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from frontend.stablehlo_excluded import INVALID, OTHERWISE, REFUSED

from relvm import vm
from relvm.errors import RelvmAssertionError, RelvmError, RelvmFormatError, RelvmIndexError, RelvmUnsupportedError
from relvm.frontend.stablehlo import from_stablehlo
from relvm.ir.expr import Function
from relvm.ir.types import TensorType

_SIZE = 5  # the value of unknown sizes


def main() -> int:
    """Run the programs, print what went wrong, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("pattern", nargs="?", default="", help="run only the programs whose names match")
    parser.add_argument("--exec-mode", choices=("bytecode", "compiled"), default="bytecode")
    parser.add_argument("--target", default="bytecode", help="how kernels are built; bytecode needs no C compiler")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    files = sorted(file for file in options.folder.rglob("*.mlir") if re.search(options.pattern, file.stem))
    if not files:
        parser.error(f"no programs in {options.folder}")
    check = partial(outcome, exec_mode=options.exec_mode, target=options.target)
    with ProcessPoolExecutor(options.processes) as pool:
        found = list(pool.map(check, files, chunksize=8))
    for file, (kind, message) in zip(files, found, strict=True):
        if kind in ("wrong", "failed"):
            print(f"{kind}: {file.stem}: {message}")
    counts = Counter(kind for kind, _ in found)
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    return 1 if counts["wrong"] or counts["failed"] else 0


def outcome(file: Path, *, exec_mode: str, target: str) -> tuple[str, str]:
    """Return what happened to a program: right, refused, excluded, wrong or failed, and the message."""
    try:
        module = from_stablehlo(file)
    except RelvmUnsupportedError as error:
        is_expected = any(re.fullmatch(name, file.stem) and why in str(error) for name, why in REFUSED.items())
        return ("refused" if is_expected else "failed"), str(error)
    except RelvmFormatError as error:
        return ("excluded" if file.stem in INVALID else "failed"), str(error)
    except RelvmError as error:
        return "failed", f"{type(error).__name__}: {error}"
    try:
        machine = vm.VirtualMachine(vm.build(module, exec_mode, target))
        for function in module.functions:
            arguments = _arguments(function)
            if function.private:
                continue
            results = _run(machine, function.name, arguments)
            if arguments:
                reference = vm.VirtualMachine(vm.build(module, target="numpy"))
                if not _agree(results, _run(reference, function.name, arguments)):
                    return "wrong", "the results differ from those of NumPy"
    except RelvmIndexError as error:  # an argument that is 5 is not a valid position
        return ("right" if arguments else "failed"), str(error)
    except RelvmAssertionError as error:
        return ("excluded" if file.stem in OTHERWISE else "wrong"), str(error)
    except RelvmError as error:
        return "failed", f"{type(error).__name__}: {error}"
    return "right", ""


def _run(machine: vm.VirtualMachine, function: str, arguments: list[np.ndarray]) -> list[np.ndarray]:
    result = machine[function](*arguments)
    return [each.numpy() for each in (result if isinstance(result, list | tuple) else [result])]


def _arguments(function: Function) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    found = []
    for param in function.params:
        type_ = param.type
        assert isinstance(type_, TensorType)
        shape = [dim if isinstance(dim, int) else _SIZE for dim in type_.known_shape]
        dtype = type_.known_dtype
        if dtype.is_bool:
            values = random.random(shape) < 0.5
        elif dtype.is_integer:
            values = random.integers(0, 4, shape) if shape else np.array(_SIZE)
        else:
            values = random.normal(size=shape)
        found.append(np.asarray(values).astype(dtype.numpy))
    return found


def _agree(found: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    return len(found) == len(expected) and all(
        x.shape == y.shape
        and np.allclose(x.astype(np.float64), y.astype(np.float64), rtol=1e-2, atol=1e-2, equal_nan=True)
        for x, y in zip(found, expected, strict=True)
    )


if __name__ == "__main__":
    sys.exit(main())
