"""Runs of executables on AArch64 under qemu-aarch64, by driver.c and the C runtime."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from determinism.cases import Calls, encoded

from relvm import vm
from relvm.compiler.find_compiler import Compiler
from relvm.compiler.toolchain import compile_runtime
from relvm.runtime.executable import Executable
from relvm.tables import csrc_directory, include_flags

CC, EMULATOR, SYSROOT = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
_FLAGS = ("-std=gnu11", "-O2", "-ffp-contract=off", "-DNDEBUG", "-fvisibility=hidden")


def expect_tools() -> None:
    """Skip the test if the cross compiler or the emulator is not installed."""
    missing = [name for name in (CC, EMULATOR) if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (.ci/run has the packages)")


@cache
def _driver() -> Path:
    """Build driver.c with the runtime, and return the path of the program."""
    folder = Path(tempfile.mkdtemp(prefix="relvm-aarch64-"))
    version = subprocess.run([CC, "--version"], capture_output=True, text=True, check=True).stdout.partition("\n")[0]
    objects = []
    for name, content in compile_runtime(Compiler((CC,), version), _FLAGS).items():
        objects.append(folder / name)
        objects[-1].write_bytes(content)
    source = Path(__file__).with_name("driver.c")
    command = [CC, *_FLAGS, "-Wall", "-Wextra", "-Werror", *include_flags(), f"-I{csrc_directory() / 'loader'}", source]
    subprocess.run([*command, *objects, "-lpthread", "-ldl", "-lm", "-o", folder / "driver"], check=True)
    return folder / "driver"


def native_build(calls: Calls, target: str) -> Executable:
    """Return the executable of a module with native functions and kernels for a target on AArch64."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELVM_CC", CC)
        return vm.build(calls.module, "compiled", target)


def run_on_aarch64(executable: Executable, calls: Sequence[tuple[str, tuple[Any, ...]]], threads: int = 1) -> list[str]:
    """Return the digests of the results of calls, or the messages of errors."""
    with tempfile.TemporaryDirectory() as folder:
        program, cases = Path(folder) / "program.rvm", Path(folder) / "cases.bin"
        executable.save(program)
        cases.write_bytes(encoded(calls))
        command = [EMULATOR, "-L", SYSROOT, _driver(), program, cases, str(threads)]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"TMPDIR": folder})
    assert done.returncode == 0, done.stderr
    return [line.partition(" ")[2] for line in done.stdout.splitlines()]
