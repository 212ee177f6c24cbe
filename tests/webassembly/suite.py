"""ONNX's test cases of operators in WebAssembly: `PYTHONPATH=tests python -m webassembly.suite [--oracle v2|here]`.

Each case runs as kernel bytecode in Node.js, and its results are compared bit for bit with those of the runtime on
x86-64.  With `--oracle v2`, that runtime runs in QEMU on a processor without fused multiply-add, as in WebAssembly.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from frontend.onnx_excluded import REFUSED
from frontend.onnx_suite import node_cases
from onnx import ModelProto, OptionalProto, SequenceProto, TensorProto, numpy_helper
from webassembly.json_values import decode, encode, run_manifest

from relvm import vm
from relvm.errors import RelvmError
from relvm.frontend.onnx import from_onnx
from relvm.ir.expr import Module

HERE = Path(__file__).resolve().parent
BATCH = 100  # number of models that are built as one module
# Cases with random numbers.
RANDOM = frozenset(f"test_bernoulli{kind}{end}" for kind in ("", "_double", "_seed") for end in ("", "_expanded"))
QEMU = ["qemu-x86_64", "-cpu", "Nehalem"]  # x86-64-v2: no AVX, no fused multiply-add


def _value(proto: Any) -> Any:
    """Return the value of an input of a case."""
    if isinstance(proto, TensorProto):
        return numpy_helper.to_array(proto)
    if isinstance(proto, SequenceProto):
        return numpy_helper.to_list(proto)
    return numpy_helper.to_optional(proto) if isinstance(proto, OptionalProto) else proto


def chosen_cases(step: int = 1) -> dict[str, Any]:
    """Return every `step`-th case of the suite that relvm supports, by name."""
    names = [name for name in sorted(node_cases()) if f"{name}_cpu" not in REFUSED]
    return {name: node_cases()[name] for name in names[::step]}


def write_manifest(cases: Mapping[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Build the models of cases as executables in a folder, and return the manifest of their runs."""
    manifest = []
    names = sorted(cases)
    for first in range(0, len(names), BATCH):
        functions, runs = [], []
        for name in names[first : first + BATCH]:
            model: ModelProto = cases[name].model
            functions.append(replace(from_onnx(model)["main"], name=name))
            inputs = [encode(_value(proto)) for proto in cases[name].data_sets[0][0]]
            runs.append({"model": str(folder / f"{first}.rvm"), "function": name, "inputs": inputs})
        vm.build(Module(tuple(functions)), target="bytecode").save(folder / f"{first}.rvm")
        manifest += runs
    return manifest


def run_in_node(package: Path, manifest: Sequence[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Run a manifest in Node.js, and return the results or errors.   package: the folder of the npm package."""
    (folder / "manifest.json").write_text(json.dumps(manifest))
    command = ["node", HERE / "run_values.mjs", package, folder / "manifest.json", folder / "results.json"]
    subprocess.run(command, check=True)
    return json.loads((folder / "results.json").read_text())


def run_in_qemu(manifest: Sequence[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Run a manifest with Python on an emulated processor of level x86-64-v2."""
    (folder / "manifest.json").write_text(json.dumps(manifest))
    command = [*QEMU, sys.executable, HERE / "json_values.py", folder / "manifest.json", folder / "oracle.json"]
    subprocess.run(command, check=True, env=os.environ | {"OPENBLAS_CORETYPE": "Nehalem"})  # it looks for AVX otherwise
    return json.loads((folder / "oracle.json").read_text())


def _with_one_nan(value: Any) -> Any:
    """Return a value with one NaN, because processors choose the bits of a NaN."""
    if isinstance(value, tuple | list):
        return type(value)(map(_with_one_nan, value))
    is_float = isinstance(value, np.ndarray) and value.dtype.kind in "fV"
    if not is_float or value.dtype.itemsize == 1:
        return value
    return np.where(value != value, value.dtype.type(np.nan), value)


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two results or errors are equal, except for the bits of NaNs."""
    if "error" in one or "error" in other:
        return one.get("error") == other.get("error")
    return encode(_with_one_nan(decode(one["result"]))) == encode(_with_one_nan(decode(other["result"])))


def differences(
    manifest: Sequence[dict[str, Any]], found: Sequence[dict[str, Any]], expected: Sequence[dict[str, Any]]
) -> Iterator[str]:
    """Yield a line for each case whose results differ."""
    for case, one, other in zip(manifest, found, expected, strict=True):
        if same(one, other):
            continue
        if "error" in one or "error" in other:
            yield f"{case['function']}: {one.get('message', 'a result')} / {other.get('message', 'a result')}"
            continue
        yield f"{case['function']}: {_distance(decode(one['result']), decode(other['result']))}"


def _distance(one: Any, other: Any) -> str:
    if isinstance(one, tuple | list):
        return ", ".join(_distance(a, b) for a, b in zip(one, other, strict=True))
    if not isinstance(one, np.ndarray) or one.dtype.kind != "f":
        return "equal" if str(one) == str(other) else f"{one} / {other}"
    bits = {2: np.int16, 4: np.int32, 8: np.int64}[one.dtype.itemsize]
    steps = np.abs(one.view(bits).astype(object) - other.view(bits).astype(object))
    return f"{np.count_nonzero(steps)} of {one.size} elements differ, by at most {steps.max(initial=0)} units"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", type=Path, help="folder of the npm package (bindings/javascript/build.py)")
    parser.add_argument("--oracle", choices=("v2", "here"), default="v2", help="x86-64-v2 in QEMU, or this processor")
    parser.add_argument("--step", type=int, default=1, help="run every STEP-th case")
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        manifest = write_manifest(chosen_cases(options.step), folder)
        found = run_in_node(options.package, manifest, folder)
        expected = run_in_qemu(manifest, folder) if options.oracle == "v2" else run_manifest(list(manifest))
        lines = list(differences(manifest, found, expected))
        print("\n".join(lines))
        errors = Counter(answer["error"] for answer in found if "error" in answer)
        known = sum(line.partition(":")[0] in RANDOM for line in lines)
        print(f"{len(manifest)} cases, {len(lines)} differ, of which {known} are random; errors: {dict(errors)}")


if __name__ == "__main__":
    try:
        main()
    except RelvmError as error:
        raise SystemExit(str(error)) from error
