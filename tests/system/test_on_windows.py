"""The C runtime, its tests and an export, compiled for Windows by zig cc and run by wine."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support import wine
from support.documents import ROOT

from relvm import aot, vm
from relvm.frontend.text import parse_module
from relvm.tables import csrc_directory, include_flags, runtime_sources

TESTS = ROOT / "tests" / "c"
READERS = csrc_directory() / "readers"
FLAGS = [
    *("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fwrapv", "-DRVM_WITHOUT_EXACT_FMA"),
    *("-DRVM_ALLOCATION_FAILS=test_allocation_fails", *include_flags(), f"-I{READERS}", f"-I{TESTS}"),
]
# The other tests have passed in the same way (docs/platforms.md), but test nothing that depends on the system.
NAMES = ("test_api", "test_interpreter", "test_limits", "test_loader", "test_native", "test_threads", "test_workers")

pytestmark = wine.needs_wine


def compile_c(*arguments: object) -> None:
    done = subprocess.run([*wine.COMPILER, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run(folder: Path, *command: str) -> str:
    """Run a program, and return its output, which is all that it may print."""
    done = subprocess.run(
        [str(wine.wine()), *command], cwd=folder, env=wine.environment(), capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Compile the runtime, and return the object files."""
    folder = tmp_path_factory.mktemp("windows")
    sources = [*runtime_sources(), *sorted(READERS.glob("*.c")), TESTS / "allocation.c"]
    objects = [folder / f"{source.stem}.o" for source in sources]
    with ThreadPoolExecutor(2) as pool:
        pairs = zip(sources, objects, strict=True)
        jobs = [pool.submit(compile_c, *FLAGS, "-c", source, "-o", target) for source, target in pairs]
    for job in jobs:
        job.result()
    return objects


@pytest.mark.parametrize("name", NAMES)
def test_a_c_test_passes(name: str, runtime: list[Path], tmp_path: Path) -> None:
    if name == "test_native":
        compile_c(*FLAGS, "-shared", TESTS / "native_library.c", "-o", tmp_path / "native_library.dll")
    header = ("-include", TESTS / "on_windows.h")
    compile_c(*FLAGS, *header, TESTS / f"{name}.c", *runtime, "-lpthread", "-o", tmp_path / f"{name}.exe")
    assert run(tmp_path, f"{name}.exe", "native_library.dll") == ""


def test_an_export_passes_its_self_test(tmp_path: Path) -> None:
    module = parse_module("def main(x: f32[2, 3], w: f32[3, 4]) -> f32[2, 4] = tanh(matmul(x, w))")
    arguments = (np.ones((2, 3), np.float32), np.full((3, 4), 0.25, np.float32))
    result = vm.VirtualMachine(vm.build(module, target="bytecode"))["main"](*arguments)
    aot.build(module).write(folder := tmp_path / "export", (arguments, [result]))
    sources = [*sorted((folder / "src").glob("*.c")), folder / "test" / "main.c"]
    includes = (f"-I{folder / 'include'}", f"-I{folder / 'src'}", "-DRELVM_TOLERANCE=1e-6")
    compile_c("-O2", "-ffp-contract=off", *includes, *sources, "-o", folder / "model.exe")
    assert "values" in run(folder, "model.exe")
