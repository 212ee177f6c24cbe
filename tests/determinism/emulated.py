"""Runs of executables on AArch64 under qemu-aarch64, and on Windows under wine, by driver.c and the C runtime."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from determinism.cases import Calls, encoded
from support import wine

from relvm import vm
from relvm.compiler.find_compiler import Compiler
from relvm.compiler.toolchain import compile_runtime
from relvm.runtime.executable import Executable
from relvm.tables import csrc_directory, include_flags

_FLAGS = ("-std=gnu11", "-O2", "-ffp-contract=off", "-DNDEBUG", "-fvisibility=hidden")


@dataclass(frozen=True)
class Emulated:
    """Another system, whose programs run here in an emulator.

    compiler: the command of the C compiler.   emulator: the command to which the name of a program is added.
    libraries: those of the system that the runtime needs.   targets: the targets of native code.
    """

    name: str
    compiler: tuple[str, ...]
    emulator: tuple[str, ...]
    libraries: tuple[str, ...] = ()
    targets: tuple[str, ...] = ("c",)

    def expect_tools(self) -> None:
        """Skip the test if the cross compiler or the emulator is not installed."""
        missing = [command[0] for command in (self.compiler, self.emulator) if shutil.which(command[0]) is None]
        if missing:
            pytest.skip(f"not installed: {', '.join(missing)} (.ci/run has the packages)")

    def native_build(self, calls: Calls, target: str) -> Executable:
        """Return the executable of a module with native functions and kernels for a target on the system."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RELVM_CC", shlex.join(self.compiler))
            return vm.build(calls.module, "compiled", target)

    def run(self, executable: Executable, calls: Sequence[tuple[str, tuple[Any, ...]]], threads: int = 1) -> list[str]:
        """Return the digests of the results of calls, or the messages of errors."""
        with tempfile.TemporaryDirectory() as folder:
            executable.save(Path(folder) / "program.rvm")
            (Path(folder) / "cases.bin").write_bytes(encoded(calls))
            command = [*self.emulator, _driver(self), "program.rvm", "cases.bin", str(threads)]
            environment = wine.environment() if self is WINDOWS else os.environ | {"TMPDIR": folder}
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
        assert done.returncode == 0, done.stderr
        return [line.partition(" ")[2] for line in done.stdout.splitlines()]


AARCH64 = Emulated(
    "aarch64",
    ("aarch64-linux-gnu-gcc",),
    ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"),
    ("-lpthread", "-ldl", "-lm"),
    ("c", "c -march=armv8.2-a+dotprod+i8mm"),
)
WINDOWS = Emulated("Windows", wine.COMPILER, (wine.wine() or "wine64",), targets=("x86-64-v3",))


@cache
def _driver(system: Emulated) -> Path:
    """Build driver.c with the runtime, and return the path of the program."""
    folder = Path(tempfile.mkdtemp(prefix="relvm-driver-"))
    shown = subprocess.run([*system.compiler, "--version"], capture_output=True, text=True, check=True).stdout
    objects = []
    for name, content in compile_runtime(Compiler(system.compiler, shown.partition("\n")[0]), _FLAGS).items():
        objects.append(folder / name)
        objects[-1].write_bytes(content)
    source = Path(__file__).with_name("driver.c")
    flags = [*_FLAGS, "-Wall", "-Wextra", "-Werror", *include_flags(), f"-I{csrc_directory() / 'loader'}"]
    program = folder / "driver.exe"
    subprocess.run([*system.compiler, *flags, source, *objects, *system.libraries, "-o", program], check=True)
    return program
