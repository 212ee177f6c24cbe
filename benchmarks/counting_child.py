"""Run a saved executable with several inputs:   python -m benchmarks.counting_child EXECUTABLE INPUTS.npz...

For each file of inputs, the process runs the executable twice.  It calls getppid before and after the second run, so
that valgrind can count the instructions between these calls.
"""

from __future__ import annotations

import os
import sys

import numpy as np

from relvm.runtime.executable import load
from relvm.runtime.virtual_machine import VirtualMachine


def main() -> None:
    machine = VirtualMachine(load(sys.argv[1], trust_native=True), num_threads=1)
    for path in sys.argv[2:]:
        args = list(np.load(path).values())
        machine["main"](*args)
        os.getppid()
        machine["main"](*args)
        os.getppid()


if __name__ == "__main__":
    main()
