"""`relvm run-python`: run a Python program that imports onnxruntime, on relvm."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback
from pathlib import Path

from relvm import onnxruntime


def run_python(options: argparse.Namespace) -> int:
    """Run the program like the command `python`, except that `import onnxruntime` imports relvm's replacement.

    Return the exit status.
    """
    if not options.is_module:
        os.stat(options.program)  # raises an OSError that names the file
    onnxruntime.install()
    sys.argv = [options.program, *options.arguments]
    sys.path.insert(0, os.getcwd() if options.is_module else str(Path(options.program).resolve().parent))
    try:
        if options.is_module:
            runpy.run_module(options.program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(options.program, run_name="__main__")
    except Exception:  # an error of the program, which is shown as Python shows it
        traceback.print_exc()
        return 1
    return 0
