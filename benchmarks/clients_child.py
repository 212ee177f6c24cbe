"""Run a program on relvm, and wait for native code, for benchmarks/clients.py.

The command is `python benchmarks/clients_child.py PROGRAM`.  Without this wrapper, a program would end before all
native code is compiled, and the next process would compile the rest.
"""

from __future__ import annotations

import runpy
import sys
import threading
from pathlib import Path

import relvm.onnxruntime


def main(program: str) -> None:
    relvm.onnxruntime.install()
    sys.argv = [program]
    sys.path[0] = str(Path(program).parent)
    globals_of_program = runpy.run_path(program, run_name="__main__")
    for thread in threading.enumerate():
        if thread.name == "relvm upgrade":
            thread.join()
    del globals_of_program  # sessions are kept alive until here, so that their code is compiled


if __name__ == "__main__":
    main(sys.argv[1])
