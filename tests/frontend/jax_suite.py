"""Run the test harnesses of JAX: `python -P tests/frontend/jax_suite.py`.

A harness of JAX is a function with arguments, mostly a call of one primitive with certain shapes, dtypes and
parameters.  relvm imports and runs it, and the results are compared with those of JAX on the CPU.

The exit status is 0 if every case is right, or is refused or excluded by jax_excluded.py.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import numpy as np
from jax._src.internal_test_util import test_harnesses

from relvm import vm
from relvm.errors import RelvmError, RelvmUnsupportedError
from relvm.frontend.jax import from_jax

jax.config.update("jax_enable_x64", True)


def run(numbers, exec_mode, target):
    found = []
    for n in numbers:
        t = time.time()
        try:
            found.append(outcome(n, exec_mode, target))
        except Exception as error:
            found.append(("crash", f"{type(error).__name__}: {error}"))
        with open(f"/tmp/jaxprog.{exec_mode}.{target}", "a") as f:
            kind, message = found[-1]
            print(f"{kind}\t{test_harnesses.all_harnesses[n].fullname}\t{time.time()-t:.2f}\t{' '.join(message.split())[:400]}", file=f)
    return found


def _flat(value):
    return [each for item in value for each in _flat(item)] if isinstance(value, list | tuple) else [value]


def _parts(array):
    array = np.asarray(array)
    return [array.real, array.imag] if array.dtype.kind == "c" else [array]


def outcome(number, exec_mode, target):
    harness = test_harnesses.all_harnesses[number]
    warnings.simplefilter("ignore")
    rng = np.random.RandomState(0)
    args = harness.dyn_args_maker(rng)
    try:
        expected = jax.jit(harness.dyn_fun)(*args)
    except Exception as error:
        return "unrun", f"{type(error).__name__}: {str(error)[:100]}"
    try:
        module = from_jax(harness.dyn_fun, *args)
    except RelvmUnsupportedError as error:
        return "refused", str(error)
    except RelvmError as error:
        return "failed", f"import {type(error).__name__}: {error}"
    def data(x):
        return jax.random.key_data(x) if jax.numpy.issubdtype(getattr(x,'dtype',None) or np.int32, jax.dtypes.prng_key) else x
    try:
        machine = vm.VirtualMachine(vm.build(module, exec_mode, target))
        given = []
        for each in jax.tree.leaves(args):
            each = data(each)
            parts = _parts(np.asarray(each, dtype=jax.typeof(each).dtype))
            given.append(tuple(map(np.array, parts)) if len(parts) > 1 else parts[0])
        found = [each.numpy() for each in _flat(machine["main"](*given))]
    except RelvmError as error:
        return "failed", f"run {type(error).__name__}: {error}"
    wanted = [part for each in jax.tree.leaves(expected) for part in _parts(data(each))]
    if len(wanted) != len(found):
        return "wrong", f"{len(found)} results, expected {len(wanted)}"
    tol = harness.params.get("tol")
    for x, y in zip(found, wanted):
        if x.shape != y.shape or x.dtype != y.dtype:
            return "wrong", f"{x.dtype}{x.shape}, expected {y.dtype}{y.shape}"
        if x.dtype.kind in "biu":
            if not np.array_equal(x, y): return "wrong", f"integers differ: {x.ravel()[:4]} {y.ravel()[:4]}"
            continue
        t = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}.get(x.dtype.name, 1e-3)
        a,b = x.astype(np.float64), y.astype(np.float64)
        scale = np.abs(b[np.isfinite(b)]).max(initial=0) if b.size else 0
        bad = ~np.isclose(a, b, rtol=t, atol=t*min(max(scale,1e-30),1), equal_nan=True)
        if bad.any():
            err = np.abs(a-b)[bad]
            return "wrong", f"{bad.sum()} of {b.size} differ: {a[bad][:3]} {b[bad][:3]} tol {t}"
    return "right", ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--exec-mode", default="bytecode")
    parser.add_argument("--target", default="bytecode")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    o = parser.parse_args()
    hs = test_harnesses.all_harnesses
    numbers = [i for i, h in enumerate(hs) if re.search(o.pattern, h.fullname) and h.filter("cpu")][:: o.every]
    t = time.time()
    chunks = [numbers[i : i + 16] for i in range(0, len(numbers), 16)]
    with ProcessPoolExecutor(o.processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = [r for c in pool.map(run, chunks, [o.exec_mode] * len(chunks), [o.target] * len(chunks)) for r in c]
    with open(f"/tmp/jaxsuite.txt", "w") as f:
        for n, (kind, message) in zip(numbers, found):
            if kind != "right": print(f"{kind}\t{hs[n].fullname}\t{' '.join(message.split())[:400]}", file=f)
    print(Counter(k for k, _ in found), time.time() - t)


if __name__ == "__main__":
    main()
