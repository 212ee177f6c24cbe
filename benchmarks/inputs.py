"""Instructions of calls whose inputs are checked or copied at the entrance, counted by valgrind.

Usage: python -m benchmarks.inputs
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np

from relvm import vm
from relvm.frontend.text import parse_module

TEXT = """
def gather(x: f32[n], i: i64[k]) = gather(x, i)
def embedding(x: f32[n, 64], i: i64[k]) = gather(x, i)
def nonzero(c: bool[n]) = nonzero(c, shape(n))
"""
SIZES = {1: 100_000, 1000: 5000, 100_000: 200}  # for each number of elements, the number of calls


def arguments(name: str, size: int) -> tuple[np.ndarray, ...]:
    """Return the arguments of a function of TEXT.   size: the number of indices or bools."""
    places, bools = np.arange(size) % 100, np.ones(size, bool)
    return {
        "gather": (np.ones(100, np.float32), places),
        "embedding": (np.ones((100, 64), np.float32), places),
        "nonzero": (bools,),
    }[name]


def call(name: str, size: int, calls: int) -> None:
    """Call a function of TEXT.  The process that valgrind observes does nothing else after its start."""
    machine = vm.VirtualMachine(vm.build(parse_module(TEXT), exec_mode="compiled"), num_threads=1)
    function, args = machine[name], arguments(name, size)
    for _ in range(calls):
        function(*args)


def count(name: str, size: int) -> float:
    """Return the number of instructions of a call."""
    totals, calls = [], SIZES[size]
    for repeats in (1, 2):
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, "-m"]
        command += ["benchmarks.inputs", name, str(size), str(repeats * calls)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        totals.append(int(re.search(r"Collected : (\d+)", done.stderr)[1]))
    return (totals[1] - totals[0]) / calls


def main() -> None:
    # valgrind does not support AVX-512.  Hashes of Python, and thus its instructions, must not vary.
    os.environ |= {"RELVM_CPU": "x86-64-v2", "PYTHONHASHSEED": "0"}
    subprocess.run(
        [sys.executable, "-m", "benchmarks.inputs", "gather", "1", "1"], check=True
    )  # fills the cache of compiled code
    print("|  | " + " | ".join(f"{size:,}" for size in SIZES) + " |")
    print("|---|" + "---|" * len(SIZES))
    for name in ("gather", "embedding", "nonzero"):
        print(f"| {name} | " + " | ".join(f"{count(name, size):,.0f}" for size in SIZES) + " |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        call(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
