"""Instructions of runs, counted by valgrind.

Unlike times, the counts do not depend on the load of the machine.  valgrind does not support AVX-512, so the kernels
are those of x86-64-v3.  Hashes of Python, and thus its instructions, are the same in all processes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from relvm.runtime.executable import Executable

ENVIRONMENT = {"RELVM_CPU": "x86-64-v3", "PYTHONHASHSEED": "0"}  # for the process that builds the executable, too


def count_instructions(executable: Executable, cases: Sequence[Mapping[str, np.ndarray]]) -> list[int]:
    """Return the number of instructions of the second run with each case, in one thread.

    cases: the arguments of `main`, in order.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, out = f"{folder}/model.rvm", Path(folder) / "callgrind"
        executable.save(path)
        inputs = [f"{folder}/{number}.npz" for number in range(len(cases))]
        for file, case in zip(inputs, cases, strict=True):
            np.savez(file, **case)
        command = ["valgrind", "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={out}"]
        command += [sys.executable, "-m", "benchmarks.counting_child", path, *inputs]
        subprocess.run(command, env=os.environ | ENVIRONMENT, capture_output=True, check=True)
        # The process calls getppid before and after a second run, and valgrind writes a part before each call.
        parts = [out.with_suffix(f".{2 * number + 2}").read_text() for number in range(len(cases))]
        return [int(re.findall(r"^(?:summary|totals): (\d+)", part, re.M)[0]) for part in parts]
