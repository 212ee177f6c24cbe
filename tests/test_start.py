"""The modules that a process imports until the first result of a model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx

MODEL = '<ir_version: 10, opset_import: ["" : 17]> g (float[n] x) => (float[n] y) { y = Relu(x) }'
RUN = """
import sys
import numpy as np
import dataclasses, hashlib, importlib.util, json, pathlib, threading
before = set(sys.modules)
import relvm
assert relvm.load_model(sys.argv[1])(np.float32([-1, 2])).numpy().tolist() == [0, 2]
print(*sorted(set(sys.modules) - before))
"""

# A start from the cache only needs the reader of ONNX files, the cache, the loader of executables and the machine.
# Think twice before you add a module: every import takes 0.1 ms or more, and a data class, an Enum or a compiled
# pattern as much again.
FROM_CACHE = {
    "relvm": "data_classes display errors installation model numpy_dtypes quoting system tables _binding _native",
    "relvm._native": "lib",
    "relvm.system": "errors posix",
    "relvm.bytecode": "container decode encode kernel_program program",
    "relvm.compiler": "build_cache build_model disk_cache find_compiler garbage_collection upgrade",
    "relvm.frontend": "model_cache_key onnx_bytes onnx_messages stablehlo_file torch_file",
    "relvm.runtime": (
        "background_compile binding binding_hooks cache_folder callbacks closure convert dlpack donated elf executable "
        "file_io function instrument invoke machine_limits named_outputs native_parts packed_func plain_values "
        "print_values python_arguments signature status tensor trust virtual_machine"
    ),
}
# Libraries besides NumPy and the modules that RUN imports.  base64 is only for an installation without RECORD.
LIBRARIES = {"__future__", "_cffi_backend", "atexit", "base64", "binascii", "fcntl", "gc", "mmap"}
# Modules that a build without a C compiler does not need.
NOT_FOR_BUILDS = {
    *("onnx", "numpy.ma", "multiprocessing", "subprocess", "socket", "zipfile", "fractions", "tempfile"),
    *(
        "relvm.compiler.toolchain",
        "relvm.codegen.c.module",
        "relvm.explore",
        "relvm.aot",
        "relvm.frontend.onnx.ops.strings",
    ),
}


def imported(model: Path, cache: Path) -> set[str]:
    """Return the modules that a new process without a C compiler imports until the first result of a model."""
    environment = os.environ | {"RELVM_CC": "none", "RELVM_CACHE_DIR": str(cache)}
    command = [sys.executable, "-Pc", RUN, str(model)]
    return set(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split())


def test_a_start_imports_only_what_it_needs(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), model)
    built, cached = imported(model, tmp_path / "cache"), imported(model, tmp_path / "cache")

    allowed = {*FROM_CACHE, *(f"{package}.{name}" for package, names in FROM_CACHE.items() for name in names.split())}
    assert cached <= allowed | LIBRARIES
    assert not built & NOT_FOR_BUILDS
