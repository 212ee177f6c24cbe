"""Run the test harnesses of JAX: `python -P tests/frontend/jax_suite.py`.

A harness is a function with arguments, mostly a call of one primitive with certain shapes, dtypes and parameters.
relvm imports and runs it, and the results are compared with those of JAX on the CPU.  Harnesses that JAX itself does
not run on CPUs are left out.  With JAX_ENABLE_X64=1 in the environment, JAX defines more harnesses, of dtypes of 64
bits.

The exit status is 0 if every case is right, or is refused or excluded by jax_excluded.py.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import sys
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import numpy as np
from frontend.jax_excluded import OTHERWISE, REFUSED
from jax._src.internal_test_util import test_harnesses

from relvm import vm
from relvm.errors import RelvmError, RelvmUnsupportedError
from relvm.frontend.jax import from_jax

# The order of the harnesses differs from process to process.
HARNESSES = {harness.fullname: harness for harness in test_harnesses.all_harnesses}
# The largest difference from the expected result, relative to it, by dtype.
_TOLERANCES = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-3, "bfloat16": 2e-2}
# Primitives that add or multiply many numbers: the difference is relative to the largest expected result, because the
# order of the operations differs.
_ACCUMULATE = re.compile(
    r"(conv|cum|dot|fft|qr|reduce|scatter|select_and|triangular|cholesky|lu|custom_linear|tridiag)"
)


def main() -> int:
    """Run the harnesses, print what went wrong, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pattern", nargs="?", default="", help="run only the harnesses whose names match")
    parser.add_argument("--exec-mode", choices=("bytecode", "compiled"), default="bytecode")
    parser.add_argument("--target", default="bytecode", help="how kernels are built; bytecode needs no C compiler")
    parser.add_argument("--every", type=int, default=1, help="run only every n-th harness")
    parser.add_argument("--start", type=int, default=0, help="skip this many harnesses before the first one")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    names = [name for name in selected() if re.search(options.pattern, name)][options.start :: options.every]
    check = partial(outcome, exec_mode=options.exec_mode, target=options.target)
    context = multiprocessing.get_context("spawn")  # JAX runs threads, so a fork could wait for a lock forever
    counts = Counter[str]()
    with ProcessPoolExecutor(options.processes, mp_context=context) as pool:
        for name, (kind, message) in zip(names, pool.map(check, names, chunksize=8), strict=True):
            counts[kind] += 1
            if kind in ("wrong", "failed"):
                print(f"{kind}: {name}: {message}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    return 1 if counts["wrong"] or counts["failed"] else 0


def selected() -> list[str]:
    """Return the sorted names of the harnesses that JAX runs on CPUs."""
    return sorted(name for name, harness in HARNESSES.items() if harness.filter("cpu"))


def outcome(name: str, *, exec_mode: str, target: str) -> tuple[str, str]:
    """Return what happened to a harness: right, refused, excluded, wrong or failed, and the message."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            kind, message = _run(HARNESSES[name], exec_mode, target)
        except Exception as error:  # of any kind: the suite goes on
            kind, message = "failed", f"{type(error).__name__}: {error}"
    message = " ".join(message.split())
    if kind == "refused":
        is_expected = any(re.fullmatch(pattern, name) and re.search(why, message) for pattern, why in REFUSED.items())
        return (kind if is_expected else "failed"), message
    if kind == "wrong" and any(re.fullmatch(pattern, name) for pattern in OTHERWISE):
        return "excluded", message
    return kind, message


def _run(harness: Any, exec_mode: str, target: str) -> tuple[str, str]:
    args = harness.dyn_args_maker(np.random.RandomState(0))
    expected = [part for leaf in jax.tree.leaves(jax.jit(harness.dyn_fun)(*args)) for part in _parts(leaf)]
    try:
        module = from_jax(harness.dyn_fun, *args)
    except RelvmUnsupportedError as error:
        return "refused", str(error)
    main = vm.VirtualMachine(vm.build(module, exec_mode, target))["main"]
    given = [_parts(leaf) for leaf in jax.tree.leaves(args)]
    try:
        found = main(*(tuple(parts) if len(parts) > 1 else parts[0] for parts in given))
    except RelvmError as error:
        return "failed", f"{type(error).__name__}: {error}"
    results = [each.numpy() for each in _leaves(found)]
    if harness.group_name in _DECOMPOSITIONS:
        types = jax.tree.leaves(jax.eval_shape(harness.dyn_fun, *args))
        message = _DECOMPOSITIONS[harness.group_name](harness, np.asarray(args[0]), _joined(results, types))
        return ("wrong", message) if message else ("right", "")
    if harness.group_name == "cholesky":  # the primitive does not define the other triangle
        results, expected = ([np.tril(each) for each in some] for some in (results, expected))
    if len(results) != len(expected):
        return "wrong", f"{len(results)} results, expected {len(expected)}"
    for x, y in zip(results, expected, strict=True):
        if difference := _difference(x, y, is_relative=not _ACCUMULATE.match(harness.group_name)):
            return "wrong", difference
    return "right", ""


# ---- decompositions, whose results are not unique ----


def _joined(parts: list[np.ndarray], types: list[Any]) -> list[np.ndarray]:
    """Return the arrays of the given types from their parts."""
    rest = iter(parts)
    return [next(rest) + 1j * next(rest) if type_.dtype.kind == "c" else next(rest) for type_ in types]


def _adjoint(x: np.ndarray) -> np.ndarray:
    return x.conj().swapaxes(-1, -2)


def _errors(matrix: np.ndarray, **errors: np.ndarray) -> str:
    """Return which errors exceed the tolerance, which is relative to the norm of the matrix, or ""."""
    tolerance = 2e-5 if matrix.dtype.itemsize <= 8 and matrix.dtype.name != "float64" else 1e-12
    norm = max(float(np.linalg.norm(matrix, axis=(-2, -1)).max(initial=0)), 1)
    found = {name: float(np.abs(error).max(initial=0)) for name, error in errors.items()}
    return ", ".join(f"{name}: {size:.2g}" for name, size in found.items() if not size <= tolerance * norm)


def _check_eigh(harness: Any, matrix: np.ndarray, results: list[np.ndarray]) -> str:
    vectors, values = results
    half = np.tril(matrix, -1) if harness.params["lower"] else _adjoint(np.triu(matrix, 1))
    diagonal = np.einsum("...ii->...i", matrix).real[..., None, :] * np.eye(matrix.shape[-1], dtype=values.dtype)
    matrix = half + _adjoint(half) + diagonal
    return _errors(
        matrix,
        values=values - np.linalg.eigvalsh(matrix),
        vectors=matrix @ vectors - vectors * values[..., None, :],
        orthogonality=_adjoint(vectors) @ vectors - np.eye(matrix.shape[-1]),
    )


def _check_eig(harness: Any, matrix: np.ndarray, results: list[np.ndarray]) -> str:
    values, *vectors = results
    errors = {"sum": values.sum(-1) - np.einsum("...ii->...", matrix)}
    for name in ("left", "right"):
        if harness.params[f"compute_{name}_eigenvectors"]:
            found = vectors.pop(0)
            operand, scale = (_adjoint(matrix), values.conj()) if name == "left" else (matrix, values)
            errors[name] = operand @ found - found * scale[..., None, :]
            errors[f"norm of {name}"] = np.linalg.norm(found, axis=-2) - 1
    expected = np.linalg.eigvals(matrix)
    distance = np.abs(values[..., :, None] - expected[..., None, :])
    errors["values"] = np.maximum(distance.min(-1, initial=np.inf), distance.min(-2, initial=np.inf))
    return _errors(matrix, **errors)


def _check_svd(harness: Any, matrix: np.ndarray, results: list[np.ndarray]) -> str:
    values, *vectors = results
    errors = {"values": values - np.linalg.svd(matrix, compute_uv=False)}
    if vectors:
        left, right = vectors
        count = values.shape[-1]
        errors["product"] = (left[..., :count] * values[..., None, :]) @ right[..., :count, :] - matrix
        errors["left"] = _adjoint(left) @ left - np.eye(left.shape[-1])
        errors["right"] = right @ _adjoint(right) - np.eye(right.shape[-2])
    return _errors(matrix, **errors)


_DECOMPOSITIONS = {"eig": _check_eig, "eigh": _check_eigh, "svd": _check_svd}


def _leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, list | tuple) else [value]


def _parts(leaf: Any) -> list[np.ndarray]:
    """Return an array as relvm represents it: the two parts of complex numbers, and the data of random keys."""
    aval = jax.typeof(leaf)
    if jax.numpy.issubdtype(aval.dtype, jax.dtypes.prng_key):
        return [np.asarray(jax.random.key_data(leaf))]
    array = np.asarray(leaf, dtype=aval.dtype)
    return [np.array(array.real), np.array(array.imag)] if array.dtype.kind == "c" else [array]


def _difference(found: np.ndarray, expected: np.ndarray, *, is_relative: bool) -> str:
    """Return how a result differs from the expected one, or "" if they are equal.

    is_relative: whether the tolerance of an element is relative to this element, and not to the largest one.
    """
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return f"{found.dtype}{found.shape}, expected {expected.dtype}{expected.shape}"
    if found.dtype.kind in "iub":
        return "" if np.array_equal(found, expected) else "the integers differ"
    tolerance = _TOLERANCES.get(found.dtype.name, 0)
    x, y = found.astype(np.float64), expected.astype(np.float64)
    largest = float(np.abs(y[np.isfinite(y)]).max(initial=0))
    bad = ~np.isclose(
        x, y, rtol=tolerance, atol=tolerance * (min(largest, 1) if is_relative else largest), equal_nan=True
    )
    return f"{bad.sum()} of {bad.size} differ: {x[bad][:3]}, expected {y[bad][:3]}" if bad.any() else ""


if __name__ == "__main__":
    sys.exit(main())
