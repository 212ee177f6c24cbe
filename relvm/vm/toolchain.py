"""C compilation: the compiler that is there, the flags, and a cache of what it made.

Environment: RELVM_CC names the compiler (`none`: pretend there is none), else CC, else the first of gcc, clang, zig cc,
tcc that is installed.  RELVM_CACHE_DIR is where compiled libraries are kept (default: the user's cache directory,
relvm/).  RELVM_CPU is the x86-64 level that native code is made for, `x86-64` to `x86-64-v4`, and every processor from
that on can load (default: this machine's).
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relvm.codegen.c import CSource
from relvm.errors import RelvmToolchainError
from relvm.tables import csrc_directory
from relvm.vm.runtime._native import lib
from relvm.vm.runtime.program import NativeCode
from relvm.vm.runtime.trust import cache_directory, is_built_here, record_built

# -fwrapv: integers wrap as NumPy's.  -fno-math-errno -fno-trapping-math: nothing reads errno or the exception flags.
# Routines without vectors: values are stored as two words, and to load them as one makes the processor wait.
_COMMON = ("-std=gnu11", "-fPIC", "-fwrapv", "-w")
_KERNELS = ("-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math")
_WORDS = ("-fno-tree-vectorize", "-fno-tree-slp-vectorize")
_ROUTINES = ("-O2", *_WORDS, "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off")


@dataclass(frozen=True)
class Compiler:
    """command: how to call it.  version: the first line of what --version prints."""

    command: tuple[str, ...]
    version: str


@functools.lru_cache(maxsize=8)
def _find(setting: str | None, cc: str | None, path: str | None) -> Compiler | None:
    if setting == "none":
        return None
    chosen = setting or cc
    candidates = [tuple(shlex.split(chosen))] if chosen else [("gcc",), ("clang",), ("zig", "cc"), ("tcc",)]
    for command in candidates:
        if not shutil.which(command[0], path=path):
            continue
        flag = "-v" if command[0] == "tcc" else "--version"
        shown = subprocess.run([*command, flag], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if shown.returncode == 0:
            return Compiler(command, (shown.stdout or shown.stderr).partition("\n")[0])
    if chosen:
        raise RelvmToolchainError(
            f"the compiler {chosen!r}, asked for by {'RELVM_CC' if setting else 'CC'}, does not run"
        )
    return None


def find_compiler() -> Compiler | None:
    """The C compiler, or None where there is none.

    Raises
    ------
    RelvmToolchainError
        RELVM_CC or CC names one that does not run.
    """
    return _find(os.environ.get("RELVM_CC"), os.environ.get("CC"), os.environ.get("PATH"))


def expect_compiler(otherwise: str = "") -> Compiler:
    """The C compiler.  Raises RelvmToolchainError: there is none; the message ends with `otherwise`."""
    compiler = find_compiler()
    if compiler is None:
        known = "gcc, clang, zig cc or tcc; CC or RELVM_CC names another"
        raise RelvmToolchainError(f"no C compiler found ({known}){otherwise}")
    return compiler


_LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")


def target_cpu() -> str:
    """The x86-64 level that native code is made for: RELVM_CPU, or the highest that this processor has; "" for the base
    level and for other architectures.

    Raises
    ------
    RelvmToolchainError
        RELVM_CPU is no level.
    """
    level = os.environ.get("RELVM_CPU") or _LEVELS[max(lib.rvm_cpu_level(), 1) - 1]
    if level not in _LEVELS:
        raise RelvmToolchainError(f"RELVM_CPU: expected one of {', '.join(_LEVELS)}, got {level!r}")
    return "" if level == "x86-64" else level


def host_triple() -> str:
    """What the machine runs: `x86_64-linux-gnu`."""
    return f"{platform.machine()}-{sys.platform}-gnu"


def compile_native(source: CSource) -> NativeCode:
    """The shared library of a module's C, from the cache where the same was compiled before.

    Raises
    ------
    RelvmToolchainError
        There is no compiler, or it failed.
    """
    compiler = expect_compiler('; target="numpy" needs none')
    cpu = target_cpu()
    units = [(text, (*_COMMON, *_KERNELS, *_cpu_flags(cpu))) for text in source.kernels]
    if source.routines:
        units.append((source.routines, (*_COMMON, *_ROUTINES)))
    library = _cached(compiler, units)
    return NativeCode(library=library, triple=host_triple(), cpu=cpu)


def _cpu_flags(cpu: str) -> tuple[str, ...]:
    if not cpu:
        return ()
    wide = ("-mprefer-vector-width=512",) if cpu == "x86-64-v4" else ()
    return (f"-march={cpu}", *wide)


def _cached(compiler: Compiler, units: list[tuple[str, tuple[str, ...]]]) -> bytes:
    """The library of some units, each the text and the flags of one."""

    def link() -> bytes:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(
                pool.map(lambda unit: _kept(_digest(compiler, unit), lambda: _compile(compiler, *unit)), units)
            )
        return _link(compiler, objects)

    return _kept(_digest(compiler, units), link)


def _digest(compiler: Compiler, what: Any) -> str:
    digest = hashlib.sha256(repr((compiler, what, platform.libc_ver())).encode())
    for header in sorted([*csrc_directory().glob("*.h"), *csrc_directory().glob("*.def")]):
        digest.update(header.read_bytes())
    return digest.hexdigest()


def _kept(digest: str, make: Callable[[], bytes]) -> bytes:
    """What `make` makes, from the cache where it was made before."""
    place = cache_directory() / f"{digest}.bin"
    try:
        kept = place.read_bytes()
    except OSError:
        kept = b""
    if kept and is_built_here(kept):  # not a file that was cut short or changed
        return kept
    made = make()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
            file.write(made)
        os.replace(file.name, place)
        record_built(made)
    except OSError:
        pass  # the cache is a convenience: a read-only home must not stop a build
    return made


def _compile(compiler: Compiler, text: str, flags: tuple[str, ...]) -> bytes:
    """An object file."""
    with tempfile.TemporaryDirectory(prefix="relvm-") as folder:
        Path(folder, "unit.c").write_text(text)
        run_compiler(compiler, [*flags, f"-I{csrc_directory()}", "-c", "unit.c", "-o", "unit.o"], Path(folder))
        return Path(folder, "unit.o").read_bytes()


def _link(compiler: Compiler, objects: list[bytes]) -> bytes:
    """The shared library of some object files."""
    with tempfile.TemporaryDirectory(prefix="relvm-") as folder:
        names = [f"unit{i}.o" for i in range(len(objects))]
        for name, content in zip(names, objects, strict=True):
            Path(folder, name).write_bytes(content)
        run_compiler(compiler, ["-shared", "-Wl,-Bsymbolic", "-s", *names, "-lm", "-o", "library.so"], Path(folder))
        return Path(folder, "library.so").read_bytes()


def run_compiler(compiler: Compiler, arguments: Sequence[str], folder: Path) -> None:
    """Call the compiler in a directory.

    Raises
    ------
    RelvmToolchainError
        It failed; the message has the command and the compiler's output.
    """
    command = [*compiler.command, *arguments]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    _expect_success(command, done.returncode, done.stdout)


def _expect_success(command: list[str], code: int, output: str) -> None:
    if code != 0:
        raise RelvmToolchainError(f"the C compiler failed ({code}): {shlex.join(command)}\n{output[:4000]}")
