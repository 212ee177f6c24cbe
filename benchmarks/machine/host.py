"""Costs of the machine for the host: calls from and to Python, builds, loading, size and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.machine.timing import median
from relvm import vm
from relvm.frontend.text import parse_module
from relvm.ir.builder import Builder
from relvm.ir.dtypes import F32
from relvm.ir.expr import constant
from relvm.ir.types import TensorType
from relvm.runtime.executable import load
from relvm.runtime.packed_func import register_func
from relvm.tables import include_flags, runtime_sources

CALLS, CALLBACKS = 2000, 50
_OPERATORS = ("add(%s, x)", "exp(%s)", "multiply(%s, x)", "tanh(%s)")


def python_costs(mode: str) -> dict[str, float]:
    """Return the nanoseconds of calls from Python, and of a call of a Python function."""
    register_func("benchmarks.same", lambda value: value, override=True)
    called = "\n".join(f'  y{k} = packed("benchmarks.same", x) : i64' for k in range(CALLBACKS))
    text = f"""
def integer(x: i64) -> i64 = x
def tensor(x: f32[n]) -> f32[n] = x
def callbacks(x: i64) => i64 {{
{called}
  return x
}}"""
    machine = vm.VirtualMachine(vm.build(parse_module(text), mode, "numpy"))
    integer, tensor, callbacks, array = (
        *map(machine.__getitem__, ("integer", "tensor", "callbacks")),
        np.zeros(4, "f4"),
    )

    def calls(function: Callable, argument: object) -> Callable[[], None]:
        def run() -> None:
            for _ in range(CALLS):
                function(argument)

        return run

    call = median(calls(integer, 7), CALLS)
    return {
        "int argument, int result": call,
        "array argument, tensor result": median(calls(tensor, array), CALLS),
        "call of a Python function": (median(calls(callbacks, 7), CALLS) - call) / CALLBACKS,
    }


def chain(operators: int) -> str:
    """Return the text of a function with a chain of operators."""
    lines, last = [], "x"
    for k in range(operators):
        lines.append(f"  v{k} = " + _OPERATORS[k % len(_OPERATORS)] % last)
        last = f"v{k}"
    return "\n".join(["def main(x: f32[16, 16]) -> f32[16, 16] {", *lines, f"  return {last}", "}"])


_BUILD = """
import sys, time
from benchmarks.machine.host import chain
from relvm import vm
from relvm.frontend.text import parse_module
module = parse_module(chain(int(sys.argv[1])))
started = time.perf_counter()
vm.build(module, sys.argv[2], fused=False)
print(time.perf_counter() - started)
"""


def build_seconds(operators: int, mode: str) -> tuple[float, float]:
    """Return the seconds of a build in a new process, and of a second build with all compiled C in the cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "RELVM_CACHE_DIR": cache}
        command = [sys.executable, "-c", _BUILD, str(operators), mode]
        runs = [
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
            for _ in range(2)
        ]
    return float(runs[0]), float(runs[1])


def load_milliseconds(mode: str) -> float:
    """Return the milliseconds of loading an executable with 100 MB of constants."""
    builder = Builder()
    with builder.function("main", [("x", TensorType(F32, (25_000_000,)))]) as (x,):
        builder.ret(builder.op("add", x, constant(np.ones(25_000_000, np.float32))))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "constants.rvm")
        vm.build(builder.module(), mode).save(path)
        return median(lambda: load(path), 1e6)


def library_bytes() -> int:
    """Return the size of the runtime as a stripped shared library."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "librelvm.so")
        sources = runtime_sources()
        flags = ["-std=gnu11", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-s", "-fvisibility=hidden", "-DRVM_SHARED"]
        subprocess.run(
            ["gcc", *flags, *include_flags(), *map(str, sources), "-o", str(library), "-lm", "-ldl", "-lpthread"],
            check=True,
        )
        return library.stat().st_size


_MEMORY = """
import sys
import numpy
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS"))
before = resident()
from relvm.vm import VirtualMachine, load
machine = VirtualMachine(load(sys.argv[1], trust_native=True))
assert machine["main"](7) == 7
print(resident() - before)
"""


def resident_kilobytes(mode: str) -> float:
    """Return the memory of the runtime and a small loaded executable in kB, in addition to Python with NumPy."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "small.rvm")
        vm.build(parse_module("def main(x: i64) -> i64 = x"), mode, "numpy").save(path)
        command = [sys.executable, "-c", _MEMORY, str(path)]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
