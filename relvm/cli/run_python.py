"""`relvm run-python`: run a Python program that imports onnxruntime, on relvm."""

from __future__ import annotations

import argparse
import io
import os
import runpy
import sys
import traceback
import zipfile
from pathlib import Path
from types import ModuleType

from relvm import onnxruntime
from relvm.cli.arguments import Parser


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm run-python --as-onnxruntime program.py"
    parser.description = "Run a Python program in which `import onnxruntime` imports relvm.onnxruntime."
    parser.add_argument("--as-onnxruntime", action="store_true", required=True, help="replace onnxruntime by relvm")
    parser.add_argument("-m", action="store_true", dest="is_module", help="PROGRAM is the name of a module")
    parser.add_argument("program", metavar="PROGRAM", help="a Python file")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="arguments of the program")


def run(options: argparse.Namespace) -> int:
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
            _run_file(options.program)
    except Exception:  # an error of the program, which is shown as Python shows it
        traceback.print_exc()
        return 1
    return 0


def _run_file(program: str) -> None:
    """Run a file as the module __main__.

    As with `python`, `__file__` is absolute and sys.argv[0] is the path as given.  runpy.run_path makes both the same.

    program: the path of a Python file, or of a folder or zip file with a __main__.py.
    """
    path = os.path.abspath(program)
    if os.path.isdir(path) or zipfile.is_zipfile(path):
        runpy.run_path(path, run_name="__main__")
        return
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec")
    module, outer = ModuleType("__main__"), sys.modules["__main__"]
    module.__file__ = path
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
    finally:
        sys.modules["__main__"] = outer
